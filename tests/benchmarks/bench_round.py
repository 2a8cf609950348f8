"""A whole round beside the bare library calls that it needs, and beside a Scrapy spider with the same outputs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.bench_pages import corpus

PAGES = 1000
HOSTS = 20
RUNS = 2
HERE = Path(__file__).parent


class PageServer:
    """A process that serves the corpus; `first_at` is the time of the first request, known after `stop`."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.fakes.page_server", str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def stop(self) -> float:
        """End the server and return when its first request came."""
        out, _ = self.process.communicate("")
        return float(json.loads(out.splitlines()[-1])["first_at"][0])


@contextmanager
def pages(count: int) -> Iterator[Path]:
    """Yield a folder with ``count`` HTML files."""
    with tempfile.TemporaryDirectory(prefix="bench-round-") as folder:
        for number, body in enumerate(corpus(count)):
            (Path(folder) / f"{number:05d}.html").write_bytes(body)
        yield Path(folder)


def urls(count: int) -> list[str]:
    """Return the URLs of the corpus, spread over hosts."""
    return [f"http://h{number % HOSTS}.example/{number}.html" for number in range(count)]


def measured(command: list[str]) -> tuple[float, float, float]:
    """Run a command; return its start (epoch), its CPU seconds with all children, and its wall seconds."""
    whole = [sys.executable, "-m", "tests.benchmarks.whole_cpu", *command]
    said = json.loads(subprocess.run(whole, check=True, capture_output=True, text=True).stdout)
    return said["started_at"], said["cpu_seconds"], said["seconds"]


def crawl(folder: Path, count: int) -> tuple[float, float, float, float]:
    """Run one round over the corpus; return CPU, wall, seconds to the first request, CPU of an empty round."""
    with tempfile.TemporaryDirectory(prefix="bench-crawl-") as scratch:
        crawl_folder, seeds = f"{scratch}/crawl", Path(scratch) / "seeds.txt"
        seeds.write_text("\n".join(urls(count)))
        module = [sys.executable, "-m"]
        measured([*module, "pipelines.inject", f"--crawl={crawl_folder}", f"--seeds={seeds}", "--scope=host"])
        server = PageServer(folder)
        flags = [f"--connect_to=::127.0.0.1:{server.port}", "--min_delay_seconds=0", "--latency_factor=0"]
        started, cpu, wall = measured(
            [*module, "pipelines.round", f"--crawl={crawl_folder}", "--runner=FnApiRunner", *flags]
        )
        first = server.stop() - started
        nothing = ["--as_of=2020-01-01T00:00:00Z", *flags]
        _, idle, _ = measured([*module, "pipelines.round", f"--crawl={crawl_folder}", *nothing])
        return cpu, wall, first, idle


def other(script: str, folder: Path, count: int) -> tuple[float, float]:
    """Run a script of this folder over the corpus; return CPU and wall seconds."""
    with tempfile.TemporaryDirectory(prefix="bench-other-") as scratch:
        seeds = Path(scratch) / "seeds.txt"
        seeds.write_text("\n".join(urls(count)))
        server = PageServer(folder)
        _, cpu, wall = measured([sys.executable, str(HERE / script), str(server.port), str(seeds), scratch])
        server.stop()
        return cpu, wall


def run(count: int = PAGES, runs: int = RUNS) -> dict[str, float]:
    """Return milliseconds of CPU a page and the ratios, taken in turn on the same pages; least of the runs."""
    with pages(count) as folder:
        rounds, bare, scrapy = [], [], []
        for _ in range(runs):
            rounds.append(crawl(folder, count))
            bare.append(other("bare_calls.py", folder, count))
            scrapy.append(other("scrapy_spider.py", folder, count))
    cpu, wall, first = (min(row[i] for row in rounds) for i in range(3))
    idle = min(row[3] for row in rounds)
    bare_cpu = min(row[0] for row in bare)
    scrapy_cpu, scrapy_wall = (min(row[i] for row in scrapy) for i in range(2))
    return {
        "pages": count,
        "round_cpu_ms_per_page": 1000 * cpu / count,
        "round_cpu_ms_per_page_without_start_up": 1000 * (cpu - idle) / count,
        "bare_calls_cpu_ms_per_page": 1000 * bare_cpu / count,
        "scrapy_cpu_ms_per_page": 1000 * scrapy_cpu / count,
        "cpu_ratio_round_to_bare_calls": (cpu - idle) / bare_cpu,
        "cpu_ratio_scrapy_to_round": scrapy_cpu / cpu,
        "pages_per_second_ratio_round_to_scrapy": scrapy_wall / wall,
        "start_to_first_request_seconds": first,
    }
