"""The C heap of a process with many threads: what large bodies took goes back to the system."""

from __future__ import annotations

import ctypes
from functools import lru_cache

# malloc.h of the GNU C library.
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

ARENAS = 4
LARGE_BYTES = 1024 * 1024


@lru_cache(maxsize=1)
def return_large_blocks() -> bool:
    """Make the heap return every block of 1 MB or more when it is freed; return whether it can be told.

    By itself the GNU C library raises that limit to the size of what was freed last, up to 32 MB, and gives
    each thread a heap of its own, so that a hundred downloading threads hold on to their largest bodies.
    Other libraries are left as they are. Counts for the whole process; calling it again changes nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_M_ARENA_MAX, ARENAS)) and bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES))
