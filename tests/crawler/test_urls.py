"""Normal form: what becomes one URL, what stays two, what is refused, and the laws that hold for any text."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawler.urls import (
    NormalUrl,
    UrlKeys,
    UrlParts,
    UrlRejection,
    authority_of,
    host_of,
    normalise,
    partition_of,
    path_of,
    port_of,
    split,
)

NORMAL_FORMS = [
    ("http://Example.com:80/a/../b?b=2&utm_source=x&a=1#top", "http://example.com/b?a=1&b=2"),
    ("https://example.com:443", "https://example.com/"),
    ("https://example.com:80/", "https://example.com:80/"),
    ("http://user:secret@example.com/", "http://example.com/"),
    ("http://stack:pass@@@word@Example.Com/i.html", "http://example.com/i.html"),
    ("http://good.example\\@evil.example/", "http://good.example/@evil.example/"),
    ("http://example.com./", "http://example.com/"),
    ("http://example.com...:8080/", "http://example.com:8080/"),
    ("http://0x7f.1../", "http://127.0.0.1/"),
    ("http://example.com/%7euser/%c3%a9%2f%2E", "http://example.com/~user/%C3%A9%2F."),
    ("http://example.com/é ü", "http://example.com/%C3%A9%20%C3%BC"),
    ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://ｅｘａｍｐｌｅ。com/", "http://example.com/"),
    ("http://example.com/?", "http://example.com/"),
    ("http://example.com?&&b&a=&", "http://example.com/?a=&b"),
    ("http://example.com/?b=1&a=2&b=0", "http://example.com/?a=2&b=1&b=0"),
    ("http://example.com/?q=a+b%20c&p=%2B", "http://example.com/?p=%2B&q=a+b%20c"),
    ("http://example.com/?z&amp;a=1&amp;amp;b=2", "http://example.com/?a=1&b=2&z"),
    ("http://example.com/?tags[]=a|b", "http://example.com/?tags%5B%5D=a%7Cb"),
    ("http://example.com/[x]/{y}", "http://example.com/%5Bx%5D/%7By%7D"),
    ("http://example.com/100%/%zz", "http://example.com/100%/%zz"),
    ("http://example.com/%%34%31", "http://example.com/%%34%31"),
    ("http://example.com/%25%32%35", "http://example.com/%2525"),
    ("http://example.com/a//b/", "http://example.com/a//b/"),
    ("http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"),
    (" \thttp://exa\nmple.com/\r ", "http://example.com/"),
    ("http://example.com/\ud800", "http://example.com/%EF%BF%BD"),
    ("http:\\\\example.com\\a", "http://example.com/a"),
]

SESSIONS_AND_TRACKING = [
    ("http://h/a;jsessionid=1E6F?x=1", "http://h/a?x=1"),
    ("http://h/a;JSESSIONID=1E6F/b;v=2", "http://h/a/b;v=2"),
    ("http://h/x/..;jsessionid=1/b", "http://h/b"),
    ("http://h/a?x=1;jsessionid=1E6F&y=2", "http://h/a?x=1&y=2"),
    ("http://h/?PHPSESSID=1&a=1", "http://h/?a=1"),
    ("http://h/?phpsessid=cdc993a493e899bed04f4d0c8a462a03", "http://h/"),
    ("http://h/?JSESSIONID=x&a", "http://h/?a"),
    ("http://h/?ASPSESSIONIDAABBCCDD=ABCDEFGHIJKLMNOPQRSTUVWX", "http://h/"),
    ("http://h/?sid=9682993c8daa2c5497996114facdc805&p=1", "http://h/?p=1"),
    ("http://h/?bv_sessionid=e36902d5bb2d0d922fc24b43", "http://h/"),
    ("http://h/?sid=123e4567-e89b-12d3-a456-426614174000", "http://h/"),
    ("http://h/?CFID=1169580&CFTOKEN=48630702&d=1", "http://h/?d=1"),
    ("http://h/(S(4hqa0555fwsecu455xqckv45))/x.aspx", "http://h/x.aspx"),
    ("http://h/(4hqa0555fwsecu455xqckv45)/x.aspx", "http://h/x.aspx"),
    ("http://h/?utm_source=a&UTM_Medium=b&q=1", "http://h/?q=1"),
    ("http://h/?gclid=1&dclid=2&fbclid=3&msclkid=4&yclid=5&mc_cid=6&mc_eid=7&_ga=8&igshid=9", "http://h/"),
    ("http://h/?%75tm_source=a", "http://h/"),
]

KEPT_AS_THEY_ARE = [
    "http://h/?sid=42",
    "http://h/?sid=a1b2c3d4e5",
    "http://h/?sid=internationalisation",
    "http://h/?sid=how-to-write-a-crawler-in-2024",
    "http://h/?sessionid=20240101120000000000",
    "http://h/?CFID=1169580",
    "http://h/?addressid=250646&newsid=2000484784794",
    "http://h/?_gat=1&gclid2=3&utm=1",
    "http://h/index.html?a=b;c=d",
    "http://h/(S(short))/x.aspx",
    "http://www.example.com/",
    "http://h/a;v=1/b",
    "http://h/?q=AT%26T",
]


@pytest.mark.parametrize(("raw", "normal"), NORMAL_FORMS + SESSIONS_AND_TRACKING)
def test_normal_form(raw, normal):
    assert normalise(raw) == NormalUrl(normal)


@pytest.mark.parametrize("url", KEPT_AS_THEY_ARE)
def test_what_only_looks_like_a_session_stays(url):
    assert normalise(url) == NormalUrl(url)


@pytest.mark.parametrize(
    ("link", "normal"),
    [
        ("", "http://h/x/y?q"),
        ("#top", "http://h/x/y?q"),
        ("z", "http://h/x/z"),
        ("../../z", "http://h/z"),
        ("?n", "http://h/x/y?n"),
        ("//other.example", "http://other.example/"),
        ("https:/p", "https://p/"),
    ],
)
def test_links_are_read_against_their_base(link, normal):
    assert normalise(link, "http://h/x/y?q") == NormalUrl(normal)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "invalid_url"),
        ("example.com/page", "invalid_url"),
        ("http://", "invalid_url"),
        ("http://h:99999/", "invalid_url"),
        ("http://1.2.3.256/", "invalid_url"),
        ("http://ex ample.com/", "invalid_url"),
        ("http://./", "invalid_host"),
        ("http://a..b/", "invalid_host"),
        ("http://a.-;b/", "invalid_host"),
        (f"http://{'a' * 64}.com/", "invalid_host"),
        (f"http://{'.'.join(['a' * 60] * 5)}/", "invalid_host"),
        ("mailto:me@example.com", "unsupported_scheme"),
        ("javascript:void(0)", "unsupported_scheme"),
        ("ftp://example.com/", "unsupported_scheme"),
        ("data:text/html,x", "unsupported_scheme"),
        ("http://h/" + "a" * 70_000, "url_too_long"),
    ],
)
def test_refused_with_a_reason(raw, reason):
    answer = normalise(raw)
    assert isinstance(answer, UrlRejection)
    assert answer.reason == reason
    assert len(answer.detail) <= 300


def test_query_is_escaped_in_the_pages_encoding():
    link = "http://h/é?q=Россия&x=é#Я"
    assert normalise(link, encoding="windows-1251") == NormalUrl(
        "http://h/%C3%A9?q=%D0%EE%F1%F1%E8%FF&x=%26%23233%3B"
    )
    for unusable in ("utf-8", "UTF-16LE", "no-such-encoding", "hex", "undefined", "nul\0"):
        assert normalise(link, encoding=unusable) == normalise(link)


PIECES = st.one_of(
    st.sampled_from(
        [
            "%",
            "%2",
            "%25",
            "%2E",
            "..",
            ".",
            "/",
            "//",
            "?",
            "&",
            "&amp;",
            "amp;",
            "=",
            ";",
            "#",
            "@",
            ":",
            "\\",
            "|",
            "[",
            "]",
            "+",
            "A",
            "%41",
            "%31",
            "4",
            "é",
            "\t",
            "\x00",
            "\ud800",
            "sid=",
            "PHPSESSID=",
            ";jsessionid=",
            "..;jsessionid=1/",
            "sid=0123456789abcdefX",
            "utm_source=",
            "cfid=",
            "cftoken=",
            "/(S(0123456789abcdef01234567))/",
            "(0123456789abcdef01234567)",
        ]
    ),
    st.text(max_size=2),
)
HOSTS = st.sampled_from(
    ["h", "EXAMPLE.com..", "0x7f.1..", "[::1]", "u:p@h:443", "h_x.co.uk:8080", "é.fr", "a..b"]
)


@settings(max_examples=800)
@given(st.sampled_from(["http://", "https://", "//", ""]), HOSTS, st.lists(PIECES, max_size=14).map("".join))
@example("http://", "h", "?amp;b&a")
@example("http://", "h", "..;jsessionid=1/%2e%2E;jsessionid=")
def test_normal_form_is_ascii_and_its_own_normal_form(scheme, host, tail):
    normal = normalise(f"{scheme}{host}/{tail}", "https://base.example/x/y?z")
    if isinstance(normal, NormalUrl):
        assert normal.url.isascii()
        assert normal.url.isprintable()
        assert not set(' #@\\<>"^`{|}') & set(normal.url.partition("?")[0]) - {"@"}
        assert normalise(normal.url) == normal
        parts = split(normal.url)
        assert parts.path.startswith("/")
        assert normal.url.endswith(parts.target)


@settings(max_examples=500)
@given(st.text(), st.one_of(st.none(), st.text()))
def test_no_text_makes_it_raise(raw, base):
    assert isinstance(normalise(raw, base), NormalUrl | UrlRejection)


def test_parts():
    url = "https://[2001:db8::1]:8443/a/b?x=1?y"
    assert split(url) == UrlParts("https", "2001:db8::1", 8443, "/a/b", "x=1?y")
    assert split(url).target == "/a/b?x=1?y"
    assert (host_of(url), port_of(url), path_of(url)) == ("2001:db8::1", 8443, "/a/b")
    assert authority_of(url) == "https://[2001:db8::1]:8443"
    assert split("http://example.com/") == UrlParts("http", "example.com", 80, "/", None)
    assert authority_of("https://example.com/x") == "https://example.com:443"


@pytest.mark.parametrize("text", ["", "example.com/", "http://example.com", "ftp://h/", "http:///a"])
def test_parts_of_what_is_not_normal_are_refused(text):
    with pytest.raises(ValueError, match="not a URL in normal form"):
        split(text)


def test_keys_depend_on_salt_and_text_alone():
    keys = UrlKeys("salt")
    again = pickle.loads(pickle.dumps(keys))
    assert again.host_key("www.example.com") == keys.host_key("www.example.com")
    assert again.url_key("http://example.com/") == keys.url_key("http://example.com/")
    assert UrlKeys("other").url_key("http://example.com/") != keys.url_key("http://example.com/")
    assert keys.url_key("http://example.com/a") != keys.url_key("http://example.com/b")
    assert 0 <= keys.url_key("http://example.com/") < 2**64


def test_key_values_are_fixed_for_ever():
    keys = UrlKeys("salt")
    assert keys.host_key("www.example.com") == 0x2704D6AA915EC3AD
    assert keys.url_key("http://www.example.com/") == 0x402300AE213395CD


def test_hosts_of_one_domain_share_every_partition():
    keys = UrlKeys("salt")
    hosts = [keys.host_key(f"{name}.example.co.uk") for name in ("www", "a", "b.c")] + [
        keys.host_key("example.co.uk")
    ]
    assert len(set(hosts)) == 4
    for bits in range(17):
        assert len({partition_of(key, 1 << bits) for key in hosts}) == 1
    spread = {partition_of(keys.host_key(f"site{n}.example"), 64) for n in range(2000)}
    assert spread == set(range(64))


@pytest.mark.parametrize("partitions", [0, -4, 3, 131_072])
def test_partitions_are_a_power_of_two(partitions):
    with pytest.raises(ValueError, match=f"power of two from 1 to 65536, got {partitions}"):
        partition_of(1, partitions)
