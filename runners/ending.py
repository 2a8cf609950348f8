"""How the process of a command ends: on Ctrl-C before it has begun, and afterwards for good."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from types import TracebackType

INTERRUPTED = "interrupted; what was written whole stays, the same command goes on from there"

_code: int | None = None


def watch() -> None:
    """Let Ctrl-C during the imports be one line and exit 1, and leave at the end without taking Python down.

    Threads of libraries in C++ may still be letting go of a file when Python is taken down; now and then one of them
    then aborts a command that is done. All that is registered for the exit has run before. Programs that
    import a command keep their own ways: only while `python -m` imports the package of its module is
    ``sys.argv[0]`` "-m".
    """
    if sys.argv[:1] != ["-m"]:
        return
    usual = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            usual(kind, error, trace)
            return
        sys.stderr.write(f"{INTERRUPTED}\n")
        sys.stderr.flush()
        os._exit(1)

    sys.excepthook = hook
    # The first to be registered is the last to be called.
    atexit.register(_leave)


def ends_with(code: int) -> int:
    """Note the exit code of a command that is done, and return it."""
    global _code
    _code = code
    return code


def _leave() -> None:
    if _code is None:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(_code)
