"""Where a shard begins: what the plan dealt to it, and what its earlier attempts left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from connectors import parts
from connectors.delay_notes import DelayNotes
from connectors.rows import table_to_rows
from crawler.urls import registered_domain
from schemas.fetch import OutcomeRow
from schemas.journal import JournalEntry
from schemas.round import ListPart
from schemas.state import HostState, RobotsState, UrlState
from transforms.view import RoundView


class ShardStart(NamedTuple):
    """Planned URLs, hosts by name, robots.txt by authority, and the outcome rows that are journalled."""

    items: list[UrlState]
    hosts: dict[str, HostState]
    robots: dict[str, RobotsState]
    rows: list[OutcomeRow]


def start_of(view: RoundView, given: Sequence[ListPart], earlier: Sequence[JournalEntry]) -> ShardStart:
    """Return a shard's lists, in the order of their keys, with what its journal says in place of what it
    was dealt. Raises DamagedFile, naming it, for a file that is not what the journal recorded.
    """
    start = ShardStart([], {}, {}, [])
    for part in sorted(given):
        urls = parts.read_part(view.storage, part.urls_path, part.row_group)
        hosts = parts.read_part(view.storage, part.hosts_path, part.row_group)
        start.items.extend(table_to_rows(urls, UrlState))
        start.hosts.update((host.host, host) for host in table_to_rows(hosts, HostState))
        if part.robots_row_group >= 0:
            robots = parts.read_part(view.storage, part.robots_path, part.robots_row_group)
            start.robots.update((state.authority, state) for state in table_to_rows(robots, RobotsState))
    for entry in earlier:
        start.hosts.update(
            (host.host, host) for host in _journalled(view, entry, entry.hosts_path, HostState)
        )
        robots_rows = _journalled(view, entry, entry.robots_path, RobotsState)
        start.robots.update((state.authority, state) for state in robots_rows)
        start.rows.extend(_journalled(view, entry, entry.outcomes_path, OutcomeRow))
    return start


def heed(notes: DelayNotes, view: RoundView, hosts: dict[str, HostState]) -> None:
    """Give hosts the Crawl-delays that an earlier attempt noted and did not live to journal."""
    for name, seconds in notes.read().items():
        host = hosts.get(name) or HostState(name, view.keys.host_key(name), registered_domain(name))
        hosts[name] = host._replace(delay_seconds=max(seconds, host.delay_seconds or 0.0))


def _journalled(view: RoundView, entry: JournalEntry, path: str, row_type: type) -> list:
    return table_to_rows(parts.read_digested(view.storage, path, entry.digests[path]), row_type)
