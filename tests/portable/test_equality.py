"""Whatever engine runs the rounds, the crawl is the same, row for row."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from tests.fakes.tables import different_rows, normalised, table_of_equality
from tests.portable.crawls import EngineCrawl

SHARD_LINE = re.compile(r"^\S+ \S+ INFO round (\d+) shard (\d+): (start|checkpoint \d+|end), ", re.MULTILINE)
# Without the extra gcp, Beam warns at its import, which sets up a log of its own in its worker processes.
BEAM_LINE = re.compile(r"^[A-Z]+:[\w.]+:")
WORKER_LINE = re.compile(r"^\S+ \S+ INFO worker \S+: (process|started as process) \d+")


@pytest.mark.timeout(1800)
def test_every_engine_makes_the_same_tables(
    crawls: dict[str, EngineCrawl], capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {name: normalised(crawl.folder) for name, crawl in crawls.items()}
    with capsys.disabled():
        print(f"\n{table_of_equality(tables)}")
    first, *others = tables
    assert min(tables[first][table].total() for table in ("pages", "duplicates", "links", "frontier")) > 10
    for other in others:
        for table, rows in tables[first].items():
            assert different_rows(rows, tables[other][table]) == {}, (other, table)


@pytest.mark.timeout(1800)
def test_each_shard_logs_its_start_its_checkpoints_and_its_end(crawls: dict[str, EngineCrawl]) -> None:
    for name, crawl in crawls.items():
        lines = SHARD_LINE.findall(crawl.said)
        said = {(number, what.split()[0]) for number, _, what in lines}
        assert said == {(n, what) for n in "123" for what in ("start", "checkpoint", "end")}, (
            name,
            crawl.said,
        )
        assert name == "in_memory" or {shard for _, shard, _ in lines} == {"0", "1"}


@pytest.mark.timeout(1800)
def test_nothing_else_is_logged(crawls: dict[str, EngineCrawl]) -> None:
    for name, crawl in crawls.items():
        lines = [*"".join(crawl.stderr).splitlines(), *crawl.said.splitlines()]
        others = [line for line in lines if not (SHARD_LINE.match(line) or WORKER_LINE.match(line))]
        if name == "multi_process" and find_spec("apitools") is None:
            others = [line for line in others if not BEAM_LINE.match(line)]
        assert [line for line in others if not line.startswith("--shards=2 on")] == [], name
