"""All figures of a report, read from the files of a committed round. Imports no Beam."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from connectors import calendar
from connectors.rounds import CrawlFolder
from connectors.scan import state_batches, table_batches
from connectors.sweep import KEPT_MANIFESTS
from schemas.crawl import CrawlIdentity
from schemas.manifest import FileEntry, Manifest
from transforms.report import captures as report_captures
from transforms.report import frontier as report_frontier
from transforms.report.captures import CaptureFigures, partition_figures
from transforms.report.frontier import FrontierFigures, frontier_figures
from transforms.report.tables import TableFigures, file_figures

READERS = 4
EARLIER_ROUNDS = 10


class RoundLine(NamedTuple):
    """One round in the table of rounds."""

    round: int
    committed_at: str
    planned: int
    fetched: int
    not_modified: int
    pages: int
    urls_new: int
    bytes_fetched: int


class Archive(NamedTuple):
    """The WARC files of one subset."""

    subset: str
    files: int
    records: int
    bytes: int


@dataclass(frozen=True)
class RoundFigures:
    """All that a report shows. ``frontier`` is None when the state of that round is no longer kept."""

    root: str
    identity: CrawlIdentity
    manifest: Manifest
    captures: CaptureFigures
    tables: TableFigures
    frontier: FrontierFigures | None
    archives: tuple[Archive, ...]
    rounds: tuple[RoundLine, ...]


def figures_of(folder: CrawlFolder, number: int) -> RoundFigures:
    """Return the figures of a committed round.

    Streams the columns that it needs: memory follows the hosts of one partition, not the rows of the round.
    Raises CrawlFolderError when the round is not committed, DamagedFile for a file that does not read.
    """
    identity, manifest = folder.identity(), folder.read_manifest(number)
    with ThreadPoolExecutor(READERS, "report") as readers:
        captures, tables = CaptureFigures(), TableFigures()
        for part in readers.map(partial(_captures, folder), _by_partition(manifest, "captures")):
            captures.merge(part)
        for part in readers.map(partial(file_figures, folder.storage), _own_tables(manifest)):
            tables.merge(part)
        frontier = None
        if number > folder.newest_round() - KEPT_MANIFESTS:
            frontier = FrontierFigures()
            as_of = datetime.fromisoformat(manifest.as_of).timestamp()
            files = (entry for entry in manifest.files if entry.table == calendar.TABLE)
            for part in readers.map(partial(_frontier, folder, as_of), files):
                frontier.merge(part)
    return RoundFigures(
        root=folder.root,
        identity=identity,
        manifest=manifest,
        captures=captures,
        tables=tables,
        frontier=frontier,
        archives=tuple(_archives(manifest)),
        rounds=tuple(_rounds(folder, manifest)),
    )


def _captures(folder: CrawlFolder, entries: Sequence[FileEntry]) -> CaptureFigures:
    return partition_figures(
        batch for entry in entries for batch in table_batches(folder.storage, entry, report_captures.COLUMNS)
    )


def _frontier(folder: CrawlFolder, as_of: float, entry: FileEntry) -> FrontierFigures:
    return frontier_figures(state_batches(folder.storage, entry, report_frontier.COLUMNS), as_of)


def _own_tables(manifest: Manifest) -> Iterator[FileEntry]:
    return (entry for entry in manifest.files if entry.path.startswith("tables/"))


def _by_partition(manifest: Manifest, table: str) -> Iterable[list[FileEntry]]:
    """Return the files of a table that is partitioned by host, those of one partition together."""
    grouped: dict[int, list[FileEntry]] = {}
    for entry in _own_tables(manifest):
        if entry.table == table:
            grouped.setdefault(entry.partition, []).append(entry)
    return grouped.values()


def _archives(manifest: Manifest) -> Iterator[Archive]:
    grouped: dict[str, list[FileEntry]] = {}
    for entry in manifest.files:
        if entry.table == "warc":
            grouped.setdefault(entry.path.split("/")[2], []).append(entry)
    for subset, entries in sorted(grouped.items()):
        records, size = sum(entry.rows for entry in entries), sum(entry.bytes for entry in entries)
        yield Archive(subset, len(entries), records, size)


def _rounds(folder: CrawlFolder, manifest: Manifest) -> Iterator[RoundLine]:
    first = max(1, manifest.round - EARLIER_ROUNDS + 1)
    for number in range(first, manifest.round + 1):
        one = manifest if number == manifest.round else folder.read_manifest(number)
        yield RoundLine(
            round=number,
            committed_at=one.committed_at,
            planned=one.planned,
            fetched=sum(one.outcomes.get("fetched", {}).values()),
            not_modified=sum(one.outcomes.get("not_modified", {}).values()),
            pages=sum(entry.rows for entry in one.files if entry.table == "pages"),
            urls_new=one.counters.get("urls_new", 0),
            bytes_fetched=one.counters.get("bytes_fetched", 0),
        )
