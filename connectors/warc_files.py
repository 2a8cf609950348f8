"""WARC files by pattern, wherever they lie."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from connectors.files import open_storage

_WILD = re.compile(r"[*?\[]")


class StoredFile(NamedTuple):
    """A file: its name ``path`` inside the storage ``root``."""

    root: str
    path: str


def find_files(pattern: str) -> list[StoredFile]:
    """Return the files that match a pattern, sorted by path; none when nothing does.

    ``*`` and ``?`` stop at a slash, ``**`` stands for any folders, as in a shell. Local paths, gs:// and
    s3://. Raises StorageError when an object store cannot be listed.
    """
    if "://" not in pattern:
        names = (os.path.abspath(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH100, PTH207
        return [StoredFile(*os.path.split(name)) for name in sorted(names) if os.path.isfile(name)]  # noqa: PTH113
    scheme, _, rest = pattern.partition("://")
    bucket, _, key = rest.partition("/")
    root = f"{scheme}://{bucket}"
    wild = _WILD.search(key)
    prefix = key[: wild.start()] if wild else key
    matches = re.compile(_expression(key)).fullmatch
    return [StoredFile(root, info.path) for info in open_storage(root).list(prefix) if matches(info.path)]


def _expression(pattern: str) -> str:
    return "".join(_translated(re.split(r"(\*\*/|\*\*|\*|\?)", pattern)))


def _translated(pieces: list[str]) -> Iterator[str]:
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    for piece in pieces:
        yield wild.get(piece) or re.escape(piece)
