"""The policy file: what it may say, what it may not, and what several entries mean for one host."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.patterns import excludes_path, normal_pattern
from crawler.policy import PolicyBook, PolicyError, parse_policy
from crawler.urls import NormalUrl, normalise, split
from schemas.state import DomainRules

SAMPLE = """
# an operator's file
domains:
  example.org:   {min_delay_seconds: 10, round_urls: 200, total_urls: 5000, priority: 0.9}
  spam.example:  {exclude: true}
  shop.example:  {exclude_paths: ["/cart", "/*?sort="], max_depth: 4}
  Müller.example.: {insecure_tls: true}
  192.0.2.7: {round_urls: 0}
  "2001:db8::7": {min_delay_seconds: 1.5}
  localhost: {}
"""


def test_reads_every_rule():
    assert parse_policy(SAMPLE) == {
        "example.org": DomainRules(min_delay_seconds=10.0, round_urls=200, total_urls=5000, priority=0.9),
        "spam.example": DomainRules(exclude=True),
        "shop.example": DomainRules(exclude_paths=("/cart", "/*?sort="), max_depth=4),
        "xn--mller-kva.example": DomainRules(insecure_tls=True),
        "192.0.2.7": DomainRules(round_urls=0),
        "2001:db8::7": DomainRules(min_delay_seconds=1.5),
        "localhost": DomainRules(),
    }


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ("{min_delay: 3}", "a.org: unknown rule 'min_delay'; known are exclude, exclude_paths, "),
        ("{3: 4}", "unknown rule 3"),
        ("{exclude: yes please}", "a.org: exclude must be true or false, got 'yes please'"),
        ("{exclude: 1}", "must be true or false, got 1"),
        ("{min_delay_seconds: -1}", "min_delay_seconds must be a number from 0 to 2592000 (30 days), got -1"),
        ("{min_delay_seconds: .nan}", "got nan"),
        ("{min_delay_seconds: .inf}", "got inf"),
        ("{min_delay_seconds: '3'}", "got '3'"),
        ("{min_delay_seconds: true}", "got True"),
        ("{round_urls: 1.5}", "round_urls must be a whole number, 0 or more, got 1.5"),
        ("{total_urls: -3}", "total_urls must be a whole number, 0 or more, got -3"),
        ("{max_depth: true}", "max_depth must be a whole number"),
        ("{priority: 1.01}", "priority must be a number from 0 to 1, got 1.01"),
        ("{exclude_paths: /cart}", 'exclude_paths must be a list like ["/cart"]'),
        ("{exclude_paths: [cart]}", "a pattern begins with / or *"),
        ("{exclude_paths: [7]}", "a pattern begins with / or *"),
        ("{exclude: true, exclude: false}", "key 'exclude' stands twice: keep one"),
        ("true", "rules of 'a.org' must be a mapping like {exclude: true}, got True"),
    ],
)
def test_refuses_bad_rules_by_name(rules, complaint):
    with pytest.raises(PolicyError) as caught:
        parse_policy(f"domains: {{a.org: {rules}}}")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("'*.a.org'", "write 'a.org'"),
        ("no", "is not text: put it in quotes"),
        ("1.5", "is not text"),
        ("'http://a.org'", "is no host name"),
        ("a.org/path", "is no host name"),
        ("'a.org:80'", "is no host name"),
        ("'a b.org'", "is no host name"),
        ("'user@a.org'", "is no host name"),
        ("''", "is no host name"),
        ("'1.2.3.999'", "is no host name"),
        ("co.uk", "is a public suffix: name the domains below it"),
        ("com", "is a public suffix"),
        ("? [a, b]\n ", "is not text"),
    ],
)
def test_refuses_what_is_no_domain(name, complaint):
    with pytest.raises(PolicyError) as caught:
        parse_policy(f"domains:\n {name}: {{exclude: true}}")
    assert complaint in str(caught.value) or "unhashable" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "domains",
        "domains: [a.org]",
        "domain: {}",
        "domains: {}\nother: {}",
        "domains: {a.org: {}, A.org: {}}",
        "domains: {a.org: {}}\ndomains: {}",
        "domains: {a.org: {}",
        "domains: {a.org: {exclude: !!python/object/apply:os.system [true]}}",
        "domains: {a.org: {exclude: !!bool 7}}",
        "domains: {a.org: {max_depth: !!int ''}}",
        "domains: {a.org: {max_depth: !!timestamp x}}",
        "domains: {a.org: {max_depth: 2024-13-41}}",
        "[" * 3_000,
        "domains: &d {a.org: *d}",
        "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 20)),
        "domains: \0",
    ],
)
def test_refuses_other_documents(text):
    with pytest.raises(PolicyError):
        parse_policy(text)


@settings(max_examples=300)
@given(st.one_of(st.text(), st.text("domains:{}[]a.org!&*-? \n#\"'|>0", max_size=60)))
def test_any_text_is_a_policy_or_a_policy_error(text):
    try:
        parse_policy(text)
    except PolicyError as error:
        assert len(str(error)) < 1000


BOOK = PolicyBook(
    parse_policy("""
domains:
  example.org: {min_delay_seconds: 10, max_depth: 5, exclude_paths: [/private]}
  shop.example.org: {min_delay_seconds: 2, exclude_paths: [/cart]}
  blogspot.com: {round_urls: 7}
  gone.example: {exclude: true}
  www.gone.example: {exclude: false, priority: 1}
  old.example: {insecure_tls: true}
""")
)


def test_the_most_specific_number_wins_and_patterns_add_up():
    assert BOOK.rules_for("a.shop.example.org") == DomainRules(
        min_delay_seconds=2.0, max_depth=5, exclude_paths=("/cart", "/private")
    )
    assert BOOK.rules_for("www.example.org").min_delay_seconds == 10
    assert BOOK.rules_for("notexample.org") == DomainRules()


def test_a_rule_of_a_hosting_domain_covers_its_customers():
    assert BOOK.rules_for("me.blogspot.com").round_urls == 7


def test_nothing_below_lifts_an_exclusion():
    assert BOOK.rules_for("www.gone.example").exclude
    assert BOOK.rules_for("www.gone.example").priority == 1


def test_tls_is_lax_only_below_its_domain():
    assert BOOK.rules_for("a.old.example").insecure_tls
    assert not BOOK.rules_for("example").insecure_tls


def test_addresses_match_whole():
    book = PolicyBook({"2.7": DomainRules(exclude=True), "192.0.2.7": DomainRules(max_depth=1)})
    assert book.rules_for("192.0.2.7") == DomainRules(max_depth=1)


def test_book_is_plain_json_and_back():
    stored = json.loads(json.dumps(PolicyBook(parse_policy(SAMPLE)).to_json()))
    assert PolicyBook.from_json(stored) == PolicyBook(parse_policy(SAMPLE))
    assert stored["localhost"] == {}
    assert stored["shop.example"] == {"exclude_paths": ["/cart", "/*?sort="], "max_depth": 4}
    assert PolicyBook.from_json({}) == PolicyBook({})
    with pytest.raises(PolicyError):
        PolicyBook.from_json({"a.org": {"exclude": "yes"}})


def test_book_travels_by_pickle():
    again = pickle.loads(pickle.dumps(BOOK))
    assert again == BOOK
    assert again.rules_for("a.example.org") == BOOK.rules_for("a.example.org")


def test_newer_entries_replace_whole_entries():
    newer = PolicyBook(parse_policy("domains: {example.org: {priority: 1}, gone.example: {}}"))
    book = BOOK.updated(newer)
    assert book.rules_for("example.org") == DomainRules(priority=1.0)
    assert not book.rules_for("gone.example").exclude
    assert book.rules_for("me.blogspot.com").round_urls == 7


@pytest.mark.parametrize(
    ("pattern", "target", "matches"),
    [
        ("/cart", "/cart", True),
        ("/cart", "/cart/2?x", True),
        ("/cart", "/a/cart", False),
        ("/cart$", "/cart", True),
        ("/cart$", "/cart/", False),
        ("/*.pdf$", "/a/b.pdf", True),
        ("/*.pdf$", "/a/b.pdf?x", False),
        ("/*a*a*a$", "/aa", False),
        ("/*a*a*a$", "/aaa", True),
        ("*/print", "/a/print/b", True),
        ("/a$b", "/a$b", True),
        ("/*", "/", True),
        ("*", "/", True),
        ("/*?sort=", "/list?sort=price", True),
        ("/*?sort=", "/list?colour=red&sort=price", True),
        ("/*?sort=", "/list?colour=red&resort=price", False),
        ("/*&sort=", "/list?sort=price&zoom=1", True),
        ("/*&sort=", "/list?sort=price", False),
        ("/list?sort=price$", "/list?colour=red&sort=price", False),
        ("/x*/y*$", "/x/y", True),
        ("/ab*b$", "/ab", False),
        ("/caf%c3%a9", "/caf%C3%A9", True),
        ("/café", "/caf%C3%A9", True),
        ("/%7Ename", "/~name", True),
    ],
)
def test_patterns_match_as_in_robots_txt(pattern, target, matches):
    assert excludes_path((normal_pattern(pattern),), split(f"http://h{target}")) is matches


def test_a_bomb_of_stars_costs_little():
    url = normalise("http://h/" + "a" * 2000 + "?" + "&".join(["b"] * 500))
    assert isinstance(url, NormalUrl)
    assert not excludes_path(("/" + "*a" * 1000 + "?*c$",), split(url.url))
