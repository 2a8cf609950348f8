"""Other people's tools on a toy crawl: pywb, WARC readers, an indexer, a browser. Run by `make test-consumers`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connectors.cdxj import CdxjRow, parse_row, read_lines
from pipelines import export
from tests.fakes.crawls import ToyCrawl, seeded_crawl
from tests.fakes.toy_web import HUB, ToyWeb

CACHE = Path(__file__).parent.parent.parent / ".cache"
ETAG_URLS = tuple(f"http://etag.site.example/page-{number}" for number in range(3))
LATER_DAYS = 40
CHROMIUM_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave this folder out of a run that does not ask for it."""
    return None if os.environ.get("CONSUMERS") else True


@pytest.fixture(scope="session")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyCrawl]:
    """Return a crawl of three rounds and one some weeks later, in one shard, with the WET files of all."""
    web = ToyWeb(sites=6, pages=6, robots_delay_seconds=0.3)
    # It would be waited for, and tells these tests nothing.
    del web.robots["www.robots-503.example"]
    for number, url in enumerate(ETAG_URLS):
        web._add(url, f"Tagged page {number}")
        web.pages[f"http://{HUB}/"].links.append(url)
    later = datetime.now(UTC) + timedelta(days=LATER_DAYS)
    with seeded_crawl(tmp_path_factory.mktemp("consumers") / "crawl", web) as made:
        assert made.run_round("--rounds=3", "--shards=1") == 0
        assert made.run_round("--shards=1", f"--as_of={later:%Y-%m-%dT%H:%M:%SZ}") == 0
        for number in (1, 2, 3, 4):
            assert export.main([f"--crawl={made.folder}", "--wet", f"--round={number}"]) == 0
        yield made


@pytest.fixture(scope="session")
def warc_files(crawl: ToyCrawl) -> list[Path]:
    """Return every WARC file of the crawl."""
    return sorted(crawl.folder.glob("warc/*/*/*.warc.gz"))


@pytest.fixture(scope="session")
def index_rows(crawl: ToyCrawl) -> list[CdxjRow]:
    """Return the rows of all indexes of the crawl."""
    rows = []
    for path in sorted(crawl.folder.glob("index/*/*.cdxj.gz")):
        with path.open("rb") as file:
            rows += [parse_row(line) for line in read_lines(file)]
    return rows


def tool(environment: str, name: str) -> str:
    """Return a program of an environment that `make test-consumers` keeps beside the project's own."""
    path = CACHE / environment / "bin" / name
    assert path.is_file(), f"{path} is missing: run make test-consumers"
    return str(path)


def install(program: str, package: str) -> str:
    """Return the path of a program of Debian's, installing its package if it is missing."""
    if shutil.which(program) is None:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], check=True)
    found = shutil.which(program)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a headless browser."""
    return install("chromium", "chromium")


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    """Return when something listens on a loopback port; fail when its process ends, or after ``seconds``."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        assert process.poll() is None, f"the server ended with code {process.returncode}"
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise TimeoutError(f"nothing listens on port {port}")
