"""The pool of page processes: order, limits, and every way in which a page can take its process down."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.page_pool import IN_FLIGHT_A_PROCESS, IN_FLIGHT_BYTES, PagePool, shared_page_pool
from schemas.page import ParseFailure
from tests.fakes.page_work import Order, obey

MEGABYTE = 1024 * 1024
TIMEOUT_SECONDS = 2.0


@pytest.fixture(scope="module")
def pool() -> Iterator[PagePool[Order, str]]:
    with PagePool(obey, processes=2, timeout_seconds=TIMEOUT_SECONDS, memory_bytes=300 * MEGABYTE) as pool:
        yield pool


def among_good_pages(pool: PagePool[Order, str], bad: Order) -> ParseFailure | str:
    """Return what became of a page amid twenty that must all come back, in their order."""
    good = [Order(f"https://a.example/{number}", "answer", str(number)) for number in range(20)]
    results = list(pool.map([*good[:10], bad, *good[10:]]))
    assert results[:10] + results[11:] == [str(number) for number in range(20)]
    return results[10]


def test_results_come_in_the_order_of_the_inputs(pool: PagePool[Order, str]) -> None:
    orders = [Order(f"u{number}", "answer", str(number)) for number in range(500)]
    assert list(pool.map(orders)) == [str(number) for number in range(500)]


def test_nothing_in_nothing_out(pool: PagePool[Order, str]) -> None:
    assert list(pool.map([])) == []


@pytest.mark.parametrize(
    ("deed", "value", "reason", "detail"),
    [
        ("exit", "0", "parse_crash", "exit code 0"),
        ("exit", "3", "parse_crash", "exit code 3"),
        ("leave", "4", "parse_crash", "exit code 4"),
        ("segfault", "", "parse_crash", "SIGSEGV"),
        ("signal", "SIGABRT", "parse_crash", "SIGABRT"),
        ("signal", "SIGTERM", "parse_crash", "SIGTERM"),
        ("signal", "SIGKILL", "parse_crash", "SIGKILL"),
        ("hog", str(2_000 * MEGABYTE), "parse_memory", "memory"),
        ("hog slowly", "", "parse_memory", "memory"),
        ("raise", "bad\x1b[31m\npage", "parse_error", "ValueError: bad [31m page"),
        ("recurse", "", "parse_error", "RecursionError"),
        ("unpicklable", "", "parse_error", "pickle"),
    ],
)
def test_a_page_that_takes_its_process_down_costs_one_page(
    pool: PagePool[Order, str], deed: str, value: str, reason: str, detail: str
) -> None:
    failure = among_good_pages(pool, Order("https://bad.example/", deed, value))
    assert isinstance(failure, ParseFailure)
    assert (failure.url, failure.reason) == ("https://bad.example/", reason)
    assert detail in failure.detail


@pytest.mark.parametrize("deed", ["loop", "loop deaf", "loop in C"])
def test_a_page_without_end_is_killed_in_time(pool: PagePool[Order, str], deed: str) -> None:
    began = time.monotonic()
    failure = among_good_pages(pool, Order("https://slow.example/", deed, "9"))
    assert failure == ParseFailure("https://slow.example/", "parse_timeout", "2 s")
    assert TIMEOUT_SECONDS <= time.monotonic() - began < TIMEOUT_SECONDS + 10


def test_memory_within_the_limit_is_granted_and_the_process_then_replaced() -> None:
    with PagePool(obey, processes=1, memory_bytes=1000 * MEGABYTE) as pool:
        before, hog, after = pool.map(
            [Order("u", "pid"), Order("v", "hog", str(400 * MEGABYTE)), Order("w", "pid")]
        )
    assert hog == str(400 * MEGABYTE)
    assert before != after


def test_a_process_killed_while_idle_costs_nothing() -> None:
    with PagePool(obey, processes=1) as pool:
        (pid,) = pool.map([Order("u", "pid")])
        os.kill(int(str(pid)), signal.SIGKILL)
        assert list(pool.map([Order("v", "answer", "still here")])) == ["still here"]


@pytest.mark.parametrize("deed", ["tell and loop", "tell and loop deaf", "tell and loop in C"])
def test_a_page_in_hand_is_killed_with_its_parent(tmp_path: Path, deed: str) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    program = (
        "from connectors.page_pool import PagePool; from tests.fakes.page_work import Order, obey\n"
        f"list(PagePool(obey, 1, timeout_seconds=600).map([Order('u', {deed!r}, {str(pipe)!r})]))"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    page = os.pidfd_open(int(pipe.read_text(encoding="ascii")))
    parent.kill()
    parent.wait()
    ended, _, _ = select.select([page], [], [], 20)
    os.close(page)
    assert ended


def test_an_idle_process_ends_with_its_parent() -> None:
    program = (
        "import os; from connectors.page_pool import PagePool; from tests.fakes.page_work import Order, obey\n"
        "print(*PagePool(obey, 1).map([Order('u', 'pid')]), flush=True); os.read(0, 1)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        page = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    ended, _, _ = select.select([page], [], [], 20)
    os.close(page)
    assert ended


def test_output_of_a_page_goes_nowhere() -> None:
    program = (
        "from connectors.page_pool import PagePool; from tests.fakes.page_work import Order, obey\n"
        "with PagePool(obey, 1) as pool: print(*pool.map([Order('u', 'print', '64')]))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("printed\n", "")


def test_a_page_process_does_not_import_the_main_module(tmp_path: Path) -> None:
    (tmp_path / "heavy.py").write_text(
        "import pathlib\n"
        "with pathlib.Path('imports').open('a') as imports: imports.write(f'{__name__} ')\n"
        "from connectors.page_pool import PagePool\n"
        "from tests.fakes.page_work import Order, obey\n"
        "if __name__ == '__main__':\n"
        "    with PagePool(obey, 2) as pool: print(list(pool.map([Order('u', 'answer', 'ok')] * 2)), __file__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for way in (["heavy.py"], ["-m", "heavy"]):
        command = [sys.executable, *way]
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.startswith("['ok', 'ok']")
        assert "heavy.py" in run.stdout
    assert (tmp_path / "imports").read_text() == "__main__ " * 2


def test_processes_are_kept_and_are_no_more_than_asked_for(pool: PagePool[Order, str]) -> None:
    pids = set(pool.map([Order(str(number), "pid") for number in range(200)]))
    assert 1 <= len(pids) <= 2


def test_inputs_are_taken_only_as_results_leave() -> None:
    taken = 0

    def orders() -> Iterator[Order]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield Order(str(number), "answer", "x" * 1000)

    with PagePool(obey, processes=1) as pool:
        ahead = [taken - done for done, _ in enumerate(pool.map(orders()))]
    assert max(ahead) <= IN_FLIGHT_A_PROCESS
    assert taken == 1000


def test_large_inputs_are_not_held_in_number() -> None:
    taken = 0

    def inputs() -> Iterator[Order]:
        nonlocal taken
        for number in range(60):
            taken += 1
            yield Order(f"http://a.example/{number}")

    with PagePool(obey, 1) as pool:
        for given, _ in enumerate(pool.map(inputs(), lambda order: IN_FLIGHT_BYTES // 3)):
            assert taken - given <= 4
    assert taken == 60


def test_an_exception_of_the_inputs_passes_through(pool: PagePool[Order, str]) -> None:
    def orders() -> Iterator[Order]:
        yield Order("u")
        raise LookupError("the segment is gone")

    with pytest.raises(LookupError, match="the segment is gone"):
        list(pool.map(orders()))
    assert list(pool.map([Order("v", "answer", "goes on")])) == ["goes on"]


def test_a_consumer_that_stops_early_leaves_the_pool_usable(pool: PagePool[Order, str]) -> None:
    results = pool.map([Order(str(number), "answer", str(number)) for number in range(100)])
    assert next(results) == "0"
    results.close()  # type: ignore[attr-defined]
    assert list(pool.map([Order("v", "answer", "goes on")])) == ["goes on"]


def test_threads_share_a_pool(pool: PagePool[Order, str]) -> None:
    def crawl(thread: int) -> list[str | ParseFailure]:
        deed = ("exit", "9") if thread == 2 else ("answer", str(thread))
        return list(pool.map([Order(f"{thread}/{number}", *deed) for number in range(20)]))

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(crawl, range(4)))
    for thread in (0, 1, 3):
        assert results[thread] == [str(thread)] * 20
    assert {failure.reason for failure in results[2] if isinstance(failure, ParseFailure)} == {"parse_crash"}


def test_work_that_cannot_be_imported_is_a_fault_not_an_outcome() -> None:
    vanishing = type("vanishing", (), {"__module__": "tests.fakes.page_work", "__qualname__": "nobody"})
    with PagePool(vanishing, processes=1) as pool, pytest.raises(Exception, match="nobody"):
        list(pool.map([Order("u")]))


@pytest.mark.parametrize("bad", [{"processes": -1}, {"timeout_seconds": 0}, {"memory_bytes": 0}])
def test_limits_must_be_positive(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be > 0"):
        PagePool(obey, **bad)  # type: ignore[arg-type]


def test_one_shared_pool_for_the_same_settings() -> None:
    gate = threading.Barrier(4)

    def shared(_: int) -> PagePool[Order, str]:
        gate.wait()
        return shared_page_pool(obey, processes=1)

    with ThreadPoolExecutor(4) as threads:
        pools = set(threads.map(shared, range(4)))
    assert len(pools) == 1
    assert shared_page_pool(obey, processes=2) not in pools


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["answer", "exit", "raise"]), max_size=8))
def test_every_input_has_exactly_one_result(deeds: list[str]) -> None:
    pool = shared_page_pool(obey, processes=2)
    orders = [Order(f"https://{n}.example/", deed, str(n + 1)) for n, deed in enumerate(deeds)]
    reasons = {"exit": "parse_crash", "raise": "parse_error"}
    results = list(pool.map(orders))
    assert len(results) == len(orders)
    for order, result in zip(orders, results, strict=True):
        if isinstance(result, ParseFailure):
            assert (result.url, result.reason) == (order.url, reasons[order.deed])
        else:
            assert (order.deed, result) == ("answer", order.value)
