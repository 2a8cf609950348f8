"""Names of files and the record of a committed round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

FORMAT_VERSION = 1


class FileEntry(NamedTuple):
    """One immutable file of a round. ``path`` is relative to the crawl folder.

    ``staged_path`` is where it lies until the round is committed ('' when already in place).
    ``digest`` is BLAKE2b-128, hex, over the bytes as stored. Keys are inclusive bounds.
    """

    path: str
    staged_path: str
    table: str
    partition: int
    level: int
    rows: int
    bytes: int
    digest: str
    min_key: int = 0
    max_key: int = 0


class Counter(NamedTuple):
    """One named count that a step adds to the round's manifest."""

    name: str
    value: int


@dataclass(frozen=True)
class Manifest:
    """A committed round: everything that is real in the crawl folder after it.

    ``revisit_cells`` counts the crawl's pages by worth and change rate, ``round_interval_seconds`` is the mean time
    between its rounds: from both follows what a visit costs in the next.
    """

    format_version: int
    round: int
    run_id: str
    parent: int | None
    as_of: str
    started_at: str
    committed_at: str
    flags: dict[str, Any]
    planned: int
    outcomes: dict[str, dict[str, int]]
    left_out: dict[str, int]
    counters: dict[str, int]
    injected: list[str]
    files: list[FileEntry] = field(default_factory=list)
    revisit_cells: dict[str, int] = field(default_factory=dict)
    round_interval_seconds: float | None = None
