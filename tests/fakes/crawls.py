"""Toy crawls made with the real commands: a folder, the web it came from, and what its server saw."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pipelines import inject
from pipelines import round as round_command
from tests.fakes.toy_server import Access, ToyServer, serve
from tests.fakes.toy_web import ToyWeb

DELAY_SECONDS = 0.1
TABLES = ("captures", "pages", "links", "hosts", "duplicates", "removed")


@dataclass
class ToyCrawl:
    """A crawl folder, the web it was made from, and what the server saw."""

    folder: Path
    web: ToyWeb
    server: ToyServer
    printed: list[str]
    first_requests: int | None = None
    """How many requests the fixture's own rounds made: other tests may run further rounds on the crawl."""

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
        sources = {
            name: f"read_parquet('{self.folder}/tables/{name}/*/*.parquet', hive_partitioning=true)"
            for name in TABLES
        }
        return duckdb.sql(query.format(**sources)).fetchall()


@contextlib.contextmanager
def seeded_crawl(folder: Path, web: ToyWeb) -> Iterator[ToyCrawl]:
    """Serve a web for the length of the block and yield a new crawl of its seeds, before its first round."""
    with serve(web) as server:
        crawl = ToyCrawl(folder, web, server, [])
        with contextlib.redirect_stdout(io.StringIO()):
            assert inject.main([f"--crawl={folder}", "--salt=toy", *web.seeds()]) == 0
        yield crawl
