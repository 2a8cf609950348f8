"""Work for page processes to do: pages that behave, and pages that do the worst they can."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from typing import NamedTuple


class Order(NamedTuple):
    """One page: what it does to its process, and a number or text to do it with."""

    url: str
    deed: str = "answer"
    value: str = ""


def obey(order: Order) -> str:
    """Do what the order says. Most deeds do not return."""
    return DEEDS[order.deed](order.value)


def _answer(value: str) -> str:
    return value


def _pid(value: str) -> str:
    return f"{os.getpid()}"


def _exit(value: str) -> str:
    os._exit(int(value))


def _leave(value: str) -> str:
    sys.exit(int(value))


def _signal(value: str) -> str:
    os.kill(os.getpid(), signal.Signals[value])
    threading.Event().wait()
    return ""


def _segfault(value: str) -> str:
    ctypes.string_at(0)
    return ""


def _loop(value: str) -> str:
    while True:
        pass


def _tell(value: str) -> None:
    with open(value, "w", encoding="ascii") as pipe:
        pipe.write(str(os.getpid()))


def _tell_and_loop(value: str) -> str:
    _tell(value)
    return _loop("")


def _tell_and_loop_deaf(value: str) -> str:
    _tell(value)
    return _loop_deaf("")


def _tell_and_loop_in_c(value: str) -> str:
    _tell(value)
    return _loop_in_c("9")


def _loop_deaf(value: str) -> str:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        pass


def _loop_in_c(value: str) -> str:
    return str(10 ** (10 ** int(value)) % 7)


def _hog(value: str) -> str:
    return str(len(bytearray(int(value))))


def _hog_slowly(value: str) -> str:
    kept = []
    while True:
        kept.append(bytearray(1_000_000))


def _raise(value: str) -> str:
    raise ValueError(value)


def _recurse(value: str) -> str:
    return _recurse(value)


def _print(value: str) -> str:
    for stream in (1, 2):
        for _ in range(int(value)):
            os.write(stream, b"x" * 65536)
    return "printed"


def _unpicklable(value: str) -> str:
    return lambda: value  # type: ignore[return-value]


DEEDS = {
    "answer": _answer,
    "pid": _pid,
    "exit": _exit,
    "leave": _leave,
    "signal": _signal,
    "segfault": _segfault,
    "loop": _loop,
    "tell and loop": _tell_and_loop,
    "tell and loop deaf": _tell_and_loop_deaf,
    "tell and loop in C": _tell_and_loop_in_c,
    "loop deaf": _loop_deaf,
    "loop in C": _loop_in_c,
    "hog": _hog,
    "hog slowly": _hog_slowly,
    "raise": _raise,
    "recurse": _recurse,
    "print": _print,
    "unpicklable": _unpicklable,
}
