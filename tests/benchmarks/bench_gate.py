"""The content gate: 100,000 new sketches against an index of earlier rounds; its size; what growing it writes.

``run()`` makes its indexes once under the temporary folder (200 bytes a page) and asks them in fresh
processes, so that the memory is the gate's own. ``python -m tests.benchmarks.bench_gate 5000000`` measures one
index of that many pages.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from connectors import parts, runs
from connectors.files import Storage, open_storage
from connectors.rounds import CrawlFolder
from crawler.fingerprints import buckets, digest_keys, page_ids, share_of
from crawler.ranks import mix
from schemas.manifest import FileEntry
from schemas.round import ParsedRef, VerdictRef
from tests.benchmarks.gate_pages import Pages, band_hashes, kept_table, sketch_table
from tests.fakes.gate_rounds import GateCrawl, run_stages
from transforms.gate.index import BANDS, DIGESTS, SKETCHES, sketch_rows
from transforms.gate.parts import tasks_for
from transforms.gate.view import GateSpec, GateView, open_gate

PARTITIONS = 64
STORED = 1_000_000
NEW = 100_000
EXACT_SHARE, NEAR_SHARE = 0.15, 0.14
PIECE = 200_000


def make_index(folder: Path, stored: int) -> list[FileEntry]:
    """Return the runs of an index of so many pages, one run a partition and table; made once."""
    index = folder / "runs.json"
    if index.exists():
        return [FileEntry(*fields) for fields in json.loads(index.read_text())]
    storage = open_storage(str(folder))
    pages = Pages(np.arange(stored))
    ids, _ = page_ids(pages.host_keys, pages.url_keys, PARTITIONS)
    texts = mix(pages.texts + np.uint64(1 << 42))
    of_page, of_text = share_of(pages.host_keys, PARTITIONS), share_of(texts, PARTITIONS)
    entries: list[FileEntry] = []
    for number in range(PARTITIONS):
        bands = np.arange(number, stored * 16, PARTITIONS, dtype=np.uint64)
        columns = {"k1": buckets(band_hashes(bands)), "k2": ids[(bands // np.uint64(16)).astype(np.int64)]}
        entries.append(runs.write_run(storage, BANDS, number, 1, columns, token="bench"))
        own = np.flatnonzero(of_text == number)
        columns = {"k1": digest_keys(texts[own]), "k2": ids[own]}
        entries.append(runs.write_run(storage, DIGESTS, number, 1, columns, token="bench"))
        kept = kept_table(Pages(np.flatnonzero(of_page == number)))
        entries.append(
            runs.write_run(storage, SKETCHES, number, 1, sketch_rows(kept, PARTITIONS), token="bench")
        )
    index.write_text(json.dumps(entries))
    return entries


def new_sketches(stored: int, count: int) -> Iterator[pa.Table]:
    """Yield sketches of new pages: some with the text of an earlier page, some with one like it."""
    rng = np.random.default_rng(1)
    for start in range(0, count, PIECE):
        numbers = np.arange(stored + start, stored + min(start + PIECE, count))
        drawn = rng.random(len(numbers))
        exact, near = drawn < EXACT_SHARE, (drawn >= EXACT_SHARE) & (drawn < EXACT_SHARE + NEAR_SHARE)
        texts = np.where(exact | near, rng.integers(0, max(stored, 1), len(numbers)), numbers)
        pages = Pages(numbers, texts)
        digests, signatures, bands = pages.digests(), pages.signatures().copy(), pages.bands()
        digests[near] = Pages(numbers[near]).digests()
        signatures[np.ix_(near, np.arange(6))] ^= 0x0F
        bands[np.ix_(near, np.arange(4))] = Pages(numbers[near]).bands()[:, :4]
        yield sketch_table(pages, digests, signatures, bands)


def copies(count: int, is_exact: bool) -> pa.Table:
    """Return sketches of copies of one boilerplate page; if not exact, each says something of its own."""
    pages = Pages(np.arange(count), np.zeros(count))
    digests, signatures = pages.digests(), pages.signatures().copy()
    if not is_exact:
        digests = Pages(np.arange(count)).digests()
        signatures[:, :4] = Pages(np.arange(count)).signatures()[:, :4]
    return sketch_table(pages, digests, signatures, pages.bands())


def gate_on(folder: Path, entries: list[FileEntry]) -> tuple[GateView, GateCrawl]:
    """Return the gate of the round after one whose index these runs are."""
    crawl = GateCrawl(folder, PARTITIONS)
    crawl.round, crawl.files = 1, entries
    if not (folder / "rounds/000001/manifest.json").exists():
        CrawlFolder.at(str(folder)).commit_manifest(crawl._manifest())
    return open_gate(GateSpec.of_round(crawl.next_spec())), crawl


def measure_gate(folder: Path, stored: int, count: int) -> dict[str, float]:
    """Return seconds and peak memory of a round's gate, and of the probes alone; for a fresh process."""
    entries = make_index(folder, stored) if stored else []
    view, _ = gate_on(folder, entries)
    refs = [parsed_ref(view, number, table) for number, table in enumerate(new_sketches(stored, count))]
    before = peak_mb()
    wall, busy = time.perf_counter(), time.process_time()
    items = run_stages(view, tasks_for(count, PARTITIONS), refs)
    figures = {
        "gate_seconds": time.perf_counter() - wall,
        "gate_cpu_seconds": time.process_time() - busy,
        "gate_peak_mb": peak_mb(),
        "gate_grown_mb": peak_mb() - before,
        "verdicts": sum(item.rows for item in items if isinstance(item, VerdictRef)),
    }
    written = [item.path for item in items if isinstance(item, FileEntry)]
    for path in [*written, *(info.path for info in view.storage.list("rounds/000002/"))]:
        view.storage.delete(path)
    return {**figures, **measure_probe(view.storage, entries, stored, count)}


def parsed_ref(view: GateView, number: int, table: pa.Table) -> ParsedRef:
    """Return sketches as a parsed segment."""
    path = view.work_path(f"sketches-{number}")
    parts.write_table(view.storage, path, table)
    return ParsedRef(f"{number:04d}-000001", "", "", path, len(table), "", "")


def measure_copies(count: int, is_exact: bool) -> tuple[float, int]:
    """Return the CPU seconds of a gate that meets copies of one page, and how many stay."""
    with tempfile.TemporaryDirectory() as folder:
        view, _ = gate_on(Path(folder), [])
        ref = parsed_ref(view, 0, copies(count, is_exact))
        began = time.process_time()
        items = run_stages(view, tasks_for(count, PARTITIONS), [ref])
        seconds = time.process_time() - began
        return seconds, count - sum(item.rows for item in items if isinstance(item, VerdictRef))


def copies_figures(count: int) -> dict[str, float]:
    """Return how time grows with the copies of one page, and what stays of them."""
    figures: dict[str, float] = {}
    for name, is_exact in (("exact", True), ("near", False)):
        half, _ = measure_copies(count // 2, is_exact)
        seconds, left = measure_copies(count, is_exact)
        figures |= {
            f"{name}_copies_cpu_seconds": seconds,
            f"{name}_copies_seconds_over_those_of_half": seconds / half,
            f"{name}_copies_that_stay": left,
        }
    return figures


def measure_probe(storage: Storage, entries: list[FileEntry], stored: int, count: int) -> dict[str, float]:
    """Return the seconds of looking up all bands of the new pages in the stored ones, partition by partition."""
    if not stored:
        return {}
    bands = np.sort(buckets(Pages(np.arange(stored, stored + count)).bands().ravel()))
    owner = (bands >> np.uint64(30)).astype(np.int64)
    wall, busy, found = time.perf_counter(), time.process_time(), 0
    for number in range(PARTITIONS):
        own = [entry for entry in entries if (entry.table, entry.partition) == (BANDS.name, number)]
        found += len(runs.lookup(storage, BANDS, own, bands[owner == number]).candidate)
    tens = stored * 16 / 1e7
    return {
        "stored_bands": stored * 16,
        "probe_seconds": time.perf_counter() - wall,
        "probe_cpu_seconds": time.process_time() - busy,
        "probe_seconds_per_10m_stored_bands": (time.perf_counter() - wall) / tens,
        "strangers_met_per_page": found / count,
        "index_bytes_per_page": sum(entry.bytes for entry in entries) / stored,
        "bands_bytes_per_page": sum(e.bytes for e in entries if e.table == BANDS.name) / stored,
        "sketches_bytes_per_page": sum(e.bytes for e in entries if e.table == SKETCHES.name) / stored,
        "digests_bytes_per_page": sum(e.bytes for e in entries if e.table == DIGESTS.name) / stored,
    }


def peak_mb() -> float:
    """Return the greatest resident size of this process so far; getrusage would count that of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def in_fresh_process(stored: int, count: int) -> dict[str, float]:
    """Return ``measure_gate`` in a process of its own."""
    folder = Path(tempfile.gettempdir()) / f"roundcrawl-bench-gate-{stored}"
    folder.mkdir(parents=True, exist_ok=True)
    if stored:
        make_index(folder, stored)
    command = [sys.executable, "-m", "tests.benchmarks.bench_gate", str(folder), str(stored), str(count)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(answer.stdout)
    return figures


def bytes_over_rounds(rounds: int = 192, pages_a_round: int = 400, partition: int = 0) -> dict[str, float]:
    """Return what a growing partition of BANDS writes, early and late, over the bytes of its new rows."""
    rng = np.random.default_rng(2)
    written: list[int] = []
    live: list[FileEntry] = []
    with tempfile.TemporaryDirectory() as folder:
        storage = open_storage(folder)
        for number in range(1, rounds + 1):
            columns = {
                "k1": rng.integers(0, 2**30, pages_a_round * 16, np.uint64),
                "k2": rng.integers(0, 2**24, pages_a_round * 16, np.uint64),
            }
            live.append(runs.write_run(storage, BANDS, partition, number, columns, token="t"))
            written.append(live[-1].bytes)
            for merge in runs.plan_compaction(live, number, partition):
                merged = runs.merge_runs(
                    storage, BANDS, merge.runs, partition, number,
                    level=merge.level, token="t", oldest=merge.oldest,
                )  # fmt: skip
                live = [run for run in live if run not in merge.runs] + ([merged] if merged else [])
                written[-1] += merged.bytes if merged else 0
        fresh = live[-1].bytes / live[-1].rows * pages_a_round * 16
    third = rounds // 3
    return {
        "bytes_written_over_new_bytes_first_third": sum(written[:third]) / third / fresh,
        "bytes_written_over_new_bytes_last_third": sum(written[-third:]) / third / fresh,
    }


def run(stored: int = STORED, count: int = NEW) -> dict[str, float]:
    """Return the figures of a round's gate on an index, on half of it and on none, and of its growth."""
    whole, half, none = (in_fresh_process(size, count) for size in (stored, stored // 2, 0))
    return {
        **whole,
        "gate_seconds_without_index": none["gate_seconds"],
        "gate_pages_per_second_without_index": count / none["gate_seconds"],
        "gate_grown_mb_without_index": none["gate_grown_mb"],
        "probe_cpu_seconds_at_half_the_index": half["probe_cpu_seconds"],
        **bytes_over_rounds(),
        **copies_figures(count),
    }


if __name__ == "__main__":
    if len(sys.argv) == 2:
        for name, figure in in_fresh_process(int(sys.argv[1]), NEW).items():
            print(f"{name:<50}{figure:>16,.3f}")
    else:
        print(json.dumps(measure_gate(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
