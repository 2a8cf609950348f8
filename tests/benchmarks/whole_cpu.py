"""`python -m tests.benchmarks.whole_cpu COMMAND ...`: what a command and all that it started took, orphans included.

Page processes are children of a fork server that outlives its command by moments: their time is nobody's unless the
one who measures inherits and waits for them (prctl(2), PR_SET_CHILD_SUBREAPER).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def main(command: list[str]) -> None:
    """Run the command; print JSON: its start (epoch), CPU and wall seconds."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot inherit orphans")
    started_at, clock = time.time(), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.monotonic() - clock
    while _wait_for_one():
        pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps({"started_at": started_at, "cpu_seconds": used.ru_utime + used.ru_stime, "seconds": wall})
    )


def _wait_for_one() -> bool:
    try:
        os.wait()
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
