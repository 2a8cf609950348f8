"""Common Crawl's example queries on our tables, through the one view that docs/outputs.md gives.

Right on a small crawl whose rows are known, and running on the toy crawl.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connectors import cdxj, tables
from schemas.flags import CrawlFlags
from schemas.round import RoundSpec
from tests.pipelines.ccindex_queries import QUERIES
from tests.pipelines.ccindex_rows import AT, ICELANDIC, PAGES, WARC, rows
from tests.pipelines.conftest import ToyCrawl
from transforms.records import capture_record

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "outputs.md"
PUBLISHED = 28
"""Files under src/sql/examples/cc-index of cc-index-table, fe3a5e0 (2026-05)."""

TYPES = {
    "VARCHAR": "string",
    "INTEGER": "int",
    "SMALLINT": "short",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}
CC_STRINGS = (
    "url_surtkey url url_host_name url_host_tld url_host_2nd_last_part url_host_3rd_last_part url_host_4th_last_part "
    "url_host_5th_last_part url_host_registry_suffix url_host_registered_domain url_host_private_suffix "
    "url_host_private_domain url_host_name_reversed url_protocol url_port:int url_path url_query fetch_time:timestamp "
    "fetch_status:short fetch_redirect content_digest content_mime_type content_mime_detected content_charset "
    "content_languages content_truncated warc_filename warc_record_offset:int warc_record_length:int warc_segment "
    "crawl subset"
)
CC_COLUMNS = [(name, kind or "string") for name, _, kind in (c.partition(":") for c in CC_STRINGS.split())]
"""Names and types of cc-index-table's schema/cc-index-schema-flat.json, in its order."""


def statements(folder: Path) -> list[str]:
    """Return the statements of the document's first SQL block, which make the view."""
    block = re.search(r"```sql\n(CREATE SCHEMA.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return [text for text in block[1].replace("DIR", str(folder)).split(";") if text.strip()]


def database(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return DuckDB with the view, the ranked sites, and ccindex as a schema that needs no naming."""
    connection = duckdb.connect()
    for statement in statements(folder):
        connection.execute(statement)
    connection.execute("CREATE TABLE main.ranks (site VARCHAR, rank INT)")
    ranked = ["wikipedia.org", "vatican.va", "index.hu", "nobody.example", "vefur.is", "moved.example"]
    connection.executemany("INSERT INTO main.ranks VALUES (?, ?)", [[s, n] for n, s in enumerate(ranked, 1)])
    connection.execute("SET search_path = 'ccindex,main'")
    return connection


def answer(connection: duckdb.DuckDBPyConnection, name: str, crawl: str) -> list[tuple[Any, ...]]:
    """Return the rows of one query on one crawl."""
    sql = QUERIES[name]
    return connection.execute(sql, {"crawl": crawl} if "$crawl" in sql else {}).fetchall()


@pytest.fixture(scope="module")
def lingua(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """Return the view over a crawl whose rows are those above, written as a round writes them."""
    folder = tmp_path_factory.mktemp("lingua")
    spec = RoundSpec("", "lingua", "", 1, "any", 1, None, "", 0.0, 0.0, 0.0, CrawlFlags(), "")
    target = folder / "tables/captures/round=000001/part.parquet"
    target.parent.mkdir(parents=True)
    records = [capture_record(row, None, spec) for row in rows()]
    tables.write_table(target, "captures", tables.table_from_rows("captures", records))
    return database(folder)


def test_there_is_a_query_for_each_published_one() -> None:
    assert len(QUERIES) == PUBLISHED
    assert set(EXPECTED) | set(SAMPLES) == set(QUERIES)


def place(number: int) -> tuple[str, int, int]:
    """Return where the record of the row with this number lies."""
    return (WARC, 1000 * number, 100 + number)


EXPECTED: dict[str, Any] = {
    "compare-mime-type-http-vs-detected": [
        ("text/html", "text/html", 20),
        ("application/x-pdf", "text/html", 1),
        ("text/html", "application/pdf", 1),
    ],
    "count-by-partition": [
        ("lingua", "crawldiagnostics", 3),
        ("lingua", "robotstxt", 4),
        ("lingua", "warc", 22),
    ],
    "count-by-tld-page-host-domain": [
        ("va", 5, 1, 1),
        ("hu", 4, 1, 1),
        ("cat", 3, 1, 1),
        ("org", 3, 3, 2),
        ("com", 2, 1, 1),
        ("fr", 2, 2, 1),
        ("is", 2, 1, 1),
        ("de", 1, 1, 1),
    ],
    "count-domains-alexa-top-1m": [
        ("wikipedia.org", 1, 2),
        ("vatican.va", 2, 6),
        ("index.hu", 3, 6),
        ("vefur.is", 5, 3),
    ],
    "count-domains-of-tld": [("index.hu", 4)],
    "count-fetch-status": [(404, 2), (301, 1)],
    "count-hostname-elements": [("ecole", 2, {2: 2}), ("fr", 2, {1: 2})],
    "count-idna": [("xn--mnchen-3ya.de", "xn--mnchen-3ya.de", 1)],
    "count-language-tld": [("hun", "hu", 3)],
    "count-robotstxt-url-paths": [("/robots.txt", 4)],
    "count-url-path-elements": [("menu", 2)],
    "discovery-of-non-english-sites": [
        ("www.vatican.va", "vatican.va", 5, 5, 2, 2, 1, 40.0, 3, [[2, "eng"], [1, "ita"], [1, "deu"]]),
    ],
    "get-home-pages-languages": [("http://vefur.is/", "isl"), ("http://www.diari.cat/", "cat")],
    "get-language-translations-url-path": [("vatican.va", 4, 5, {"de": 1, "en": 2, "fr": 1, "it": 1})],
    "get-records-for-language": [(url, *place(number)) for number, url in enumerate(ICELANDIC, 16)],
    "get-records-home-pages": [
        ("wikipedia.org", 1, "http://www.wikipedia.org/", AT + 8, *place(8), None),
        ("vatican.va", 2, "http://www.vatican.va/", AT + 5, *place(5), None),
        ("vefur.is", 5, "http://vefur.is/", AT + 16, *place(16), None),
    ],
    "get-records-of-domain": sorted((url, *place(number)) for number, (url, _) in enumerate(PAGES[:5], 1)),
    "get-records-of-mime-type": [
        ("http://a.example.com/x.pdf", "text/html", "application/pdf", *place(51)),
        ("http://a.example.com/y", "application/x-pdf", "text/html", *place(52)),
    ],
    "get-records-robotstxt": [
        (
            site,
            rank,
            f"http://{host}/robots.txt",
            AT + number,
            200,
            *place(number),
            None,
            "text/html",
            "text/html",
        )
        for site, rank, host, number in (
            ("vatican.va", 2, "www.vatican.va", 73),
            ("index.hu", 3, "index.hu", 71),
            ("vefur.is", 5, "vefur.is", 72),
        )
    ],
    "host_length_distrib": [(2, 7, 3), (3, 15, 8)],
    "similar-domains": [("wikipedia.org", 0, 2, 2), ("wikipedla.org", 1, 1, 1)],
    "site-discovery-by-language": [
        ("cat", "www.diari.cat", 2, 100.0, pytest.approx(200 / 3), pytest.approx(200 / 3), [[2, "cat"]])
    ],
    "site-discovery-hungarian": [
        ("index.hu", "index.hu", 4, 4, 3, 1, 0, 75.0, 2, [[3, "hun"], [1, "eng"]]),
    ],
}
SAMPLES = {
    "random-sample-extract",
    "random-sample-urls",
    "average-warc-record-length-by-mime-type",
    "correlation-language-charset",
    "loglikelihood-language-tld",
}


def plain(value: Any) -> Any:
    """Return a value as it stands in EXPECTED: instants as epoch seconds, JSON as lists."""
    if hasattr(value, "timestamp"):
        return value.timestamp()
    return json.loads(value) if str(value).startswith("[[") else value


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_answer_is_right(lingua: duckdb.DuckDBPyConnection, name: str) -> None:
    found = [tuple(map(plain, row)) for row in answer(lingua, name, "lingua")]
    assert found == EXPECTED[name]


def test_sizes_by_media_type_add_up(lingua: duckdb.DuckDBPyConnection) -> None:
    found = answer(lingua, "average-warc-record-length-by-mime-type", "lingua")
    assert [row[:2] for row in found] == [("text/html", 21), ("application/pdf", 1)]
    assert sum(row[2] for row in found) == sum(row[5] for row in found) == pytest.approx(100)
    assert found[1][3] == found[1][4] == 151


def test_likelihoods_are_those_of_the_counts(lingua: duckdb.DuckDBPyConnection) -> None:
    by_tld = {row[:2]: row[2:] for row in answer(lingua, "loglikelihood-language-tld", "lingua")}
    both, likelihood, tld_given_language, language_given_tld = by_tld["hu", "hun"]
    assert (both, tld_given_language, language_given_tld) == (3, 1.0, 0.75)
    hungarian, of_hu, pages = 3, 4, 22
    ratios = [3 / (of_hu * hungarian / pages), 1 / (of_hu * 19 / pages), 18 / (18 * 19 / pages)]
    assert likelihood == pytest.approx(2 * sum(map(math.log, ratios)))
    charsets = {row[:2]: row[2:] for row in answer(lingua, "correlation-language-charset", "lingua")}
    assert charsets["iso-8859-1", "spa"][2:] == (1.0, 1.0)
    assert charsets["iso-8859-1", "spa"][1] > charsets["utf-8", "fra"][1]


def test_samples_are_parts_of_the_pages(lingua: duckdb.DuckDBPyConnection) -> None:
    english = {url for url, language in PAGES if language == "en"}
    english |= {"http://a.example.com/x.pdf", "http://a.example.com/y"}
    assert {row[0] for row in answer(lingua, "random-sample-extract", "lingua")} <= english
    assert 0 < len(answer(lingua, "random-sample-urls", "lingua")) < 25


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_the_query_runs_on_the_toy_crawl(toy_crawl: ToyCrawl, name: str) -> None:
    found = answer(database(toy_crawl.folder), name, "crawl")
    if name in ("compare-mime-type-http-vs-detected", "count-fetch-status", "host_length_distrib"):
        assert len(found) > 1


def test_the_view_holds_every_record_that_the_index_has(toy_crawl: ToyCrawl) -> None:
    counted = dict(row[1:] for row in answer(database(toy_crawl.folder), "count-by-partition", "crawl"))
    indexed: Counter[str] = Counter()
    for path in (toy_crawl.folder / "index").glob("*/*.cdxj.gz"):
        with path.open("rb") as file:
            indexed[path.name.removesuffix(".cdxj.gz")] += len(list(cdxj.read_lines(file)))
    assert counted == indexed and set(counted) == {"warc", "crawldiagnostics", "robotstxt"}


def test_languages_of_the_toy_crawl_are_the_codes_that_the_queries_ask_for(toy_crawl: ToyCrawl) -> None:
    found = answer(database(toy_crawl.folder), "count-language-tld", "crawl")
    assert found[0][:2] == ("eng", "example")


def test_captures_and_the_view_begin_with_common_crawls_32_columns(toy_crawl: ToyCrawl) -> None:
    view = database(toy_crawl.folder).execute("DESCRIBE ccindex.ccindex").fetchall()
    assert [(name, TYPES[kind]) for name, kind, *_ in view] == CC_COLUMNS
    glob = f"{toy_crawl.folder}/tables/captures/*/*.parquet"
    table = duckdb.sql(f"DESCRIBE SELECT * FROM '{glob}'").fetchall()
    assert [(name, TYPES[kind]) for name, kind, *_ in table[:32]] == CC_COLUMNS
