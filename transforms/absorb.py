"""What was injected since the last plan: seeds by partition, the policy and the scope in force."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from connectors import layout, parts, sealed
from connectors.rows import row_schema, rows_to_table
from crawler.policy import PolicyBook
from crawler.urls import host_of, partition_of
from schemas.round import SeedPart
from schemas.state import UrlState, UrlStatus
from transforms.view import RoundView, read_policy, read_scope

SCOPE_SCHEMA = pa.schema([pa.field("host", pa.string(), nullable=False)])


@dataclass(frozen=True)
class Absorbed:
    """What a plan takes in: the names of inject files, and the state files that hold their effect."""

    injected: tuple[str, ...]
    policy_path: str
    scope_path: str


@lru_cache(maxsize=4)
def read_absorbed(view: RoundView, path: str) -> Absorbed:
    """Return the document that `absorb` wrote; it is the same for every partition of a plan."""
    document = sealed.unseal(view.storage.read_bytes(path), path)
    return Absorbed(tuple(document["injected"]), document["policy_path"], document["scope_path"])


def absorb(view: RoundView) -> Iterator[SeedPart]:
    """Take in the inject files of now and yield each partition that has seeds or due URLs.

    Seeds become calendar rows that are due at once; a seed given twice keeps the higher priority. The
    document that names what was taken in travels with every element, so that one plan sees one set.
    """
    earlier = view.parent.injected if view.parent else []
    paths = view.folder.inject_paths(earlier)
    documents = {path: view.folder.read_inject(path) for path in paths}
    absorbed_path = layout.plan_file(view.spec.round, f"absorbed-{secrets.token_hex(4)}.json")
    seeds = _seeds(view, documents)
    document = {
        "injected": paths,
        "policy_path": _policy_path(view, documents),
        "scope_path": _scope_path(view, seeds),
    }
    view.storage.write_new(absorbed_path, sealed.seal(document))
    yield from _parts(view, seeds, absorbed_path)


def _parts(view: RoundView, seeds: Mapping[str, UrlState], absorbed_path: str) -> Iterator[SeedPart]:
    by_partition: dict[int, list[UrlState]] = {}
    for seed in seeds.values():
        by_partition.setdefault(partition_of(seed.host_key, view.spec.partitions), []).append(seed)
    order = sorted(by_partition)
    path = ""
    if order:
        path = layout.plan_file(view.spec.round, f"seeds-{secrets.token_hex(4)}.parquet")
        tables = (rows_to_table(by_partition[p], UrlState) for p in order)
        parts.write_parts(view.storage, path, tables, row_schema(UrlState))
    waiting = {entry.partition for entry in view.waiting_entries()}
    for partition in sorted(waiting | set(order)):
        row_group = order.index(partition) if partition in by_partition else -1
        yield SeedPart(partition, path if row_group >= 0 else "", row_group, absorbed_path)


def _seeds(view: RoundView, documents: Mapping[str, dict[str, Any]]) -> dict[str, UrlState]:
    seeds: dict[str, UrlState] = {}
    for document in documents.values():
        for seed in document.get("seeds", ()):
            url, priority = seed["url"], seed["priority"]
            if url not in seeds or priority > seeds[url].priority:
                seeds[url] = _seed_state(view, url, priority)
    return dict(sorted(seeds.items()))


def _seed_state(view: RoundView, url: str, priority: float) -> UrlState:
    return UrlState(
        url=url,
        host_key=view.keys.host_key(host_of(url)),
        url_key=view.keys.url_key(url),
        status=UrlStatus.UNFETCHED,
        next_fetch_at=view.spec.as_of,
        depth=0,
        priority=priority,
        discovered_from=None,
        discovered_round=view.spec.round,
        discovered_at=view.spec.as_of,
        is_seed=True,
    )


def _state_file(view: RoundView, table: str, ending: str) -> str:
    name = f"r{view.spec.round:06d}-{secrets.token_hex(4)}.{ending}"
    return layout.state_path(table, 0, name)


def _current(view: RoundView, table: str) -> str:
    entries = view.entries(table)
    return entries[-1].path if entries else ""


def _policy_path(view: RoundView, documents: Mapping[str, dict[str, Any]]) -> str:
    """Return the policy file in force: the parent's, or a new one where an inject file changes it."""
    current = _current(view, "policy")
    changes = [document["policy"] for document in documents.values() if document.get("policy")]
    if not changes:
        return current
    book = read_policy(view.storage, current)
    for change in changes:
        book = book.updated(PolicyBook.from_json(change))
    path = _state_file(view, "policy", "json")
    view.storage.write_new(path, sealed.seal(book.to_json()))
    return path


def _scope_path(view: RoundView, seeds: Mapping[str, UrlState]) -> str:
    """Return the file of seed hosts in force; kept only where the crawl's scope needs it."""
    current = _current(view, "scope")
    if view.spec.scope == "any":
        return current
    known = read_scope(view.storage, current)
    hosts = known | {host_of(url) for url in seeds}
    if hosts == known:
        return current
    path = _state_file(view, "scope", "parquet")
    parts.write_table(view.storage, path, pa.table({"host": sorted(hosts)}, schema=SCOPE_SCHEMA))
    return path
