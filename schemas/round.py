"""The round in hand, and the small references that flow between its steps.

Everything large (URL lists, bodies, links, texts) lies in files; the elements of the Beam job
only name them. Paths are relative to the crawl folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

    ``cut_rank`` and ``cut_key`` are the last (rank, URL key) that is planned, None when all are; ``due``
    names the file of each partition that read due URLs; ``shard_of_group`` maps the top 16 bits of a host
    key to its shard; ``policy_path`` and ``scope_path`` name the state files in force, '' for none.
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
    cut_rank: float | None
    cut_key: int | None
    shards: tuple[ShardPlan, ...]
    due: tuple[DueRef, ...]
    shard_of_group: dict[str, int]
    injected: tuple[str, ...]
    policy_path: str
    scope_path: str


class SeedPart(NamedTuple):
    """A partition that has something to plan, and its row group of newly injected seeds ('' for none).

    ``absorbed_path`` names the document that says which inject files this plan takes in.
    """

    partition: int
    path: str
    row_group: int
    absorbed_path: str


class DueRef(NamedTuple):
    """The due URLs of one partition: every calendar row that was read, selected or left out.

    ``path`` is a file of UrlState with three more columns: ``rank``, ``verdict`` (selected, a reason, or
    not_due for rows of a coarse slot that opened) and ``is_new`` (a seed that no earlier round knew).
    ``hosts_path`` is a file of HostState. ``consumed`` names the calendar files that the rows came from; the
    round replaces them.
    """

    partition: int
    path: str
    hosts_path: str
    rows: int
    consumed: Sequence[str]
    absorbed_path: str


class ListPart(NamedTuple):
    """One shard's URLs, hosts and robots.txt of one partition: row groups of that partition's dealt files.

    ``row_group`` numbers the URLs and the hosts; ``robots_row_group`` is -1 where no robots.txt is known.
    """

    shard: int
    row_group: int
    urls_path: str
    hosts_path: str
    robots_path: str
    robots_row_group: int


class SegmentRef(NamedTuple):
    """One journal entry: a committed piece of a shard's fetching."""

    shard: int
    segment: int
    path: str


class ParsedRef(NamedTuple):
    """A parsed segment: its outcome rows, its pages, the sketches that the content gate reads, host clocks."""

    segment: str
    outcomes_path: str
    parsed_path: str
    sketches_path: str
    sketches: int
    hosts_path: str
    robots_path: str


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


class FileRow(NamedTuple):
    """A FileEntry between two steps: its keys are 16 hex digits, for the whole numbers of a row are signed."""

    path: str
    staged_path: str
    table: str
    partition: int
    level: int
    rows: int
    bytes: int
    digest: str
    min_key: str
    max_key: str


class Tally(NamedTuple):
    """A count for the manifest. ``group`` is outcome, revisits or counter; names may hold a slash."""

    group: str
    name: str
    value: int
