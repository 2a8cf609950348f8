"""One toy crawl of three rounds, made with the real commands, that many tests look at."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from pipelines import inject
from pipelines import round as round_command
from tests.fakes.toy_server import Access, ToyServer, serve
from tests.fakes.toy_web import ToyWeb

DELAY_SECONDS = 0.1


@dataclass
class ToyCrawl:
    """A crawl folder, the web it was made from, and what the server saw."""

    folder: Path
    web: ToyWeb
    server: ToyServer
    printed: list[str]

    @property
    def log(self) -> list[Access]:
        """Every request, in order of arrival."""
        return sorted(self.server.log, key=lambda access: access.arrived_at)

    def round_flags(self, *more: str) -> list[str]:
        """Return the command line of a round on this crawl."""
        return [
            f"--crawl={self.folder}",
            "--runner=FnApiRunner",
            f"--connect_to=::127.0.0.1:{self.server.port}",
            f"--min_delay_seconds={DELAY_SECONDS}",
            "--latency_factor=0",
            "--round_minutes=5",
            "--max_body_bytes=250000",
            "--fetch_concurrency=32",
            *more,
        ]

    def run_round(self, *more: str) -> int:
        """Run `pipelines.round` in this process and keep what it printed."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = round_command.main(self.round_flags(*more))
        self.printed.append(out.getvalue())
        return code

    def rows(self, query: str) -> list[tuple]:
        """Run SQL with DuckDB; {captures} and the like stand for the Parquet files of a table."""
        tables = ("captures", "pages", "links", "hosts", "duplicates", "removed")
        sources = {
            name: f"read_parquet('{self.folder}/tables/{name}/*/*.parquet', hive_partitioning=true)"
            for name in tables
        }
        return duckdb.sql(query.format(**sources)).fetchall()


@pytest.fixture(scope="session")
def toy_crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyCrawl]:
    """Return a toy crawl after three rounds; its server still runs."""
    web = ToyWeb(sites=6, pages=6, robots_delay_seconds=0.3)
    with serve(web) as server:
        crawl = ToyCrawl(tmp_path_factory.mktemp("toy") / "crawl", web, server, [])
        with contextlib.redirect_stdout(io.StringIO()):
            assert inject.main([f"--crawl={crawl.folder}", "--salt=toy", *web.seeds()]) == 0
        assert crawl.run_round("--rounds=3") == 0
        yield crawl
