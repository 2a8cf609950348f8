"""Local files that are on their way to an object store: one folder a process, gone when its process is."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

LOCK = ".lock"

# Per process: after a fork the child finds no entry of its own and makes its own folder.
_folders: dict[int, Path] = {}


def process_folder() -> Path:
    """Return this process's folder in the machine's temporary folder, of this user only.

    It is removed at exit. What a killed process left there (up to a WARC file's size a shard) is removed when
    the next process on the machine asks for its own: a lock tells the dead from the living.
    """
    process = os.getpid()
    if process not in _folders:
        base = Path(tempfile.gettempdir()) / f"roundcrawl-{os.getuid()}"
        base.mkdir(mode=0o700, exist_ok=True)
        with _locked(base):
            _remove_dead(base)
            _folders[process] = _make(base)
    return _folders[process]


def _make(base: Path) -> Path:
    folder = base / f"{os.getpid()}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    # Never closed: the lock ends with the process (and with children that were forked from it).
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    atexit.register(_remove_own, os.getpid(), folder)
    return folder


def _remove_own(process: int, folder: Path) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_dead(base: Path) -> None:
    for child in base.iterdir():
        if child.is_dir() and _is_dead(child):
            shutil.rmtree(child, ignore_errors=True)


def _is_dead(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@contextlib.contextmanager
def _locked(base: Path) -> Iterator[None]:
    descriptor = os.open(base / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
