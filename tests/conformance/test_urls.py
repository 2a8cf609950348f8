"""URLs against the cases of WHATWG, w3lib, Nutch, Heritrix, Safe Browsing, surt and pywb."""

from __future__ import annotations

import base64
from urllib.parse import urlunparse

from crawler.query import escape_octets
from crawler.surt import surt_key
from crawler.urls import NormalUrl, normalise

NO_DNS_NAME = {"w0317", "w0490", "t009", "t010", "t014", "t030", "t031"}

PATHS_ARE_UTF8 = {"wl0154", "wl0168", "wl0169"}
ENCODINGS_ARE_WHATWG = {"wl0550", "wl0551"}
QUERY_TEXT_IS_KEPT = {"wl0538", "wl0540", "wl0541", "wl0542", "wl0543", "wl0545", "wl0568"}
SORTED_BY_NAME_ALONE = {"wl0534", "wl0537"}
HOST_IS_CHECKED = {"wl0076"}
RESERVED_ESCAPES = [(558, 558), (620, 620), (628, 631), (641, 641), (650, 650), (653, 665), (672, 679)]
RESERVED_ESCAPES += [(681, 682), (693, 693), (698, 711), (714, 717)]
RESERVED_ESCAPES_ARE_KEPT = {f"wl0{n}" for first, last in RESERVED_ESCAPES for n in range(first, last + 1)}

VALUE_IS_NOT_RANDOM = {"tr009"}
INDEX_PAGES_ARE_PAGES = {f"tr0{number}" for number in (18, 21, 24, 27, 33, 36, 39, 42, 45, 48, 51, 54)}
NO_QUERY_IN_A_FRAGMENT = {"tr060"}
HOSTS_ARE_KEPT = {"tr069", "tr090"}

ESCAPES_ARE_NOT_UNDONE_TWICE = {"sb00", "sb03"}
A_PORT_IS_PART_OF_A_URL = {"sb24"}
A_SCHEME_IS_NEEDED = {"sb12"}
NO_SPACE_IN_A_HOST = {"sb27"}
NO_SUCH_FUNCTION = {"su001", "su004", "su007", "su010", "su013", "su016"}
POST_BODIES_ARE_NOT_KEYS = {"cx192"}


def normal(raw, base=None, encoding="utf-8"):
    """Return the normal form, or the reason for its rejection in brackets."""
    answer = normalise(raw, base, encoding)
    return answer.url if isinstance(answer, NormalUrl) else f"<{answer.reason}>"


def test_whatwg(cases):
    rows = cases("url_whatwg")
    assert len(rows) >= 354
    assert {row["id"] for row in rows if not agrees_with_whatwg(row)} == NO_DNS_NAME


def agrees_with_whatwg(row):
    if row["kind"] == "host_to_ascii":
        answer = normal(f"http://{row['input']}/")
        return (
            answer == "<invalid_url>" if row["expected"] is None else answer == f"http://{row['expected']}/"
        )
    answer = normal(row["input"], row["base"])
    if row["expected"] is None:
        return answer == "<invalid_url>"
    if not row["crawlable"]:
        return answer == "<unsupported_scheme>"
    return answer.startswith("http") and answer == normal(row["expected"])


def text_of(given, encoding="utf-8"):
    """Return a case's input as a link's text: some are bytes, some are parts."""
    if isinstance(given, dict):
        octets = base64.b64decode(given["__b64__"])
        return escape_octets(octets) if encoding == "utf-8" else octets.decode(encoding)
    return urlunparse(given) if isinstance(given, list) else given


def test_w3lib(cases):
    rows = cases("url_w3lib")
    assert len(rows) >= 718
    assert {row["id"] for row in rows if not agrees_with_w3lib(row)} == (
        PATHS_ARE_UTF8
        | ENCODINGS_ARE_WHATWG
        | QUERY_TEXT_IS_KEPT
        | SORTED_BY_NAME_ALONE
        | HOST_IS_CHECKED
        | RESERVED_ESCAPES_ARE_KEPT
    )


def agrees_with_w3lib(row):
    encoding = (row.get("opts") or {}).get("encoding", "utf-8")
    return normal(text_of(row["input"], encoding), encoding=encoding) == normal(row["expected"])


def test_session_ids_and_other_cleaning(cases):
    rows = cases("url_session_traps")
    assert len(rows) >= 31
    differing = {row["id"] for row in rows if normal(row["input"]) != normal(row["expected"])}
    assert differing == (
        VALUE_IS_NOT_RANDOM | INDEX_PAGES_ARE_PAGES | NO_QUERY_IN_A_FRAGMENT | HOSTS_ARE_KEPT
    )


def test_safe_browsing_and_surt(cases):
    rows = cases("url_surt_safebrowsing")
    assert len(rows) >= 31
    differing = {row["id"] for row in rows if not agrees_with_index_readers(row)}
    assert differing == (
        ESCAPES_ARE_NOT_UNDONE_TWICE
        | A_PORT_IS_PART_OF_A_URL
        | A_SCHEME_IS_NEEDED
        | NO_SPACE_IN_A_HOST
        | NO_SUCH_FUNCTION
    )


def agrees_with_index_readers(row):
    if row["kind"] == "safebrowsing_canonical":
        return normal(row["input"]) == row["expected"]
    answer = normalise(row["input"])
    url = answer.url if isinstance(answer, NormalUrl) else row["input"]
    return row["kind"] == "surt_key" and surt_key(url) == row["expected"]


def test_keys_of_index_rows(cases):
    rows = cases("cdxj_rows")
    assert len(rows) >= 23
    differing = {row["id"] for row in rows if surt_key(normal(row["url"])) != row["key"]}
    assert differing == POST_BODIES_ARE_NOT_KEYS
