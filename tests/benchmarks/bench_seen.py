"""URL-seen: one probe of 1 M candidates against 40 M known keys, growth, and bytes written over 1,000 rounds.

``run()`` makes its runs once under the temporary folder (325 MB) and probes them in fresh processes on
one core, so that the memory is the probe's own.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from connectors.files import Storage, open_storage
from connectors.runs import RunTable, RunWriter, merge_runs, plan_compaction, probe_new, write_run
from connectors.runs.keys import as_keys, first_of_each, sort_order
from schemas.manifest import FileEntry

SEEN = RunTable("seen")
KNOWN = 40_000_000
CANDIDATES = 1_000_000
KNOWN_SHARE = 0.88
HOSTS_PER_KEY = 0.01
RUN_SHARES = (0.80, 0.12, 0.02, 0.02, 0.01, 0.01, 0.01, 0.01)
PIECE_ROWS = 500_000


def make_runs(folder: Path, known: int) -> list[FileEntry]:
    """Return runs of about ``known`` keys, Pareto many a host, as eight files of several ages; made once."""
    index = folder / "runs.json"
    if index.exists():
        return [FileEntry(*fields) for fields in json.loads(index.read_text())]
    storage = open_storage(str(folder))
    with ExitStack() as opened:
        writers = [
            opened.enter_context(
                RunWriter(storage, SEEN, 0, number, level=2 if number == 1 else 0, token="bench")
            )
            for number in range(1, len(RUN_SHARES) + 1)
        ]
        rng = np.random.default_rng(2)
        for k1, k2 in _pieces(known):
            chosen = rng.choice(len(writers), len(k1), p=RUN_SHARES)
            for number, writer in enumerate(writers):
                writer.append(
                    pa.table({"k1": k1[chosen == number], "k2": k2[chosen == number]}).cast(SEEN.schema)
                )
        entries = [writer.finish() for writer in writers]
    index.write_text(json.dumps(entries))
    return entries


def _pieces(known: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the keys in order, one range of k1 after another."""
    rng = np.random.default_rng(1)
    pieces = max(1, known // PIECE_ROWS)
    width = 2**64 // pieces
    for piece in range(pieces):
        hosts = rng.integers(0, width, max(1, int(known / pieces * HOSTS_PER_KEY)), dtype=np.uint64)
        rank = (rng.pareto(1.1, known // pieces) * 2).astype(np.int64) % len(hosts)
        k1 = hosts[rank] + np.uint64(piece * width)
        k2 = rng.integers(0, 2**64, len(k1), dtype=np.uint64)
        order = sort_order(k1, k2)
        kept = first_of_each(k1[order], k2[order])
        yield k1[order][kept], k2[order][kept]


def make_candidates(known: int, count: int, known_share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return shuffled candidates: ``known_share`` of them known, the rest new URLs of known hosts."""
    rng = np.random.default_rng(3)
    parts1, parts2 = [], []
    for k1, k2 in _pieces(known):
        share = round(count * len(k1) / known)
        old = rng.integers(0, len(k1), int(share * known_share))
        new = rng.integers(0, len(k1), share - len(old))
        parts1 += [k1[old], k1[new]]
        parts2 += [k2[old], rng.integers(0, 2**64, len(new), dtype=np.uint64)]
    order = rng.permutation(sum(map(len, parts1)))
    return np.concatenate(parts1)[order], np.concatenate(parts2)[order]


def prepare(folder: Path, known: int, count: int) -> None:
    """Make the runs and the candidates of one size, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    make_runs(folder, known)
    if not (folder / "candidates.npz").exists():
        k1, k2 = make_candidates(known, count, KNOWN_SHARE)
        np.savez(folder / "candidates.npz", k1=k1, k2=k2)


def measure_probe(folder: Path) -> dict[str, float]:
    """Return seconds and peak memory of probing one prepared folder; meant for a fresh process."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    runs = make_runs(folder, 0)
    with np.load(folder / "candidates.npz") as stored:
        k1, k2 = as_keys(stored["k1"]), as_keys(stored["k2"])
    seconds, cpu = [], []
    for _ in range(3):
        wall, busy = time.perf_counter(), time.process_time()
        new = probe_new(open_storage(str(folder)), runs, k1, k2)
        seconds.append(time.perf_counter() - wall)
        cpu.append(time.process_time() - busy)
    known = sum(run.rows for run in runs)
    return {
        "known_keys": known,
        "candidates": len(k1),
        "new": int(new.sum()),
        "seconds": round(statistics.median(seconds), 3),
        "cpu_seconds": round(statistics.median(cpu), 3),
        "seconds_per_10m_known": round(statistics.median(seconds) * 1e7 / known, 3),
        "bytes_per_key": round(sum(run.bytes for run in runs) / known, 2),
        "peak_rss_mb": peak_rss_mb(),
    }


def peak_rss_mb() -> float:
    """Return this process's peak memory; ru_maxrss would include that of the process that started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / 1024, 1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def probe_in_fresh_process(name: str, known: int, count: int) -> dict[str, float]:
    """Return ``measure_probe`` of a prepared size, run in a process of its own."""
    folder = Path(tempfile.gettempdir()) / f"roundcrawl-bench-seen-{name}"
    prepare(folder, known, count)
    answer = subprocess.run(
        [sys.executable, __file__, str(folder)], check=True, capture_output=True, text=True
    )
    figures: dict[str, float] = json.loads(answer.stdout)
    return figures


def write_amplification(rounds: int, keys_a_round: int, partition: int = 0) -> dict[str, float]:
    """Return the bytes that ``rounds`` rounds of one partition write, over the bytes of their new keys.

    Real files: each round writes a run of new keys and does the merges that the plan asks for.
    """
    rng = np.random.default_rng(4)
    hosts = rng.integers(0, 2**64, 200, dtype=np.uint64)
    first = merged = most_runs = 0
    runs: list[FileEntry] = []
    with tempfile.TemporaryDirectory() as folder:
        storage: Storage = open_storage(folder)
        for number in range(1, rounds + 1):
            keys = {
                "k1": rng.choice(hosts, keys_a_round),
                "k2": rng.integers(0, 2**64, keys_a_round, np.uint64),
            }
            runs.append(write_run(storage, SEEN, partition, number, keys, token="t"))
            first += runs[-1].bytes
            for merge in plan_compaction(runs, number, partition):
                entry = merge_runs(storage, SEEN, merge.runs, partition, number, level=merge.level, token="t")
                for run in merge.runs:
                    storage.delete(run.path)
                runs = [*(run for run in runs if run not in merge.runs), entry]
                merged += entry.bytes
            most_runs = max(most_runs, len(runs))
    known = sum(run.rows for run in runs)
    return {
        "rounds": rounds,
        "known_keys": known,
        "write_amplification": round((first + merged) / first, 2),
        "bytes_a_round_per_new_key": round((first + merged) / known, 2),
        "most_runs": most_runs,
    }


def measure_merge(rows: int = 1_000_000, runs: int = 8) -> dict[str, float]:
    """Return the speed of merging eight runs of random keys."""
    rng = np.random.default_rng(5)
    hosts = rng.integers(0, 2**64, 10_000, dtype=np.uint64)
    with tempfile.TemporaryDirectory() as folder:
        storage = open_storage(folder)
        entries = [
            write_run(
                storage,
                SEEN,
                0,
                number,
                {"k1": rng.choice(hosts, rows), "k2": rng.integers(0, 2**64, rows, np.uint64)},
                token="t",
            )
            for number in range(runs)
        ]
        begun = time.perf_counter()
        merge_runs(storage, SEEN, entries, 0, runs, level=1, token="m")
        seconds = time.perf_counter() - begun
    return {
        "rows": rows * runs,
        "seconds": round(seconds, 2),
        "m_rows_a_second": round(rows * runs / seconds / 1e6, 1),
    }


def run(known: int = KNOWN, candidates: int = CANDIDATES) -> dict[str, float]:
    """Return the figures: the probe, growth tenfold at a tenth of the size, bytes written, merge speed."""
    probe = probe_in_fresh_process("100", known, candidates)
    small = probe_in_fresh_process("1", known // 100, candidates // 40)
    large = probe_in_fresh_process("10", known // 10, candidates // 40)
    writing = write_amplification(1_000, 2_000)
    return {
        "probe_known_keys": probe["known_keys"],
        "probe_candidates": probe["candidates"],
        "probe_seconds": probe["seconds"],
        "probe_cpu_seconds": probe["cpu_seconds"],
        "probe_seconds_per_10m_known": probe["seconds_per_10m_known"],
        "probe_peak_rss_mb": probe["peak_rss_mb"],
        "bytes_per_known_key": probe["bytes_per_key"],
        "small_probe_seconds": small["seconds"],
        "small_probe_seconds_with_10x_known": large["seconds"],
        "bytes_written_per_byte_of_new_keys_1000_rounds": writing["write_amplification"],
        "most_runs_in_1000_rounds": writing["most_runs"],
        "merge_m_rows_per_second": measure_merge()["m_rows_a_second"],
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure_probe(Path(sys.argv[1]))))
    else:
        print(json.dumps(run(), indent=1))
