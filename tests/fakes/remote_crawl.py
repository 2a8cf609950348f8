"""The toy web crawled into a folder on an object store, with the product's own commands."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from connectors.files import Storage, open_storage
from connectors.rounds import CrawlFolder
from tests.fakes.toy_server import ToyServer
from tests.fakes.toy_web import ToyWeb

DELAY_SECONDS = 0.1
# Leases that a killed round leaves are waited out: short ones, but downloads of a busy machine must fit into them.
SHORT_LEASE = ("--lease_seconds=14", "--fetch_timeout_seconds=10")
ROOT = Path(__file__).parents[2]
TABLES = ("captures", "pages", "links", "hosts", "duplicates", "removed")


@dataclass
class RemoteCrawl:
    """A crawl folder anywhere, and the web it is made from. ``dies``: its rounds are killed, their leases short."""

    root: str
    web: ToyWeb
    server: ToyServer
    dies: bool = False

    @property
    def folder(self) -> CrawlFolder:
        """The crawl folder."""
        return CrawlFolder.at(self.root)

    def flags(self, *more: str) -> list[str]:
        """Return the command line of a round."""
        return [
            f"--crawl={self.root}",
            "--runner=FnApiRunner",
            f"--connect_to=::127.0.0.1:{self.server.port}",
            f"--min_delay_seconds={DELAY_SECONDS}",
            "--latency_factor=0",
            "--round_minutes=5",
            "--max_body_bytes=250000",
            "--fetch_concurrency=32",
            *(SHORT_LEASE if self.dies else ()),
            *more,
        ]

    def inject(self) -> None:
        """Make the crawl."""
        assert self.run("inject", f"--crawl={self.root}", "--salt=toy", *self.web.seeds())[0] == 0

    def round(self, *more: str) -> tuple[int, str]:
        """Run `pipelines.round` in this process; return exit code and output."""
        return self.run("round", *self.flags(*more))

    def run(self, command: str, *arguments: str) -> tuple[int, str]:
        """Run a command in this process; return exit code and output."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = importlib.import_module(f"pipelines.{command}").main(list(arguments))
        sys.stderr.write(err.getvalue())
        return code, out.getvalue()

    def start(self, command: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start a command as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", f"pipelines.{command}", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def tables(self, into: Path) -> dict[str, list[tuple]]:
        """Return what the crawl found, without times, file names and measured durations."""
        for table in TABLES:
            download(open_storage(self.root), f"tables/{table}/", into)
        sources = {
            table: f"read_parquet('{into}/tables/{table}/*/*.parquet', hive_partitioning=true)"
            for table in TABLES
        }
        queries = {
            "captures": "SELECT round, url, kind, outcome, reason, depth, content_digest FROM {captures}",
            "pages": "SELECT round, url, content_hash, title, text, links::VARCHAR, discovered_from FROM {pages}",
            "links": "SELECT round, source_url, target_url, anchor, rel FROM {links}",
            "duplicates": "SELECT round, url, kept_url, kind, similarity FROM {duplicates}",
        }
        return {name: sorted(rows(query.format(**sources)), key=repr) for name, query in queries.items()}

    def asked(self) -> list[tuple[str, str]]:
        """Return (host, path) of every request so far."""
        return [(access.host, access.path) for access in self.server.log]


def differences(one: dict[str, list[tuple]], other: dict[str, list[tuple]]) -> dict[str, list[tuple]]:
    """Return for each table the first rows that only one of two crawls has; {} for equal crawls."""
    found = {
        name: sorted((Counter(one[name]) - Counter(other[name])).elements(), key=repr)[:5]
        + sorted((Counter(other[name]) - Counter(one[name])).elements(), key=repr)[:5]
        for name in one
    }
    return {name: rows for name, rows in found.items() if rows}


def rows(query: str) -> Iterable[tuple]:
    """Run SQL; times and lists become plain values."""
    return duckdb.sql(query).fetchall()


def download(storage: Storage, prefix: str, into: Path) -> list[Path]:
    """Copy the files under a prefix to a local folder, byte for byte; return where they are."""
    copies = []
    for info in storage.list(prefix):
        target = into / info.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(storage.read_bytes(info.path))
        copies.append(target)
    return copies
