"""The texts of a round's pages as WET files, one for each WARC file. Imports no Beam."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc

from connectors import layout
from connectors.faults import DamagedFile
from connectors.files import AlreadyThere
from connectors.rounds import CrawlFolder
from connectors.scan import table_batches
from connectors.warc_read import DamagedWarc
from connectors.warc_records import RecordIds
from connectors.wet import Source, TextFile, read_sources
from schemas.crawl import CrawlIdentity
from schemas.manifest import FileEntry, Manifest

WRITERS = 4
BATCH_TEXTS = 1_024
_PLACE = ("warc_filename", "warc_record_offset", "warc_record_length", "url")


class Exported(NamedTuple):
    """One WET file. ``records`` counts the texts written now: 0 for a file that was there already."""

    path: str
    records: int
    is_new: bool


def export_wet(folder: CrawlFolder, number: int) -> Iterator[Exported]:
    """Write the WET files of a committed round that are not there yet, and yield all of them by name.

    One for each WARC file of the subset warc, also if it holds no page, and for any other file that holds
    one. A file is created once and whole: after an interruption a further run goes on. Its records stand in the
    order of the pages table, its bytes depend on nothing but the round. Raises CrawlFolderError when the round
    is not committed, DamagedFile for a file that does not read, or whose records are not what the tables say.
    """
    identity, manifest = folder.identity(), folder.read_manifest(number)
    pages = _pages_of(folder, manifest)
    warcs = [
        entry.path
        for entry in manifest.files
        if entry.table == "warc" and (entry.path in pages or entry.path.split("/")[2] == "warc")
    ]
    with ThreadPoolExecutor(WRITERS, "wet") as writers:
        yield from writers.map(partial(_export, folder, identity, manifest, pages), sorted(warcs))


def _pages_of(folder: CrawlFolder, manifest: Manifest) -> dict[str, list[FileEntry]]:
    """Return the files of the pages table that tell of each WARC file: as a rule, one."""
    found: dict[str, list[FileEntry]] = {}
    for entry in manifest.files:
        if entry.table == "pages":
            names: set[str] = set()
            for batch in table_batches(folder.storage, entry, ["warc_filename"]):
                names.update(pc.unique(batch.column(0)).to_pylist())
            for name in names:
                found.setdefault(name, []).append(entry)
    return found


def _export(
    folder: CrawlFolder,
    identity: CrawlIdentity,
    manifest: Manifest,
    pages: Mapping[str, Sequence[FileEntry]],
    warc: str,
) -> Exported:
    path = layout.wet_path(manifest.round, warc)
    if folder.storage.exists(path):
        return Exported(path, 0, False)
    tables = pages.get(warc, ())
    sources = _sources(folder, warc, tables)
    ids = RecordIds(identity.name, identity.salt, manifest.round, "wet")
    try:
        with folder.storage.creating(path) as local:
            with TextFile(Path(local), path, warc, manifest.committed_at, ids) as out:
                for row in _rows(folder, warc, tables, ("warc_filename", "warc_record_offset", "text")):
                    out.append(sources[row["warc_record_offset"]], row["text"])
            records = out.records
    except AlreadyThere:
        return Exported(path, 0, False)
    return Exported(path, records, True)


def _sources(folder: CrawlFolder, warc: str, tables: Sequence[FileEntry]) -> dict[int, Source]:
    """Return the captures that the pages of a WARC file come from, by offset; headers only are read."""
    places = [
        (row["warc_record_offset"], row["warc_record_length"], row["url"])
        for row in _rows(folder, warc, tables, _PLACE)
    ]
    if not places:
        return {}
    name = f"{folder.root}/{warc}"
    try:
        with folder.storage.open_read(warc) as file:
            return dict(read_sources(file, places))
    except FileNotFoundError as error:
        raise DamagedFile(f"{name} is missing") from error
    except DamagedWarc as error:
        raise DamagedFile(f"{name} is damaged: {error}") from error


def _rows(
    folder: CrawlFolder, warc: str, tables: Sequence[FileEntry], columns: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for entry in tables:
        for batch in table_batches(folder.storage, entry, columns, BATCH_TEXTS):
            yield from batch.filter(pc.equal(batch.column("warc_filename"), warc)).to_pylist()
