"""A pool of page processes: pages in, results in the same order out, whatever the pages do."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar, cast

from connectors.page_process import Done, Failed, Limits, PageProcess
from schemas.page import ParseFailure

TIMEOUT_SECONDS = 20.0
MEMORY_BYTES = 1024 * 1024 * 1024
PAGES_A_PROCESS = 1000
IN_FLIGHT_A_PROCESS = 16
IN_FLIGHT_BYTES = 32 * 1024 * 1024
_TRIES = {"parse_crash": 2, "parse_memory": 2}


class PageInput(Protocol):
    """What the pool needs of an input: the URL that a failure is recorded under."""

    @property
    def url(self) -> str:
        """The page's URL."""
        ...


In = TypeVar("In", bound=PageInput)
Out = TypeVar("Out")


class PagePool(Generic[In, Out]):
    """Runs ``work`` on pages in processes that can be killed.

    Args:
        work: an importable function (it is pickled by name) of one picklable input.
        processes: how many pages at once; default: the cores this process may use.
        timeout_seconds: wall-clock time of one page; then its process is killed.
        memory_bytes: address space that a page may take over that of an idle process.
        preload: modules to import once and share among the processes; it counts for the first pool of
            this process only.

    Threads and processes start with the first pages and are kept; ``map`` may be called from several
    threads at once, which then share them. Each process has a thread and a pipe of its own, so one that
    dies, however it dies, takes nothing with it but the page in hand.
    """

    def __init__(
        self,
        work: Callable[[In], Out],
        processes: int | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
        preload: Sequence[str] = (),
    ) -> None:
        self._processes = processes or available_cores()
        if self._processes < 1 or timeout_seconds <= 0 or memory_bytes <= 0:
            raise ValueError("processes, timeout_seconds and memory_bytes must be > 0")
        self._work = work
        self._limits = Limits(timeout_seconds, memory_bytes)
        self._preload = tuple(preload)
        self._idle: deque[PageProcess] = deque()
        self._threads = ThreadPoolExecutor(self._processes, thread_name_prefix="page")

    def map(
        self, inputs: Iterable[In], size_of: Callable[[In], int] = lambda item: 0
    ) -> Iterator[Out | ParseFailure]:
        """Yield for each input, in their order, what ``work`` returned, or why it could not.

        Reasons: parse_timeout; parse_crash (the process died), parse_memory, both after a second try in a
        new process; parse_error (``work`` raised). Inputs are taken as results leave: at most 16 a process, and
        no more than the one that makes them over 32 MB, by ``size_of`` in bytes. An exception of ``inputs``
        passes through.
        """
        window: deque[tuple[Future[Out | ParseFailure], int]] = deque()
        held_bytes = 0
        try:
            for item in inputs:
                size = size_of(item)
                window.append((self._threads.submit(self._try, item), size))
                held_bytes += size
                del item
                while len(window) >= IN_FLIGHT_A_PROCESS * self._processes or held_bytes > IN_FLIGHT_BYTES:
                    future, size = window.popleft()
                    held_bytes -= size
                    yield future.result()
            while window:
                yield window.popleft()[0].result()
        finally:
            for future, _ in window:
                future.cancel()

    def close(self) -> None:
        """End threads and processes; pages in hand are finished first, those that wait are dropped."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        while self._idle:
            self._idle.pop().kill()

    def __enter__(self) -> PagePool[In, Out]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _try(self, item: In) -> Out | ParseFailure:
        tries = 0
        while True:
            tries += 1
            answer = self._ask(item)
            if isinstance(answer, Done):
                return cast(Out, answer.value)
            # A process may have been worn by earlier pages, or killed for another's memory: try a new one.
            if tries >= _TRIES.get(answer.reason, 1):
                return ParseFailure(item.url, answer.reason, answer.detail)

    def _ask(self, item: In) -> Done | Failed:
        try:
            process = self._idle.pop()
        except IndexError:
            process = PageProcess(self._work, self._limits, self._preload)
        try:
            answer = process.ask(item)
        except BaseException:
            process.kill()
            raise
        if process.is_spent or process.pages >= PAGES_A_PROCESS:
            process.kill()
        else:
            self._idle.append(process)
        return answer


_shared: dict[tuple[Any, ...], PagePool[Any, Any]] = {}
_shared_lock = threading.Lock()


def shared_page_pool(
    work: Callable[[In], Out],
    processes: int | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    memory_bytes: int = MEMORY_BYTES,
    preload: Sequence[str] = (),
) -> PagePool[In, Out]:
    """Return this process's one pool with these settings, made at the first call and never closed."""
    key = (os.getpid(), work, processes, timeout_seconds, memory_bytes)
    with _shared_lock:
        if key not in _shared:
            _shared[key] = PagePool(work, processes, timeout_seconds, memory_bytes, preload)
        return _shared[key]


def available_cores() -> int:
    """Return the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
