"""The figures and the page of a report on a large round, in seconds of CPU."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.fakes.large_round import write_round
from transforms.report.figures import figures_of
from transforms.report.reporting import page_of

URLS, HOSTS, KNOWN = 500_000, 8_000, 1_000_000


def run() -> dict[str, float]:
    """Return how fast captures and known URLs are counted, and how long the page takes."""
    with tempfile.TemporaryDirectory() as folder:
        crawl = write_round(Path(folder) / "crawl", URLS, HOSTS, KNOWN)
        started = time.process_time()
        figures = figures_of(crawl, 3)
        counted = time.process_time()
        page = page_of(figures)
        drawn = time.process_time()
    return {
        "captures and known URLs counted, a CPU second": (URLS + KNOWN) / (counted - started),
        "page drawn, CPU seconds": drawn - counted,
        "page, KB": len(page.encode()) / 1e3,
    }
