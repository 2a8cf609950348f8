"""A whole round of a crawl that knows ten times as many URLs: what it takes, and what it writes.

The round is bound by politeness, as real ones are: a small web, a second between requests to a host. The known URLs
are synthetic, written with the real writers, and due later: what grows is what a round must not pay for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import calendar, runs
from connectors.rounds import CrawlFolder
from connectors.rows import row_schema
from schemas.manifest import FileEntry
from schemas.state import HostState, UrlState
from tests.fakes.calm_web import calm_web
from tests.fakes.kills import AS_OF
from tests.fakes.toy_server import ToyServer, serve
from transforms.state_tables import HOSTS, SEEN, domain_bits

KNOWN = 1_000_000
URLS_A_HOST = 100
DELAY_SECONDS = 1.0
RUNS = 2
AS_OF_SECONDS = 1_796_083_200.0
DAY_SECONDS = 86_400.0


def known_urls(partition: int, partitions: int, count: int) -> pa.Table:
    """Return so many calendar rows of one partition, each to be visited within the next 90 days."""
    random = np.random.default_rng(partition)
    hosts = max(1, count // URLS_A_HOST)
    width = 64 - (partitions - 1).bit_length()
    keys = random.integers(0, 1 << width, hosts, dtype=np.uint64) | np.uint64(partition << width)
    host_keys = np.sort(keys)[random.integers(0, hosts, count)]
    names = pc.binary_join_element_wise(
        "http://h",
        pa.array(host_keys).cast(pa.string()),
        ".example/",
        pa.array(range(count)).cast(pa.string()),
        "",
    )
    given = {
        "url": names,
        "host_key": pa.array(host_keys),
        "url_key": pa.array(random.integers(0, 1 << 63, count, dtype=np.uint64)),
        "status": pa.repeat("fetched", count),
        "next_fetch_at": pa.array(AS_OF_SECONDS + DAY_SECONDS * random.uniform(62, 150, count)),
        "discovered_from": names,
        "content_hash": names,
    }
    empty = {pa.string(): "", pa.bool_(): False}
    arrays = [
        given[field.name].cast(field.type)
        if field.name in given
        else pa.nulls(count, field.type)
        if field.nullable
        else pa.repeat(pa.scalar(empty.get(field.type, 0)).cast(field.type), count)
        for field in row_schema(UrlState)
    ]
    return pa.Table.from_arrays(arrays, schema=row_schema(UrlState))


def host_rows(rows: pa.Table) -> pa.Table:
    """Return the host table's rows of these URLs' hosts."""
    keys = np.unique(rows.column("host_key").to_numpy())
    states = {
        "k1": pa.array(domain_bits(keys)),
        "k2": pa.array(keys),
        "host": pa.array(keys).cast(pa.string()),
        "host_key": pa.array(keys),
        "registered_domain": pa.array(keys).cast(pa.string()),
    }
    for field in row_schema(HostState):
        if field.name not in states:
            value = pa.scalar(None if field.nullable else 0, field.type)
            states[field.name] = pa.repeat(value, len(keys))
    return pa.table(states)


def added(folder: CrawlFolder, number: int, known: int) -> Iterator[FileEntry]:
    """Write the state of so many URLs and yield its entries."""
    partitions = folder.identity().partitions
    for partition in range(partitions):
        rows = known_urls(partition, partitions, known // partitions)
        token = f"{partition:08x}"
        yield from calendar.write_slots(folder.storage, partition, number, rows, AS_OF_SECONDS, token)
        order = np.lexsort((rows.column("url_key").to_numpy(), rows.column("host_key").to_numpy()))
        keys = {
            "k1": rows.column("host_key").to_numpy()[order],
            "k2": rows.column("url_key").to_numpy()[order],
        }
        yield runs.write_run(folder.storage, SEEN, partition, number, keys, level=3, token=token)
        yield runs.write_run(folder.storage, HOSTS, partition, number, host_rows(rows), level=3, token=token)


def round_command(crawl: Path, server: ToyServer, number: int, delay: float) -> float:
    """Run one round; return its seconds."""
    words = [
        *(sys.executable, "-m", "pipelines.round", f"--crawl={crawl}", f"--as_of={AS_OF[number]}"),
        *(f"--connect_to=::127.0.0.1:{server.port}", f"--min_delay_seconds={delay}", "--latency_factor=0"),
        *("--max_body_bytes=250000", "--runner=FnApiRunner"),
    ]
    started = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - started


def made(folder: Path, server: ToyServer, known: int) -> Path:
    """Make a crawl with two real rounds and a third that brought so many URLs."""
    crawl = folder / f"known-{known}"
    words = [sys.executable, "-m", "pipelines.inject", f"--crawl={crawl}", "--salt=calm", *server.web.seeds()]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    for number in (0, 1):
        round_command(crawl, server, number, 0.05)
    state = CrawlFolder.at(str(crawl))
    parent = state.read_manifest(2)
    kept = [entry for entry in parent.files if entry.path.startswith("state/")]
    files = [*kept, *added(state, 3, known)]
    third = {"round": 3, "run_id": "synthetic", "parent": 2, "planned": 0, "outcomes": {}, "files": files}
    state.commit_manifest(replace(parent, **third))
    return crawl


def files_of(crawl: Path) -> dict[Path, int]:
    """Return the sizes of the crawl's files."""
    return {path: path.stat().st_size for path in crawl.rglob("*") if path.is_file()}


def measured(crawl: Path, server: ToyServer) -> tuple[float, int]:
    """Run the next round on a copy; return its seconds and the bytes of the files that it left."""
    copy = crawl.with_name(f"{crawl.name}-copy")
    shutil.copytree(crawl, copy, copy_function=os.link, ignore=shutil.ignore_patterns("leases"))
    before = files_of(copy)
    seconds = round_command(copy, server, 2, DELAY_SECONDS)
    written = sum(size for path, size in files_of(copy).items() if path not in before)
    shutil.rmtree(copy)
    return seconds, written


def run(known: int = KNOWN, runs_each: int = RUNS) -> dict[str, float]:
    """Return seconds and bytes of a round with so many known URLs and with ten times as many, in turn."""
    few, many = [], []
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as scratch, serve(calm_web()) as server:
        small, large = (made(Path(scratch), server, count) for count in (known, 10 * known))
        for _ in range(runs_each):
            few.append(measured(small, server))
            many.append(measured(large, server))
    few_seconds, many_seconds = min(few)[0], min(many)[0]
    return {
        "known_urls": known,
        "round_seconds": few_seconds,
        "round_seconds_with_10_x_known": many_seconds,
        "round_seconds_ratio": many_seconds / few_seconds,
        "megabytes_written": min(written for _, written in few) / 1e6,
        "megabytes_written_with_10_x_known": min(written for _, written in many) / 1e6,
    }
