"""RoundView: what a step of a round can look up, opened once in each worker process."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from connectors import calendar, layout, parts, sealed, tables
from connectors.files import Storage, digest_of
from connectors.journal import Journal
from connectors.rounds import CrawlFolder
from connectors.stop import StopMarker
from crawler.policy import PolicyBook
from crawler.urls import UrlKeys
from schemas.manifest import FileEntry, Manifest
from schemas.round import DueRef, RoundPlan, RoundSpec, ShardPlan


class RoundStopped(Exception):
    """The operator stopped the round; what was fetched is kept, and the round can be resumed."""


class RoundView:
    """A round and the committed state under it. Reads are cached; nothing here changes a file."""

    def __init__(self, spec: RoundSpec, folder: CrawlFolder | None = None) -> None:
        self.spec = spec
        self.folder = folder or CrawlFolder.at(spec.crawl)
        self.storage: Storage = self.folder.storage
        self.keys = UrlKeys(spec.salt)

    @cached_property
    def parent(self) -> Manifest | None:
        """The newest committed round, None before the first."""
        return None if self.spec.parent is None else self.folder.read_manifest(self.spec.parent)

    def entries(self, table: str, partition: int | None = None) -> list[FileEntry]:
        """Return the committed files of a state table, of one partition or of all."""
        by_partition = self._entries.get(table, {})
        if partition is not None:
            return by_partition.get(partition, [])
        return [entry for number in sorted(by_partition) for entry in by_partition[number]]

    @cached_property
    def _entries(self) -> dict[str, dict[int, list[FileEntry]]]:
        grouped: dict[str, dict[int, list[FileEntry]]] = {}
        for entry in self.parent.files if self.parent else ():
            grouped.setdefault(entry.table, {}).setdefault(entry.partition, []).append(entry)
        return grouped

    def waiting_entries(self) -> list[FileEntry]:
        """Return the calendar files that can hold due URLs: time slots that have come, and the backlog."""
        entries = self.entries(calendar.TABLE)
        backlog = [entry for entry in entries if calendar.slot_in(entry).tier]
        return [*calendar.due_entries(entries, self.spec.as_of), *backlog]

    def has_work(self) -> bool:
        """Return whether a round might find something due: seeds to absorb, or calendar slots to open."""
        earlier = self.parent.injected if self.parent else []
        waiting = (self.folder.read_inject(path) for path in self.folder.inject_paths(earlier))
        return any(document.get("seeds") for document in waiting) or bool(self.waiting_entries())

    def next_due_at(self) -> float | None:
        """Return the earliest next_fetch_at (UTC epoch seconds) in the calendar, None when it is empty."""
        entries = sorted(self.entries(calendar.TABLE), key=lambda entry: calendar.slot_in(entry).start_at)
        earliest: float | None = None
        for entry in entries:
            if earliest is not None and calendar.slot_in(entry).start_at > earliest:
                break
            instants = parts.read_whole(self.storage, entry.path, ["next_fetch_at"]).column(0)
            first = pc.min(instants).as_py()
            if first is not None and (earliest is None or first < earliest):
                earliest = first
        return earliest

    @cached_property
    def plan(self) -> RoundPlan:
        """The plan of this round; it must have been written."""
        plan = read_plan(self.folder, self.spec.round)
        if plan is None:
            raise FileNotFoundError(layout.plan_path(self.spec.round))
        return plan

    @cached_property
    def policy(self) -> PolicyBook:
        """The operator's rules as they were when the round was planned."""
        return read_policy(self.storage, self.plan.policy_path)

    @cached_property
    def scope_hosts(self) -> frozenset[str]:
        """The hosts of every seed so far; empty when the crawl's scope is any."""
        return read_scope(self.storage, self.plan.scope_path)

    def raise_if_stopped(self) -> None:
        """Raise RoundStopped when the operator asked this run to stop."""
        if StopMarker(self.folder, self.spec.round, self.spec.attempt).requested():
            raise RoundStopped(f"round {self.spec.round} was stopped")

    def journal(self, shard: int) -> Journal:
        """Return one shard's journal of this round."""
        return Journal(self.folder, self.spec.round, shard)

    def work_path(self, name: str) -> str:
        """Return a fresh name for a file that one step leaves for another."""
        return layout.work_file(self.spec.round, f"{name}-{secrets.token_hex(4)}.parquet")

    def stage_table(
        self, table: str, name: str, rows: Iterable[Mapping[str, Any]], partition: int = 0
    ) -> FileEntry | None:
        """Write rows of a public table where the commit will publish them from; None without rows."""
        data = tables.table_from_rows(table, rows)
        if not data.num_rows:
            return None
        path = layout.table_path(table, self.spec.round, f"{name}-{secrets.token_hex(4)}.parquet")
        staged = layout.staged(self.spec.round, path)
        with self.storage.creating(staged) as local:
            tables.write_table(Path(local), table, data)
            size = Path(local).stat().st_size
            with Path(local).open("rb") as written:
                digest = digest_of(written)
        return FileEntry(path, staged, table, partition, 0, data.num_rows, size, digest)


@lru_cache(maxsize=4)
def open_view(spec: RoundSpec) -> RoundView:
    """Return this process's view of the round, opened at the first call."""
    return RoundView(spec)


def read_plan(folder: CrawlFolder, number: int) -> RoundPlan | None:
    """Return the plan of a round, None when it was not planned; DamagedFile when it does not read back."""
    path = layout.plan_path(number)
    try:
        document = sealed.unseal(folder.storage.read_bytes(path), f"{folder.root}/{path}")
    except FileNotFoundError:
        return None
    document["shards"] = tuple(ShardPlan(**shard) for shard in document["shards"])
    document["due"] = tuple(DueRef(**due) for due in document["due"])
    document["injected"] = tuple(document["injected"])
    return RoundPlan(**document)


def plan_document(plan: RoundPlan) -> dict[str, Any]:
    """Return the plan as JSON members; `read_plan` is the inverse."""
    document = asdict(plan)
    document["due"] = [{**due._asdict(), "consumed": list(due.consumed)} for due in plan.due]
    return document


def read_policy(storage: Storage, path: str) -> PolicyBook:
    """Return the rules in a policy file of the state; an empty book when there is none."""
    if not path:
        return PolicyBook({})
    return PolicyBook.from_json(sealed.unseal(storage.read_bytes(path), path))


def read_scope(storage: Storage, path: str) -> frozenset[str]:
    """Return the seeds' hosts in a scope file of the state."""
    if not path:
        return frozenset()
    return frozenset(parts.read_whole(storage, path).column("host").to_pylist())
