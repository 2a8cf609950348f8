"""What rounds decided about a URL, from hand-made rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connectors import layout, tables
from connectors.rounds import CrawlFolder
from schemas.crawl import CrawlIdentity
from schemas.fetch import OutcomeRow
from schemas.flags import CrawlFlags
from schemas.manifest import FORMAT_VERSION, FileEntry, Manifest
from schemas.round import RoundSpec
from transforms.crawl_now import CrawlNow, instant
from transforms.decisions import Decisions
from transforms.records import capture_record

PAGE, ROBOTS = "http://a.example/page", "http://a.example/robots.txt"
NOW = 1_800_000_000.0


def row(url: str, kind: str, at: float | None, **facts: Any) -> OutcomeRow:
    outcome = OutcomeRow(url, 1, 1, kind, "fetched", None, None, url, 0, 0.5, None, 0)
    return outcome._replace(started_at=at, finished_at=at and at + 1, **facts)


def crawl_of(root: Path, rounds: list[list[OutcomeRow]]) -> CrawlNow:
    """Return a crawl of one partition with these captures, a list for each round."""
    folder = CrawlFolder.at(str(root))
    folder.create(CrawlIdentity(FORMAT_VERSION, "made", 1, "salt"))
    for number, rows in enumerate(rounds, 1):
        spec = RoundSpec(str(root), "made", "salt", 1, "any", number, None, "", 0, 0, 0, CrawlFlags(), "")
        records = tables.table_from_rows("captures", [capture_record(r, None, spec) for r in rows])
        path = layout.table_path("captures", number, "part-0000-x.parquet")
        with folder.storage.creating(path) as local:
            tables.write_table(Path(local), "captures", records)
        files = [FileEntry(path, "", "captures", 0, 0, len(rows), 0, "")]
        flags = CrawlFlags().to_json()
        folder.commit_manifest(
            Manifest(1, number, f"r{number}", number - 1 or None, "", "", "", flags, 0, {}, {}, {}, [], files)
        )
    return CrawlNow(folder, NOW)


def test_the_robots_txt_of_a_request_is_the_last_one_before_it(tmp_path: Path) -> None:
    first = [row(ROBOTS, "robots", NOW), row(PAGE, "planned", NOW + 10), row(ROBOTS, "robots", NOW + 20)]
    second = [row(PAGE, "planned", NOW + 30)]
    third = [row(PAGE, "planned", None, outcome="robots_denied"), row(ROBOTS, "robots", NOW + 40)]
    decided = Decisions(crawl_of(tmp_path, [first, second, third])).of(PAGE, 1)
    assert [entry["round"] for entry in decided] == [1, 2, 3]
    fetched_at = [entry["robots"]["fetched_at"] for entry in decided]
    assert fetched_at == [instant(NOW), instant(NOW + 20), instant(NOW + 40)]
    assert [entry["robots"]["round"] for entry in decided] == [1, 1, 3]


def test_redirects_of_a_robots_txt_are_followed_as_far_as_they_were_asked(tmp_path: Path) -> None:
    moved, away = "http://b.example/robots.txt", "http://c.example/robots.txt"
    asked = [
        row(ROBOTS, "robots", NOW, outcome="redirected", redirect_url=moved),
        row(moved, "robots", NOW + 1, outcome="redirected", redirect_url=away),
        row(PAGE, "planned", NOW + 5),
    ]
    (entry,) = Decisions(crawl_of(tmp_path, [asked])).of(PAGE, 1)
    assert (entry["robots"]["url"], entry["robots"]["via"]) == (moved, [ROBOTS])


def test_a_robots_txt_that_redirects_in_a_circle_ends(tmp_path: Path) -> None:
    moved = "http://b.example/robots.txt"
    asked = [
        row(ROBOTS, "robots", NOW, outcome="redirected", redirect_url=moved),
        row(moved, "robots", NOW + 1, outcome="gone", redirect_url=ROBOTS),
        row(PAGE, "planned", NOW + 5),
    ]
    (entry,) = Decisions(crawl_of(tmp_path, [asked])).of(PAGE, 1)
    assert entry["robots"]["url"] in (ROBOTS, moved)
    assert len(entry["robots"]["via"]) <= 2


def test_urls_that_share_a_key_of_the_index_are_told_apart(tmp_path: Path) -> None:
    other = "http://www.a.example/PAGE"
    crawl = crawl_of(tmp_path, [[row(PAGE, "planned", NOW), row(other, "planned", NOW + 9, outcome="gone")]])
    assert [entry["outcome"] for entry in Decisions(crawl).of(PAGE, 1)] == ["fetched"]
    assert [entry["outcome"] for entry in Decisions(crawl).of(other, 1)] == ["gone"]


def test_rounds_before_the_first_that_matters_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = crawl_of(tmp_path, [[row(PAGE, "planned", NOW + number)] for number in range(4)])
    read: list[int] = []
    original = CrawlNow.rows

    def reading(self: CrawlNow, table: str, number: int, *rest: Any) -> list[dict[str, Any]]:
        read.append(number)
        return original(self, table, number, *rest)

    monkeypatch.setattr(CrawlNow, "rows", reading)
    asked = [entry["round"] for entry in Decisions(crawl).of(ROBOTS, 3, ("robots",))]
    assert asked == [] and set(read) == {3, 4}
