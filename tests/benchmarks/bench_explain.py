"""Seconds until `pipelines.explain` has answered, on a crawl of 1 M URLs over ten rounds.

``run()`` makes the crawl in a temporary folder, with the writers that a round uses, and asks for URLs of every
kind in fresh processes. Files that the command does not read (WARC, pages, links) are left out.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.fakes.large_crawl import (
    DENIED_EVERY,
    DUPLICATE_EVERY,
    PARTITIONS,
    ROUNDS,
    VISITED_SHARE,
    LargeCrawl,
    Web,
    make_web,
)

URLS = 1_000_000


def questions(web: Web) -> dict[str, list[str]]:
    """Return URLs to ask for, by what they are."""
    count, visited = len(web.urls), VISITED_SHARE * len(web.urls)
    numbers = np.random.default_rng(2).permutation(count)[:20_000].tolist()
    kinds = {
        "visited": [n for n in numbers if n < visited],
        "waiting": [n for n in numbers if n > visited],
        "duplicate": [n for n in numbers if n < visited and n % DUPLICATE_EVERY == 3],
        "denied": [n for n in numbers if n < visited and n % DENIED_EVERY == 5],
        "deepest": list(range(count - 5, count)),
    }
    known = {kind: [web.urls[n] for n in chosen[:5]] for kind, chosen in kinds.items()}
    return known | {"unknown": [f"http://www.host{n}.com/unknown/{n}" for n in range(5)]}


def measure(root: Path, url: str) -> tuple[float, float, dict[str, Any]]:
    """Return the seconds and CPU seconds of one command, start of Python included, and what it answered."""
    begun, used = time.perf_counter(), _cpu_of_children()
    command = [sys.executable, "-m", "pipelines.explain", f"--crawl={root}", "--json", url]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - begun, _cpu_of_children() - used, json.loads(answer.stdout)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(count: int = URLS) -> dict[str, Any]:
    """Return the seconds of an answer by kind of URL, the longest of all, and the size of what was searched."""
    with tempfile.TemporaryDirectory(prefix="roundcrawl-bench-explain-") as folder:
        LargeCrawl(Path(folder), count).make()
        return figures_of(Path(folder), count)


def figures_of(root: Path, count: int) -> dict[str, Any]:
    """Return the figures of a crawl that was made."""
    figures: dict[str, Any] = {"urls": count, "rounds": ROUNDS, "partitions": PARTITIONS}
    slowest = slowest_cpu = 0.0
    for kind, urls in questions(make_web(count)).items():
        answers = [measure(root, url) for url in urls]
        figures[kind] = {
            "median_seconds": round(statistics.median(seconds for seconds, _, _ in answers), 2),
            "median_cpu_seconds": round(statistics.median(cpu for _, cpu, _ in answers), 2),
            "longest_chain": max(len(document["chain"]) for _, _, document in answers),
        }
        slowest = max(slowest, *(seconds for seconds, _, _ in answers))
        slowest_cpu = max(slowest_cpu, *(cpu for _, cpu, _ in answers))
    figures["slowest_seconds"], figures["slowest_cpu_seconds"] = round(slowest, 2), round(slowest_cpu, 2)
    figures["parquet_bytes"] = sum(path.stat().st_size for path in root.rglob("*.parquet"))
    return figures


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
