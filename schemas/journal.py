"""The record by which a piece of a shard's fetching becomes real."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.manifest import FileEntry


@dataclass(frozen=True)
class JournalEntry:
    """One closed WARC segment of a shard and what became of its URLs. Paths are relative to the crawl folder.

    Segments count from 1 without a gap. A file that an entry names is complete and verified; a file of
    the fetch step that no entry names is litter. ``cdxj`` maps each WARC file to its sorted index rows;
    ``outcomes_path`` holds OutcomeRow, ``hosts_path`` HostState and ``robots_path`` RobotsState rows ('' when
    there are none). ``planned_done`` counts the plan's URLs that are done with this entry; ``bytes`` is what
    the responses' bodies took. ``digests`` gives BLAKE2b-128, hex, of the side files by path. ``is_last``
    says that nothing of the shard's plan is left. Instants are UTC epoch seconds; ``attempt`` is the random
    token of the attempt that wrote it.
    """

    shard: int
    segment: int
    attempt: str
    opened_at: float
    closed_at: float
    warcs: tuple[FileEntry, ...]
    cdxj: dict[str, str]
    outcomes_path: str
    hosts_path: str = ""
    robots_path: str = ""
    planned_done: int = 0
    bytes: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    is_last: bool = False
