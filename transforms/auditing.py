"""The laws that a crawl folder must keep, checked against its files alone. Imports no Beam."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from connectors import calendar, cdxj, tables
from connectors.files import digest_of
from connectors.rounds import CrawlFolder
from connectors.warc_verify import verify_open_warc
from crawler.urls import surt_key
from schemas.manifest import FileEntry, Manifest

READERS = 4
PACING_TOLERANCE_SECONDS = 0.001
MOST_FAULTS = 1000


class Audit:
    """Checks one crawl: each law is a method that yields its faults, as lines for a person."""

    def __init__(self, folder: CrawlFolder) -> None:
        self.folder = folder
        self.rounds = self.files = self.captures = 0
        self._kept: dict[str, str] = {}
        self._last: dict[str, tuple[float, str]] = {}

    def run(self) -> list[str]:
        """Return every fault found, at most 1,000; [] for a crawl in good order."""
        faults: list[str] = []
        newest = self.folder.newest_round()
        self.rounds = newest
        for number in range(1, newest + 1):
            for fault in self._round(self.folder.read_manifest(number), is_newest=number == newest):
                faults.append(fault)
                if len(faults) >= MOST_FAULTS:
                    return [*faults, f"more than {MOST_FAULTS} faults; the rest is not listed"]
        return faults

    def _round(self, manifest: Manifest, is_newest: bool) -> Iterator[str]:
        own = [entry for entry in manifest.files if _is_of_round(entry)]
        checked = [*own, *(entry for entry in manifest.files if not _is_of_round(entry) and is_newest)]
        yield from self._digests([entry for entry in checked if entry.table != "warc"])
        yield from self._archives(manifest, own)
        if is_newest:
            yield from self._frontier(manifest)
        yield from self._ledger(manifest, own)

    def _digests(self, entries: Sequence[FileEntry]) -> Iterator[str]:
        """Every file that the manifest names is there, with the bytes and the digest that it says."""
        self.files += len(entries)
        with ThreadPoolExecutor(READERS) as readers:
            yield from (fault for fault in readers.map(self._file_fault, entries) if fault)

    def _file_fault(self, entry: FileEntry) -> str | None:
        path = self._place(entry)
        try:
            with self.folder.storage.open_read(path) as file:
                digest = digest_of(file)
        except (OSError, ValueError) as error:
            return f"{path}: cannot be read: {error}"
        return None if digest == entry.digest else f"{path}: its digest is not the one in the manifest"

    def _place(self, entry: FileEntry) -> str:
        """Return where the file lies now: a publication may have been interrupted."""
        if entry.staged_path and not self.folder.storage.exists(entry.path):
            return entry.staged_path
        return entry.path

    def _archives(self, manifest: Manifest, own: Sequence[FileEntry]) -> Iterator[str]:
        """Every record of a WARC file is in order, and every index row reads back its URL."""
        warcs = {entry.path: entry for entry in own if entry.table == "warc"}
        self.files += len(warcs)
        rows: dict[str, list[str]] = {path: [] for path in warcs}
        for entry in own:
            if entry.table == "index":
                yield from self._index_rows(self._place(entry), rows)
        with ThreadPoolExecutor(READERS) as readers:
            for faults in readers.map(lambda path: self._warc_faults(warcs[path], rows[path]), sorted(warcs)):
                yield from faults

    def _index_rows(self, path: str, rows: dict[str, list[str]]) -> Iterator[str]:
        try:
            with self.folder.storage.open_read(path) as file:
                for line in cdxj.read_lines(file):
                    row = cdxj.parse_row(line)
                    filename = row.fields["filename"]
                    if row.key != surt_key(row.fields["url"]):
                        yield f"{path}: the key {row.key} is not that of {row.fields['url']}"
                    if filename in rows:
                        rows[filename].append(line)
                    else:
                        yield f"{path}: a row names {filename}, which is no file of the round"
        except (OSError, ValueError, KeyError, EOFError, zlib.error) as error:
            yield f"{path}: cannot be read: {error}"

    def _warc_faults(self, entry: FileEntry, rows: list[str]) -> list[str]:
        try:
            with self.folder.storage.open_read(entry.path) as file:
                name = entry.path.rpartition("/")[2]
                faults = verify_open_warc(file, name, rows, entry.digest)
        except (OSError, ValueError, EOFError) as error:
            faults = [f"cannot be read: {error}"]
        return [f"{entry.path}: {fault}" for fault in faults]

    def _frontier(self, manifest: Manifest) -> Iterator[str]:
        """Every known URL stands in the calendar, exactly once: |seen| = |calendar| (nothing is dropped)."""
        rows: Counter[str] = Counter()
        for entry in manifest.files:
            rows[entry.table] += entry.rows
        if rows["seen"] != rows[calendar.TABLE]:
            yield f"round {manifest.round}: {rows['seen']} URLs are known, {rows[calendar.TABLE]} in the calendar"

    def _ledger(self, manifest: Manifest, own: Sequence[FileEntry]) -> Iterator[str]:
        captures = self._table("captures", own)
        if isinstance(captures, str):
            yield captures
            return
        self.captures += captures.num_rows
        yield from self._balance(manifest, captures)
        yield from self._pacing(captures)
        yield from self._survivors(manifest, captures, own)

    def _table(self, name: str, own: Sequence[FileEntry]) -> pa.Table | str:
        """Return a table of the round, or the fault that keeps it from being read."""
        read = [tables.arrow_schema(name).empty_table()]
        for entry in own:
            if entry.table == name and entry.path.startswith("tables/"):
                path = self._place(entry)
                try:
                    with self.folder.storage.open_read(path) as file:
                        read.append(tables.read_table(file, name))
                except (OSError, ValueError, pa.ArrowException) as error:
                    return f"{path}: cannot be read: {error}"
        return pa.concat_tables(read)

    def _balance(self, manifest: Manifest, captures: pa.Table) -> Iterator[str]:
        """Planned = sum over outcomes; each planned URL has one row of kind planned."""
        number = manifest.round
        counted = sum(count for reasons in manifest.outcomes.values() for count in reasons.values())
        if counted != manifest.planned:
            yield f"round {number}: {manifest.planned} URLs planned, {counted} outcomes in the manifest"
        urls = [
            url
            for url, kind in zip(
                captures.column("url").to_pylist(), captures.column("kind").to_pylist(), strict=True
            )
            if kind == "planned"
        ]
        if len(urls) != manifest.planned or len(set(urls)) != len(urls):
            yield (
                f"round {number}: {manifest.planned} URLs planned, {len(urls)} rows of kind planned "
                f"for {len(set(urls))} URLs in captures"
            )

    def _pacing(self, captures: pa.Table) -> Iterator[str]:
        """No request to a host began before the pause that its row says was owed, across rounds too."""
        names = ["started_at", "finished_at", "url_host_name", "url", "host_delay_seconds"]
        rows = [row for row in captures.select(names).to_pylist() if row["started_at"] is not None]
        for row in sorted(rows, key=lambda row: (row["started_at"], row["url"])):
            started, host = row["started_at"].timestamp(), row["url_host_name"]
            ended_at, earlier = self._last.get(host, (float("-inf"), ""))
            owed = (row["host_delay_seconds"] or 0.0) - PACING_TOLERANCE_SECONDS
            if started < ended_at + owed:
                yield f"{host}: {row['url']} was asked {started - ended_at:.3f} s after {earlier}, {owed:.3f} s owed"
            self._last[host] = (row["finished_at"].timestamp(), row["url"])

    def _survivors(self, manifest: Manifest, captures: pa.Table, own: Sequence[FileEntry]) -> Iterator[str]:
        """The page that a duplicate lost to is a page itself, not a duplicate of another."""
        duplicates = self._table("duplicates", own)
        if isinstance(duplicates, str):
            yield duplicates
            return
        urls, outcomes = captures.column("url").to_pylist(), captures.column("outcome").to_pylist()
        for url, outcome, kind in zip(urls, outcomes, captures.column("kind").to_pylist(), strict=True):
            if kind != "robots" and outcome not in (
                "deferred",
                "failed_retry",
                "robots_denied",
                "not_modified",
            ):
                self._kept[url] = outcome
        for url, kept in zip(
            duplicates.column("url").to_pylist(), duplicates.column("kept_url").to_pylist(), strict=True
        ):
            if self._kept.get(kept) != "fetched":
                yield f"round {manifest.round}: {url} lost to {kept}, which is {self._kept.get(kept, 'no page')}"


def _is_of_round(entry: FileEntry) -> bool:
    """Return whether the entry belongs to its manifest's round alone: tables, archives and indexes."""
    return entry.path.startswith(("tables/", "warc/", "index/"))
