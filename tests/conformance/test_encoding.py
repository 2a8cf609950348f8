"""Encodings, base URLs and meta refresh against html5lib, chardet, web-platform-tests and w3lib."""

from __future__ import annotations

import base64
import codecs
import hashlib

import pytest

from crawler.charset import decide, decode, encoding_name
from crawler.html import read_html
from crawler.mime import parse_content_type
from crawler.urls import NormalUrl, normalise

CODEC_OF = {
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "utf-32le": "utf-32-le",
    "utf-32be": "utf-32-be",
}
SCRIPTS_DO_NOT_RUN = {"h554"}
CONTENT_TYPE_AS_BROWSERS_READ_IT = {"we015", "we020", "we021", "we022", "we030", "we034"}
META_AS_THE_STANDARD_READS_IT = {"we041", "we046", "we047", "we048", "we058", "we062", "we063"}
LABELS_OF_THE_STANDARD = {"we065"}
ASCII_IS_WINDOWS_1252 = {"we099", "we100", "we101", "we102"}
NOSCRIPT_AND_SCRIPT_ALWAYS_IGNORED = {"we149", "we151"}
UNCLOSED_TAGS_AS_PARSED = {"we116", "we127"}
W3LIB_ON_PURPOSE = (
    CONTENT_TYPE_AS_BROWSERS_READ_IT
    | META_AS_THE_STANDARD_READS_IT
    | LABELS_OF_THE_STANDARD
    | ASCII_IS_WINDOWS_1252
    | NOSCRIPT_AND_SCRIPT_ALWAYS_IGNORED
    | UNCLOSED_TAGS_AS_PARSED
)


def codec_of(name):
    return codecs.lookup(CODEC_OF.get(name.lower(), name)).name if name else None


def unpacked(value):
    if isinstance(value, dict) and "__b64__" in value:
        return base64.b64decode(value["__b64__"])
    return [unpacked(item) for item in value] if isinstance(value, list) else value


def charset_of_header(header):
    read = parse_content_type(header and header.removeprefix("Content-Type: "))
    return encoding_name(read.charset) if read and read.charset else None


def read_bom(body):
    choice = decide(body, None)
    return codec_of(choice.name) if choice.source == "bom" else None


def declared(body):
    choice = decide(body if isinstance(body, bytes) else body.encode(), None)
    return codec_of(choice.name) if choice.source == "meta" else None


def text_and_name(header, body):
    choice = decide(body, header and header.removeprefix("Content-Type: "))
    return [codec_of(choice.name), decode(body, choice)]


def base_url(html, url="http://page.invalid/"):
    html, url = (part.decode() if isinstance(part, bytes) else part for part in (html, url))
    return normalise(read_html(html, url).base_url)


def refresh_url(html, url, encoding="utf-8"):
    html = html.decode(encoding) if isinstance(html, bytes) else html
    return read_html(html, url, encoding).refresh_url


def answer_and_expected(case):
    arguments, expected = unpacked(case["args"]), unpacked(case["expected"])
    match case["kind"]:
        case "read_bom":
            return read_bom(*arguments), codec_of(expected[0])
        case "http_content_type_encoding":
            return codec_of(charset_of_header(*arguments)), codec_of(expected)
        case "html_body_declared_encoding":
            return declared(*arguments), codec_of(expected)
        case "resolve_encoding":
            return codec_of(encoding_name(*arguments)), codec_of(expected)
        case "html_to_unicode":
            return text_and_name(*arguments), [codec_of(expected[0]), expected[1]]
        case "get_base_url":
            return base_url(*arguments), normalise(expected or "http://page.invalid/")
        case "get_meta_refresh":
            target = normalise(expected[1]) if expected[1] else None
            return refresh_url(*arguments), target.url if isinstance(target, NormalUrl) else None
    raise AssertionError(case["kind"])


def test_html5lib_documents_differ_only_where_scripts_would_run(cases):
    rows = cases("encoding_html5lib")
    assert len(rows) >= 28
    differing = {
        case["id"]
        for case in rows
        if decide(base64.b64decode(case["bytes_b64"]), None).name != case["expected"].lower()
    }
    assert differing == SCRIPTS_DO_NOT_RUN


def test_real_pages_decode_to_the_text_that_chardet_expects(cases):
    rows = cases("encoding_realpages_chardet")
    assert len(rows) >= 40
    for case in rows:
        body = base64.b64decode(case["bytes_b64"])
        text = decode(body, decide(body, None))
        digests = {hashlib.sha256(form.encode()).hexdigest() for form in (text, "\ufeff" + text)}
        assert case["text_sha256"] in digests, (case["id"], decide(body, None))


def test_content_types_of_web_platform_tests(cases):
    rows = cases("content_type_wpt")
    assert len(rows) >= 19
    for case in rows:
        header = ", ".join(case["input"]) if isinstance(case["input"], list) else case["input"]
        read = parse_content_type(header)
        assert (read and read.essence) == (case["mime"] and case["mime"].split(";")[0]), case["id"]
        expected = case["expected_encoding"]
        assert charset_of_header(header) == (expected and expected.lower()), case["id"]


def test_w3lib_cases_differ_only_on_purpose(cases):
    rows = cases("html_encoding_base_refresh_w3lib")
    assert len(rows) >= 149
    differing = {case["id"] for case in rows if len({*map(str, answer_and_expected(case))}) > 1}
    assert differing == W3LIB_ON_PURPOSE


@pytest.mark.parametrize("name", ["encoding_html5lib", "encoding_realpages_chardet"])
def test_a_choice_is_repeatable_and_its_text_is_valid(cases, name):
    for case in cases(name):
        body = base64.b64decode(case["bytes_b64"])
        choice = decide(body, None)
        assert choice == decide(bytes(bytearray(body)), None)
        decode(body, choice).encode("utf-8")
