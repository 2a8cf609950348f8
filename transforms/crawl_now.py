"""A crawl as it stands, for whoever only looks at it: state, flags, rules, and what waits to be planned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from connectors import calendar, layout
from connectors.calendar_lookup import CalendarLookup, Standing
from connectors.rounds import CrawlFolder
from connectors.table_lookup import rows_where
from crawler.policy import PolicyBook
from crawler.urls import host_of, partition_of
from schemas.flags import CrawlFlags
from schemas.round import RoundPlan, RoundSpec
from transforms.view import RoundView, read_plan, read_policy, read_scope

_EPOCH = datetime.fromtimestamp(0, UTC)


class CrawlNow(RoundView):
    """The view of the round to come, before it is planned: committed state, and what was injected since.

    Flags are those of the unfinished round, or else of the newest committed one, or else the defaults. Rules
    and scope include what no plan has taken in yet. Reads only; Beam-free.
    """

    def __init__(self, folder: CrawlFolder, now: float) -> None:
        identity, newest = folder.identity(), folder.newest_round()
        spec = RoundSpec(
            crawl=folder.root,
            name=identity.name,
            salt=identity.salt,
            partitions=identity.partitions,
            scope=identity.scope,
            round=newest + 1,
            parent=newest or None,
            run_id="",
            as_of=now,
            started_at=now,
            deadline_at=now,
            flags=CrawlFlags(),
            attempt="",
        )
        super().__init__(spec, folder)
        self.newest, self.now = newest, now
        self.unfinished: RoundPlan | None = read_plan(folder, newest + 1)
        if self.unfinished is not None:
            self.spec = replace(spec, flags=CrawlFlags.from_json(self.unfinished.flags))
        elif self.parent is not None:
            self.spec = replace(spec, flags=CrawlFlags.from_json(self.parent.flags))
        self._calendar = CalendarLookup(self.storage, self.entries(calendar.TABLE))

    @cached_property
    def policy(self) -> PolicyBook:
        """The operator's rules of now."""
        book = read_policy(self.storage, self._document_path("policy"))
        for document in self._injected.values():
            if document.get("policy"):
                book = book.updated(PolicyBook.from_json(document["policy"]))
        return book

    @cached_property
    def scope_hosts(self) -> frozenset[str]:
        """The hosts of every seed so far, planned or not; empty when the crawl's scope is any."""
        if self.spec.scope == "any":
            return frozenset()
        known = read_scope(self.storage, self._document_path("scope"))
        return known | {host_of(url) for url in self.waiting_seeds}

    def _document_path(self, table: str) -> str:
        if self.unfinished is not None:
            return self.unfinished.policy_path if table == "policy" else self.unfinished.scope_path
        entries = self.entries(table)
        return entries[-1].path if entries else ""

    @cached_property
    def _injected(self) -> dict[str, dict[str, Any]]:
        """The inject files that no plan has taken in, by name, oldest first."""
        absorbed = [
            *(self.parent.injected if self.parent else ()),
            *(self.unfinished.injected if self.unfinished else ()),
        ]
        paths = self.folder.inject_paths(absorbed)
        return {path: self.folder.read_inject(path) for path in paths}

    @cached_property
    def waiting_seeds(self) -> dict[str, str]:
        """The injected URLs that no plan has taken in, and the name of the first file that holds each."""
        seeds: dict[str, str] = {}
        for path, document in self._injected.items():
            for seed in document.get("seeds", ()):
                seeds.setdefault(seed["url"], path)
        return seeds

    def keys_of(self, url: str) -> tuple[int, int]:
        """Return the host key and the URL key of a normal URL."""
        return self.keys.host_key(host_of(url)), self.keys.url_key(url)

    def partition(self, url: str) -> int:
        """Return the partition of a normal URL."""
        return partition_of(self.keys.host_key(host_of(url)), self.spec.partitions)

    def find(self, url: str) -> Standing | None:
        """Return where a normal URL stands in the calendar, None for one that the crawl does not know."""
        return self._calendar.find(*self.keys_of(url))

    def rows(
        self, table: str, number: int, column: str, value: str, partition: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows of a public table of one committed round whose text column has this value.

        ``partition`` limits the search to that partition's files, for tables that are written by partition.
        """
        return [
            row
            for path in self._table_paths(table, number, partition)
            for row in rows_where(self.storage, path, table, column, value)
        ]

    def _table_paths(self, table: str, number: int, partition: int | None) -> Iterator[str]:
        if number == self.newest:
            # Its publication may have been interrupted: then its files still lie where they were staged.
            for entry in self.entries(table, partition):
                is_staged = entry.staged_path and not self.storage.exists(entry.path)
                yield entry.staged_path if is_staged else entry.path
            return
        # Listing a folder is far cheaper than reading a manifest, and nothing else is ever published there.
        start = "" if partition is None else part_name(partition)
        for info in self.storage.list(layout.table_path(table, number, start)):
            yield info.path


def part_name(partition: int) -> str:
    """Return how the name of each file begins that holds a partition's rows of a public table."""
    return f"part-{partition:04d}-"


def instant(at: float | None) -> datetime | None:
    """Return epoch seconds as an instant in UTC, rounded as in the tables; None for None."""
    return None if at is None else _EPOCH + timedelta(microseconds=round(at * 1e6))
