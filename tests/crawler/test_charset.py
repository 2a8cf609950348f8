from __future__ import annotations

import codecs

import pytest
import webencodings
from hypothesis import given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from crawler.charset import CharsetChoice, decide, decode, encoding_name
from crawler.prescan import SCAN_BYTES, declared_labels

GREEK = "Καλημέρα κόσμε, αυτό είναι ένα κείμενο στα ελληνικά για δοκιμή."
RUSSIAN = "Привет, это обычный текст на русском языке для проверки."


@pytest.mark.parametrize(
    ("body", "content_type", "name", "source"),
    [
        (b"\xef\xbb\xbfhi", "text/html; charset=windows-1251", "utf-8", "bom"),
        (b"\xff\xfeh\x00", None, "utf-16le", "bom"),
        (b"\xfe\xff\x00h", None, "utf-16be", "bom"),
        (b"\xff\xfe\x00\x00h\x00\x00\x00", None, "utf-32le", "bom"),
        (b"\x00\x00\xfe\xff\x00\x00\x00h", None, "utf-32be", "bom"),
        (b"<meta charset=koi8-r>", "text/html; charset=iso-8859-1", "windows-1252", "header"),
        (b"<meta charset=koi8-r>", "text/html; charset=nonsense", "koi8-r", "meta"),
        (b"<meta charset=nonsense><meta charset=koi8-r>", None, "koi8-r", "meta"),
        (b"<meta charset=utf-16le>", None, "utf-8", "meta"),
        (b"<meta charset=x-user-defined>", None, "windows-1252", "meta"),
        (b'<?xml version="1.0" encoding="koi8-r"?><html>', None, "koi8-r", "meta"),
        (b"<html>plain", None, "windows-1252", "default"),
        (b"<meta charset=koi8-r>", "text/plain", "windows-1252", "default"),
        (b"", None, "windows-1252", "default"),
        ("<p>" + GREEK, None, "utf-8", "detector"),
        (GREEK.encode("iso-8859-7"), None, "iso-8859-7", "detector"),
        (RUSSIAN.encode("windows-1251"), "text/html", "windows-1251", "detector"),
        (RUSSIAN.encode("koi8-r"), None, "koi8-r", "detector"),
        ("日本語のテキスト、文字コード判定。".encode("iso2022_jp"), None, "iso-2022-jp", "detector"),
        ("한국어 텍스트입니다 그리고 조금 더".encode("cp949"), None, "euc-kr", "detector"),
        ("<html>abc" * 9, "text/html; charset=utf-16", "windows-1252", "default"),
    ],
)
def test_who_decides(body: bytes | str, content_type: str | None, name: str, source: str) -> None:
    raw = body.encode() if isinstance(body, str) else body
    assert decide(raw, content_type) == CharsetChoice(name, source)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("header", [None, "declared", "only the family"])
def test_wide_text_without_a_mark(codec: str, header: str | None) -> None:
    label = {"declared": codec, "only the family": codec[:6]}.get(header or "")
    if label and label.startswith("utf-32-"):
        label = label.replace("32-", "32")
    text = "<html><p>" + GREEK
    choice = decide(text.encode(codec), label and f"text/html; charset={label}")
    assert choice.name == codec[:6] + codec[7:]
    assert decode(text.encode(codec), choice) == text


def test_utf_8_with_a_broken_character_and_a_cut_end_is_still_utf_8() -> None:
    body = ("<p>" + GREEK * 3).encode()
    assert decide(body[:-1], None) == CharsetChoice("utf-8", "detector")
    assert decide(body[:40] + b"\xff" + body[40:], None) == CharsetChoice("utf-8", "detector")


def test_the_telling_bytes_may_come_late() -> None:
    body = b"<p>only ascii here </p>" * 20_000 + RUSSIAN.encode("windows-1251")
    assert decide(body, None).name == "windows-1251"


def test_the_mark_is_no_part_of_the_text() -> None:
    for body in (b"\xef\xbb\xbfhi", b"\xff\xfeh\x00i\x00", b"\x00\x00\xfe\xff\x00\x00\x00h\x00\x00\x00i"):
        assert decode(body, decide(body, None)) == "hi"


@pytest.mark.parametrize("name", sorted({*LABELS.values(), "utf-32le", "utf-32be"}))
def test_every_encoding_decodes_any_bytes_to_valid_text(name: str) -> None:
    lead_and_trail = b"".join(bytes([lead, trail, 0x3C]) for lead in range(256) for trail in range(0, 256, 5))
    for body in (bytes(range(256)), lead_and_trail, b"\x1b$B\x30\x21\x1b(B<", b"\x81", b"\xd8\x00\xdc"):
        decode(body, CharsetChoice(name, "header")).encode("utf-8")


@pytest.mark.parametrize("name", sorted(set(LABELS.values()) - {"replacement", "x-user-defined"}))
def test_markup_survives_in_every_encoding_of_the_standard(name: str) -> None:
    codec = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}.get(name, "ascii")
    assert decode("<a href=/x>ok</a>".encode(codec), CharsetChoice(name, "header")) == "<a href=/x>ok</a>"


@given(st.binary(max_size=300), st.one_of(st.none(), st.text(max_size=40)))
def test_any_bytes_have_an_encoding_and_a_text(body: bytes, content_type: str | None) -> None:
    choice = decide(body, content_type)
    assert choice.source in {"bom", "header", "meta", "detector", "default"}
    assert webencodings.lookup(choice.name) or choice.name.startswith("utf-32")
    decode(body, choice).encode("utf-8")


@given(st.text(max_size=200).filter(lambda text: not text.startswith("\ufeff")))
def test_declared_utf_8_comes_back_as_it_was(text: str) -> None:
    body = text.encode()
    if not body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        assert decode(body, decide(body, "text/html; charset=utf-8")) == text


def test_gbk_is_read_as_gb18030() -> None:
    assert decode("𠮷€".encode("gb18030"), CharsetChoice("gbk", "header")) == "𠮷€"


def test_labels_mean_what_browsers_mean() -> None:
    assert encoding_name("ISO-8859-1") == encoding_name(" us-ascii\n") == "windows-1252"
    assert encoding_name("gb2312") == "gbk"
    assert encoding_name("sjis") == "shift_jis"
    assert encoding_name("utf-7") is encoding_name("rot13") is encoding_name("") is None


@pytest.mark.parametrize(
    ("head", "labels"),
    [
        (b"<META CHARSET = 'a' >", ["a"]),
        (b"<meta/charset=a>", ["a"]),
        (b"<meta charset=a", []),
        (b"<meta charset='a>", []),
        (b"<metacharset=a>", []),
        (b"<!-- <meta charset=a> --><meta charset=b>", ["b"]),
        (b"<!--><meta charset=b>", ["b"]),
        (b"<!-- <meta charset=a>", []),
        (b'<p title="<meta charset=a>"><meta charset=b>', ["b"]),
        (b"<? <meta charset=a> ?><meta charset=b>", ["b"]),
        (b"<meta http-equiv=content-type content='text/html;charset = \"a\"'>", ["a"]),
        (b"<meta content='text/html;charset=a'>", []),
        (b"<meta name=x charset=a charset=b>", ["a"]),
        (b"<?xml version='1.0' encoding='a'?><meta charset=b>", ["b", "a"]),
        (b"\n<?xml encoding=a?>", []),
        (b"<script>'<meta charset=a>'</script>", ["a"]),
        (b"<script>" + b" " * 2000 + b"'<meta charset=a>'</script>", ["a"]),
        (b" " * 2000 + b"<script>'<meta charset=a>'</script><meta charset=b>", ["b"]),
        (b" " * 9000 + b"<meta charset=a>", ["a"]),
        (b" " * SCAN_BYTES + b"<meta charset=a>", []),
    ],
)
def test_declared_labels(head: bytes, labels: list[str]) -> None:
    assert list(declared_labels(head)) == labels
