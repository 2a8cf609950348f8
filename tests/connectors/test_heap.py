"""What large blocks took goes back to the system: measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
from pathlib import Path
from connectors.heap import return_large_blocks

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

{before}
start, barrier = resident(), threading.Barrier(16)

def work():
    for _ in range(3):
        data = bytearray()
        while len(data) < 5_000_000:
            data += b"x" * 60_000
        barrier.wait()
        del data

threads = [threading.Thread(target=work) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(resident() - start)
"""


def test_threads_give_back_what_their_bodies_took() -> None:
    line = [sys.executable, "-c", PROGRAM.format(before="assert return_large_blocks()")]
    kept = int(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    assert kept < 20_000_000, "16 threads had 5 MB each"
