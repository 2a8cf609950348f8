"""`make crawl` without seeds: serve the toy web on loopback and crawl it with the real commands."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fakes.toy_server import serve
from tests.fakes.toy_web import ToyWeb

FOLDER = Path("crawl/toy")
DELAY_SECONDS = 0.2


def main() -> int:
    """Crawl the toy web for some rounds; return the first exit code that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    args, more = parser.parse_known_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    web = ToyWeb()
    with serve(web) as server, tempfile.NamedTemporaryFile("w", suffix=".txt") as seeds:
        seeds.write("\n".join(web.seeds()))
        seeds.flush()
        print(
            f"toy web of {len(web.hosts())} hosts on 127.0.0.1:{server.port}, crawled into {FOLDER}",
            flush=True,
        )
        return run("inject", f"--seeds={seeds.name}") or crawl(server.port, args.rounds, more)


def crawl(port: int, rounds: int, more: list[str]) -> int:
    """Run the rounds, then the checks and the reports."""
    return (
        run(
            "round",
            f"--rounds={rounds}",
            "--runner=FnApiRunner",
            f"--connect_to=::127.0.0.1:{port}",
            f"--min_delay_seconds={DELAY_SECONDS}",
            "--max_body_bytes=250000",
            *more,
        )
        or run("audit")
        or run("report")
    )


def run(command: str, *arguments: str) -> int:
    """Run one command of the product on the toy crawl."""
    line = [sys.executable, "-m", f"pipelines.{command}", f"--crawl={FOLDER}", *arguments]
    return subprocess.run(line, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
