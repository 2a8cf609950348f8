"""What a crawl amounts to, without what may differ from run to run: times, names of files, ports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import duckdb


class CrawlOutcome(NamedTuple):
    """The content of a crawl folder as sets of rows, to be compared with another crawl of the same web."""

    pages: set[tuple]
    links: set[tuple]
    duplicates: set[tuple]
    removed: set[tuple]
    ledger: set[tuple]
    frontier: set[tuple]
    seen: set[tuple]
    counts: set[tuple]


def outcome_of(crawl: Path) -> CrawlOutcome:
    """Read a crawl folder's tables, and the state that its newest manifest names."""
    manifests = [json.loads(path.read_bytes()) for path in sorted(crawl.glob("rounds/*/manifest.json"))]
    files: dict[str, list[str]] = {}
    for entry in manifests[-1]["files"]:
        files.setdefault(entry["table"], []).append(str(crawl / entry["path"]))
    frontier = (
        "url, status, depth, priority, visits, changes, discovered_from, in_pages, duplicate_of, content_hash"
    )
    # A robots.txt may differ from web to web in the pause that it asks for.
    digest = "CASE kind WHEN 'robots' THEN NULL ELSE content_digest END"
    ledger = f"round, kind, url, outcome, reason, fetch_status, {digest}, duplicate_of"
    return CrawlOutcome(
        pages=_table(crawl, "pages", "round, url, content_hash, title, depth, discovered_from, changed"),
        links=_table(crawl, "links", "round, source_url, target_url, anchor"),
        duplicates=_table(crawl, "duplicates", "round, url, kept_url, kind, similarity"),
        removed=_table(crawl, "removed", "round, url, reason"),
        ledger=_table(crawl, "captures", ledger),
        frontier=_rows(f"SELECT {frontier} FROM read_parquet({files['calendar']})"),
        seen=_rows(f"SELECT k1, k2, count(*) FROM read_parquet({files['seen']}) GROUP BY ALL"),
        counts={
            (manifest["round"], name, value)
            for manifest in manifests
            for name, value in [
                ("planned", manifest["planned"]),
                *manifest["counters"].items(),
                *(
                    (f"{outcome}/{why}", n)
                    for outcome, whys in manifest["outcomes"].items()
                    for why, n in whys.items()
                ),
            ]
        },
    )


def differences(expected: CrawlOutcome, found: CrawlOutcome) -> list[str]:
    """Return up to five rows of each part that only one of two outcomes has."""
    lines = []
    for name, one, other in zip(CrawlOutcome._fields, expected, found, strict=True):
        lines += [f"{name}: missing {row}" for row in sorted(one - other, key=repr)[:5]]
        lines += [f"{name}: extra {row}" for row in sorted(other - one, key=repr)[:5]]
    return lines


def _table(crawl: Path, name: str, columns: str) -> set[tuple]:
    if not list(crawl.glob(f"tables/{name}/*/*.parquet")):
        return set()
    source = f"read_parquet('{crawl}/tables/{name}/*/*.parquet', hive_partitioning=true)"
    return _rows(f"SELECT {columns} FROM {source}")


def _rows(query: str) -> set[tuple]:
    rows = duckdb.sql(query).fetchall()
    assert len(set(rows)) == len(rows), f"a row stands twice: {query}"
    return set(rows)
