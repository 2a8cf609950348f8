"""Names in a crawl folder are the contract's."""

from __future__ import annotations

from connectors import layout


def test_names_are_those_of_the_contract() -> None:
    assert layout.CRAWL == "crawl.json"
    assert layout.manifest_path(1) == "rounds/000001/manifest.json"
    assert layout.journal_path(1, 3, 2) == "rounds/000001/journal/shard-0003/000002.json"
    assert layout.warc_path(1, "robotstxt", "x.warc.gz") == "warc/000001/robotstxt/x.warc.gz"
    assert layout.index_path(1, "warc") == "index/000001/warc.cdxj.gz"
    assert layout.table_path("captures", 1, "a.parquet") == "tables/captures/round=000001/a.parquet"
    assert layout.report_path(1) == "reports/000001.html"
    assert layout.staged(1, "tables/x") == "rounds/000001/staged/tables/x"
    assert layout.stop_path(2, "ab") == "rounds/000002/stop-ab.json"


def test_rounds_are_read_back_from_names() -> None:
    assert layout.warc_round(layout.warc_path(12, "warc", "x")) == 12
    assert layout.warc_round("index/000012/warc.cdxj.gz") is None
    assert layout.round_number("000012") == 12
    assert layout.round_number("1234567") == 1_234_567
    assert layout.round_number("12") is None
    assert layout.round_number("lock") is None


def test_inject_names_sort_by_time() -> None:
    instants = [0.0, 1.5, 1_700_000_000.0, 1_700_000_000.000001, 4_000_000_000.0]
    names = [layout.inject_path(at, "ff") for at in instants]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
