"""A byte changed, a file cut short or gone: the round names it and commits nothing wrong."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from connectors import layout
from pipelines import audit
from pipelines import round as round_command
from tests.fakes.calm_web import calm_web
from tests.fakes.crawl_outcome import CrawlOutcome, differences, outcome_of
from tests.fakes.kills import KilledCrawl
from tests.fakes.toy_server import serve

pytestmark = pytest.mark.timeout(600)
COMMITTED, FETCHED = "committed", "fetched"
PLACES = (0.02, 0.5, 0.97)

# Which crawl, and which of its files: the largest that matches.
FILES = [
    (COMMITTED, "rounds/000002/manifest.json"),
    (COMMITTED, "state/seen/*/*.parquet"),
    (COMMITTED, "state/calendar/*/*/*.parquet"),
    (COMMITTED, "state/host_states/*/*.parquet"),
    (COMMITTED, "state/robots/*/*.parquet"),
    (COMMITTED, "state/digests/*/*.parquet"),
    (COMMITTED, "state/bands/*/*.parquet"),
    (COMMITTED, "state/sketches/*/*.parquet"),
    (FETCHED, "rounds/000003/plan.json"),
    (FETCHED, "rounds/000003/plan/due-*.parquet"),
    (FETCHED, "rounds/000003/plan/hosts-*.parquet"),
    (FETCHED, "rounds/000003/journal/*/000001.json"),
    (FETCHED, "rounds/000003/journal/*/*-outcomes.parquet"),
    (FETCHED, "rounds/000003/journal/*/*-hosts.parquet"),
    (FETCHED, "rounds/000003/journal/*/*-robots.parquet"),
    (FETCHED, layout.work_file(3, "*.cdxj")),
    (FETCHED, "warc/000003/warc/*.warc.gz"),
]


class Bases(NamedTuple):
    """Two states of one crawl to start from, its command line for round 3, and what it should become."""

    folder: Path
    crawl: KilledCrawl
    expected: CrawlOutcome


class Case(NamedTuple):
    """A copy of a base with its own folder."""

    crawl: Path
    flags: list[str]
    expected: CrawlOutcome

    def run(self) -> tuple[int, str]:
        """Run round 3; return the exit code and the last line on stderr."""
        out = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(out):
            code = round_command.main(self.flags)
        return code, (out.getvalue().splitlines() or [""])[-1]

    def is_committed(self) -> bool:
        return (self.crawl / "rounds/000003/manifest.json").exists()

    def largest(self, pattern: str) -> Path:
        return max(self.crawl.glob(pattern), key=lambda path: (path.stat().st_size, path.name))

    def assert_undisturbed(self) -> None:
        assert differences(self.expected, outcome_of(self.crawl)) == []

    def audit_faults(self) -> list[str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            audit.main([f"--crawl={self.crawl}", "--json"])
        return json.loads(out.getvalue())["faults"]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bases]:
    folder = tmp_path_factory.mktemp("bases")
    with serve(calm_web()) as server:
        crawl = KilledCrawl(folder / "crawl", server, 0.1, 0.5)
        assert crawl.attempt(1) and crawl.attempt(2)
        shutil.copytree(crawl.crawl, folder / COMMITTED)
        assert not crawl.attempt(3, "parsing") and crawl.kills[-1].phase != "publishing"
        shutil.copytree(crawl.crawl, folder / FETCHED)
        assert crawl.attempt(3) and crawl.faults == []
        yield Bases(folder, crawl, outcome_of(crawl.crawl))


def case_of(bases: Bases, base: str, folder: Path) -> Case:
    shutil.copytree(bases.folder / base, folder / "crawl")
    flags = [flag for flag in bases.crawl.flags(3) if not flag.startswith("--crawl=")]
    return Case(folder / "crawl", [f"--crawl={folder / 'crawl'}", *flags], bases.expected)


def flipped(data: bytes, place: float) -> bytes:
    at = int(place * len(data))
    return data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]


@pytest.mark.parametrize(("base", "pattern"), FILES)
def test_damage_is_named_or_does_no_harm(bases: Bases, tmp_path: Path, base: str, pattern: str) -> None:
    for number, place in enumerate((None, *PLACES)):
        case = case_of(bases, base, tmp_path / str(number))
        file = case.largest(pattern)
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2] if place is None else flipped(whole, place))
        name = str(file.relative_to(case.crawl))
        code, line = case.run()
        if code == 0:  # It was not read, and it is not said to be in order.
            assert [fault for fault in case.audit_faults() if name not in fault] == []
            if file.exists():
                file.write_bytes(whole)
            case.assert_undisturbed()
            continue
        assert code in (1, 2) and name in line, (place, code, line)
        assert not case.is_committed()
        file.write_bytes(whole)
        assert case.run()[0] == 0
        case.assert_undisturbed()
        assert case.audit_faults() == []


def test_a_journal_entry_that_is_gone_is_named(bases: Bases, tmp_path: Path) -> None:
    case = case_of(bases, FETCHED, tmp_path)
    followed = sorted(case.crawl.glob("rounds/000003/journal/shard-*/000002.json"))[0]
    entry = followed.with_name("000001.json")
    whole = entry.read_bytes()
    entry.unlink()
    code, line = case.run()
    assert code == 1 and str(entry) in line and not case.is_committed()
    entry.write_bytes(whole)
    assert case.run()[0] == 0
    case.assert_undisturbed()


def test_without_its_last_journal_entry_a_shard_is_fetched_again(bases: Bases, tmp_path: Path) -> None:
    case = case_of(bases, FETCHED, tmp_path)
    sorted(case.crawl.glob("rounds/000003/journal/shard-*/0*.json"))[-1].unlink()
    assert case.run()[0] == 0
    case.assert_undisturbed()
    assert case.audit_faults() == []


@pytest.mark.parametrize(
    "pattern", [layout.work_file(3, "parsed-*"), "rounds/000003/shards/*", layout.work_file(3, "sketches-*")]
)
def test_what_can_be_made_again_is_not_missed(bases: Bases, tmp_path: Path, pattern: str) -> None:
    case = case_of(bases, FETCHED, tmp_path)
    found = list(case.crawl.glob(pattern))
    assert found
    for path in found:
        path.unlink()
    assert case.run()[0] == 0
    case.assert_undisturbed()


def test_a_committed_round_can_be_taken_back(bases: Bases, tmp_path: Path) -> None:
    case = case_of(bases, COMMITTED, tmp_path)
    for pattern in ("rounds/000002", "warc/000002", "index/000002", "tables/*/round=000002"):
        for folder in case.crawl.glob(pattern):
            shutil.rmtree(folder)
    again = [f"--crawl={case.crawl}", "--run_id=again", *bases.crawl.flags(2)[1:3], *bases.crawl.flags(2)[4:]]
    with contextlib.redirect_stdout(io.StringIO()):
        assert round_command.main(again) == 0
    assert case.run()[0] == 0
    case.assert_undisturbed()
    assert case.audit_faults() == []


@pytest.mark.parametrize("folders", [["rounds/000003"], ["rounds/000003", "warc/000003"]])
def test_an_unfinished_round_can_be_thrown_away(bases: Bases, tmp_path: Path, folders: list[str]) -> None:
    case = case_of(bases, FETCHED, tmp_path)
    for folder in folders:
        shutil.rmtree(case.crawl / folder)
    assert case.run()[0] == 0
    case.assert_undisturbed()
    assert case.audit_faults() == []


@pytest.mark.parametrize(
    "pattern",
    [
        "rounds/000003/plan/due-*.parquet",
        "rounds/000003/journal/*/*-outcomes.parquet",
        "rounds/000003/plan/hosts-*.parquet",
        "warc/000003/warc/*.warc.gz",
    ],
)
def test_a_file_that_is_gone_is_named(bases: Bases, tmp_path: Path, pattern: str) -> None:
    case = case_of(bases, FETCHED, tmp_path)
    file = case.largest(pattern)
    whole = file.read_bytes()
    file.unlink()
    code, line = case.run()
    assert code in (1, 2) and str(file.relative_to(case.crawl)) in line, (code, line)
    assert not case.is_committed()
    file.write_bytes(whole)
    assert case.run()[0] == 0
    case.assert_undisturbed()
