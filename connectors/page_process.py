"""One process that works on one page at a time, and can be killed while it does."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pickle
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

START_SECONDS = 60.0
GRACE_SECONDS = 5.0
RETIRE_BYTES = 256 * 1024 * 1024
OUT_OF_MEMORY_EXIT = 77
MAX_DETAIL_CHARS = 300

_start_lock = threading.Lock()


class Limits(NamedTuple):
    """What one page may take: wall-clock time, and address space over what the idle process has."""

    timeout_seconds: float
    memory_bytes: int


class Done(NamedTuple):
    """The work function's result."""

    value: Any


class Failed(NamedTuple):
    """Why there is no result: parse_timeout, parse_crash, parse_memory or parse_error, and more in words."""

    reason: str
    detail: str


class PageProcess:
    """A process that has ``work`` imported and waits for pages.

    It is forked from a server process that imports ``preload`` once (multiprocessing's forkserver), so it
    starts in milliseconds and shares those modules' memory. It never imports the main module, writes
    nothing to standard output, and is killed with its parent, however that ends and whatever the page does
    (outside Linux: by itself soon after the page's time is over).
    Raises RuntimeError if it does not start: a fault of the installation, not of a page.
    """

    def __init__(self, work: Callable[[Any], Any], limits: Limits, preload: Sequence[str] = ()) -> None:
        self._limits = limits
        self.pages = 0
        self.is_spent = False
        context = multiprocessing.get_context("forkserver")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work, limits), daemon=True)
        with _start_lock, _anonymous_main():
            context.set_forkserver_preload(list(preload))
            self._process.start()
        theirs.close()
        if not isinstance(self._receive(START_SECONDS), Done):
            self.kill()
            raise RuntimeError(f"a page process did not start: {self._how_it_ended()}")

    @property
    def pid(self) -> int:
        """The process number."""
        return self._process.pid or 0

    def ask(self, item: Any) -> Done | Failed:
        """Return what the work function makes of the item within the limits.

        ``is_spent`` is then true if the process has ended, or has grown and should: start another one.
        Raises only what pickling raises for an item or a result that cannot be pickled.
        """
        self.pages += 1
        try:
            self._connection.send(item)
        except OSError:
            return self._crashed()
        answer = self._receive(self._limits.timeout_seconds)
        if answer is not None:
            return answer
        self.kill()
        return Failed("parse_timeout", f"{self._limits.timeout_seconds:g} s")

    def kill(self) -> None:
        """End the process now, whatever it does, and wait until it is gone."""
        self.is_spent = True
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _receive(self, seconds: float) -> Done | Failed | None:
        """Return the next message, None if the time is over."""
        try:
            if not self._connection.poll(seconds):
                return None
            answer, is_worn = self._connection.recv()
        except (EOFError, OSError):
            return self._crashed()
        self.is_spent = is_worn
        return Done(*answer) if len(answer) == 1 else Failed(*answer)

    def _crashed(self) -> Failed:
        self.kill()
        if self._process.exitcode == OUT_OF_MEMORY_EXIT:
            return Failed("parse_memory", "the page did not fit into its process")
        return Failed("parse_crash", self._how_it_ended())

    def _how_it_ended(self) -> str:
        code = self._process.exitcode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


@contextmanager
def _anonymous_main() -> Iterator[None]:
    """Hide where the main module came from: each page process would import it, a command with all of Beam."""
    main = sys.modules["__main__"]
    spec, file = main.__spec__, getattr(main, "__file__", None)
    main.__spec__, main.__file__ = None, None
    try:
        yield
    finally:
        main.__spec__, main.__file__ = spec, file


def _serve(connection: Connection, work: Callable[[Any], Any], limits: Limits) -> None:
    """Run in the page process: answer one page after the other until the parent closes the connection."""
    _end_with_parent()
    idle_bytes = _confine(limits)
    connection.send(((None,), False))
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        except MemoryError:
            os._exit(OUT_OF_MEMORY_EXIT)
        # The parent kills us in time; should it be gone without a trace, the default action of this signal does.
        signal.setitimer(signal.ITIMER_REAL, limits.timeout_seconds + GRACE_SECONDS)
        answer = _answer(work, item, idle_bytes)
        signal.setitimer(signal.ITIMER_REAL, 0)
        connection.send_bytes(answer)


def _end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, even amid a page that never returns to Python.

    The parent has the writing end of a pipe whose other end is here: when it closes, the kernel sends the
    signal that was asked for. (PR_SET_PDEATHSIG would watch the fork server, which lives as long as we do.)
    """
    parent = multiprocessing.parent_process()
    if parent is None or not hasattr(fcntl, "F_SETSIG"):
        return
    lifeline = int(parent.sentinel)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(1)  # It ended before the kernel was asked to watch.


def _answer(work: Callable[[Any], Any], item: Any, idle_bytes: int) -> bytes:
    answer: tuple[Any, ...]
    try:
        answer = (work(item),)
        is_worn = _peak_bytes() > idle_bytes + RETIRE_BYTES
        return pickle.dumps((answer, is_worn), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        answer = ("parse_memory", "the page needs more memory than it may have")
    except Exception as error:  # noqa: BLE001  the boundary: whatever a page does to the work is that page's outcome
        answer = ("parse_error", _printable(f"{type(error).__name__}: {error}"))
    return pickle.dumps((answer, answer[0] == "parse_memory"), pickle.HIGHEST_PROTOCOL)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text[:MAX_DETAIL_CHARS])


def _confine(limits: Limits) -> int:
    """Bound what this process can take and where it can write; return the bytes that it has resident."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(name, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.close(null)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    statm = Path("/proc/self/statm")
    if statm.exists():
        address_space = int(statm.read_text().split()[0]) * resource.getpagesize() + limits.memory_bytes
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        soft = address_space if hard == resource.RLIM_INFINITY else min(address_space, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    return _peak_bytes()


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
