"""The round in hand, and the small references that flow between its steps.

Everything large (URL lists, bodies, links, texts) lies in files; the elements of the Beam job
only name them. Paths are relative to the crawl folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from schemas.flags import CrawlFlags


@dataclass(frozen=True)
class RoundSpec:
    """What every step of a round must know; small, picklable, the same for every worker.

    ``parent`` is the number of the newest committed round, None before the first. ``as_of`` decides
    what is due; ``deadline_at`` is absolute, so that a retried shard does not get a new hour.
    """

    crawl: str
    name: str
    salt: str
    partitions: int
    scope: str
    round: int
    parent: int | None
    run_id: str
    as_of: float
    started_at: float
    deadline_at: float
    flags: CrawlFlags
    attempt: str


@dataclass(frozen=True)
class ShardPlan:
    """One shard's share of the plan: what it is predicted to take."""

    shard: int
    urls: int
    hosts: int
    load_seconds: float


@dataclass(frozen=True)
class RoundPlan:
    """The create-only plan of a round. A rerun reads it instead of planning again.

    ``rank_cut`` is the largest rank that is planned; ``due`` names the file of each partition
    that read due URLs; ``assignment`` is the file that maps host keys to shards.
    """

    format_version: int
    round: int
    parent: int | None
    run_id: str
    as_of: float
    planned_at: float
    round_seconds: float
    flags: dict[str, Any]
    planned: int
    hosts: int
    left_out: dict[str, int]
    rank_cut: float
    predicted_bytes: float
    shards: tuple[ShardPlan, ...]
    due: tuple[DueRef, ...]
    assignment: str
    injected: tuple[str, ...] = ()
    consumed: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


class SeedPart(NamedTuple):
    """One partition's row group in the file of newly injected seeds."""

    partition: int
    path: str
    row_group: int


class DueRef(NamedTuple):
    """The due URLs of one partition: every calendar row that was read, selected or left out.

    ``consumed`` names the calendar files that the rows came from; they are replaced by the round.
    """

    partition: int
    path: str
    rows: int
    selected: int
    left_out: str
    consumed: str


class ListPart(NamedTuple):
    """One shard's URLs, hosts and robots.txt of one partition: the same row group of three files."""

    shard: int
    row_group: int
    urls_path: str
    hosts_path: str
    robots_path: str


class SegmentRef(NamedTuple):
    """One journal entry: a committed piece of a shard's fetching."""

    shard: int
    segment: int
    path: str


class ParsedRef(NamedTuple):
    """A parsed segment: its outcome rows, its pages, and the sketches that the content gate reads."""

    segment: str
    outcomes_path: str
    parsed_path: str
    sketches_path: str
    sketches: int


class VerdictRef(NamedTuple):
    """A file of duplicate verdicts for the pages of one segment."""

    segment: str
    path: str
    rows: int


class PartitionPart(NamedTuple):
    """A row group of a file that belongs to one partition. ``kind`` is outcomes or candidates."""

    partition: int
    kind: str
    path: str
    row_group: int
    rows: int


class Tally(NamedTuple):
    """A count for the manifest. ``group`` is outcome, left_out or counter; names may hold a slash."""

    group: str
    name: str
    value: int
