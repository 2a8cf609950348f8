"""A toy crawl on one engine, made with the real commands in processes of their own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from connectors.clock import SystemClock
from connectors.holder import Holder
from connectors.lease import shard_lease
from connectors.rounds import CrawlFolder
from tests.fakes.toy_server import Access, ToyServer, serve
from tests.fakes.toy_web import ToyWeb
from tests.portable.services import ROOT, Service, job_service, prism_binary, worker_pool

DELAY_SECONDS = 0.1


@dataclass
class EngineCrawl:
    """A crawl folder, the server it is made from, and the engine's part of the command line."""

    folder: Path
    server: ToyServer
    engine_flags: list[str]
    pool: Service | None = None
    delay_seconds: float = DELAY_SECONDS
    stderr: list[str] = field(default_factory=list)

    @property
    def said(self) -> str:
        """What the commands wrote to stderr, or, with a worker pool, what its workers wrote to its log."""
        return self.pool.log_path.read_text() if self.pool is not None else "".join(self.stderr)

    @property
    def log(self) -> list[Access]:
        """Every request, in order of arrival."""
        return sorted(self.server.log, key=lambda access: access.arrived_at)

    def inject(self) -> None:
        """Make the crawl with the toy web's seeds."""
        run_command(
            "inject", f"--crawl={self.folder}", "--salt=toy", *self.server.web.seeds()
        ).check_returncode()

    def command(self, *more: str) -> list[str]:
        """Return the command line of a round on this engine."""
        return [
            *(sys.executable, "-m", "pipelines.round"),
            f"--crawl={self.folder}",
            f"--connect_to=::127.0.0.1:{self.server.port}",
            f"--min_delay_seconds={self.delay_seconds}",
            "--latency_factor=0",
            "--round_minutes=5",
            "--max_body_bytes=250000",
            "--fetch_concurrency=32",
            *self.engine_flags,
            *more,
        ]

    def run(self, *more: str, timeout: float = 540) -> subprocess.CompletedProcess[str]:
        """Run a command to its end and keep what it wrote to stderr."""
        result = subprocess.run(
            self.command(*more), cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout
        )
        self.stderr.append(result.stderr)
        return result

    def start(self, *more: str) -> subprocess.Popen[str]:
        """Start a command; its stderr goes to a file beside the crawl."""
        with (self.folder.parent / "round.err").open("w") as stderr:
            return subprocess.Popen(
                self.command(*more), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=stderr, text=True
            )

    def holders(self, number: int) -> dict[int, Holder]:
        """Return who works on each shard of a round now."""
        folder = CrawlFolder.at(str(self.folder))
        plan = self.folder / f"rounds/{number:06d}/plan.json"
        if not plan.exists():
            return {}
        held = {}
        for shard in json.loads(plan.read_text())["shards"]:
            standing = shard_lease(folder, number, shard["shard"], SystemClock(), 180.0).peek()
            if standing is not None and standing.live:
                held[shard["shard"]] = standing.holder
        return held

    def journaled(self, number: int) -> set[str]:
        """Return the planned URLs of a running round that are safe in its journal."""
        urls: set[str] = set()
        for path in self.folder.glob(f"rounds/{number:06d}/journal/shard-*/0*.json"):
            outcomes = json.loads(path.read_text())["outcomes_path"]
            rows = pq.ParquetFile(self.folder / outcomes).read(["url", "kind"]).to_pylist()
            urls |= {row["url"] for row in rows if row["kind"] == "planned"}
        return urls


def run_command(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", f"pipelines.{command}", *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@contextlib.contextmanager
def engine(name: str, folder: Path, web: ToyWeb | None = None) -> Iterator[EngineCrawl]:
    """Start what an engine needs and the toy web; end it with the block, the crawl folder stays."""
    web = web or ToyWeb(sites=6, pages=6, robots_delay_seconds=0.3)
    with serve(web) as server, contextlib.ExitStack() as stack:
        crawl = EngineCrawl(folder / "crawl", server, [])
        MAKERS[name](crawl, stack)
        yield crawl


def _in_memory(crawl: EngineCrawl, stack: contextlib.ExitStack) -> None:
    crawl.engine_flags = ["--runner=FnApiRunner"]


def _multi_process(crawl: EngineCrawl, stack: contextlib.ExitStack) -> None:
    crawl.engine_flags = ["--runner=FnApiRunner", "--direct_num_workers=2"]


def _portable_pool(crawl: EngineCrawl, stack: contextlib.ExitStack) -> None:
    service = stack.enter_context(job_service(crawl.folder.parent / "service.log", workers=2))
    flags = ["--runner=PortableRunner", f"--job_endpoint={service.address}", "--parallelism=2"]
    crawl.engine_flags = [*flags, *_pool(crawl, stack)]


def _prism_pool(crawl: EngineCrawl, stack: contextlib.ExitStack) -> None:
    flags = ["--runner=PrismRunner", f"--prism_location={prism_binary()}", "--shards=2"]
    crawl.engine_flags = [*flags, *_pool(crawl, stack)]


def _pool(crawl: EngineCrawl, stack: contextlib.ExitStack) -> list[str]:
    crawl.pool = stack.enter_context(worker_pool(crawl.folder.parent / "pool.log"))
    return ["--environment_type=EXTERNAL", f"--environment_config={crawl.pool.address}"]


MAKERS: dict[str, Callable[[EngineCrawl, contextlib.ExitStack], None]] = {
    "in_memory": _in_memory,
    "multi_process": _multi_process,
    "portable_pool": _portable_pool,
    "prism_pool": _prism_pool,
}
