"""What a partition's hosts became in a round: the clocks that the shards kept, and how many URLs each has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median

from connectors.files import Storage
from crawler.urls import host_of, registered_domain
from schemas.fetch import OutcomeRow
from schemas.manifest import FileEntry
from schemas.state import HostState, UrlState
from transforms.state_tables import known_hosts


class HostUpdate:
    """Joins the host rows of a partition's journal entries (a later one replaces an earlier one)."""

    def __init__(
        self, changed: Iterable[HostState], outcomes: Sequence[OutcomeRow], new: Sequence[UrlState]
    ) -> None:
        self._changed = {host.host_key: host for host in changed}
        self._names = {row.host_key: host_of(row.url) for row in outcomes}
        self._names |= {state.host_key: host_of(state.url) for state in new}
        self._first: Counter[int] = Counter()
        self._found = Counter(state.host_key for state in new)
        self._sizes: dict[int, list[float]] = {}
        self._latencies: dict[int, list[float]] = {}
        for row in outcomes:
            if row.status == 200 and row.kind != "robots":
                self._sizes.setdefault(row.host_key, []).append(row.body_bytes)
            if row.status is not None and row.started_at is not None and row.finished_at is not None:
                self._latencies.setdefault(row.host_key, []).append(row.finished_at - row.started_at)

    def count_first(self, host_key: int) -> None:
        """Count one URL of a host that was asked for the first time."""
        self._first[host_key] += 1

    def count_found(self, host_key: int, url: str) -> None:
        """Count one URL that enters the crawl without being a link: a seed, or a fetched redirect's target."""
        self._found[host_key] += 1
        self._names[host_key] = host_of(url)

    @property
    def asked(self) -> list[HostState]:
        """The hosts that were asked for something in this round, by name."""
        return sorted(host for host in self._changed.values() if host.last_fetch_at is not None)

    def state(self, host_key: int) -> HostState | None:
        """Return the host's row of this round, None when the round did not touch it."""
        return self._changed.get(host_key)

    def updated(self, storage: Storage, entries: Sequence[FileEntry]) -> list[HostState]:
        """Return every host row that the round changes: clocks, requests and known URLs counted."""
        keys = {*self._changed, *self._first, *self._found}
        stored = known_hosts(storage, entries, keys - self._changed.keys())
        rows = []
        for key in sorted(keys):
            host = self._changed.get(key) or stored.get(key)
            if host is None:
                name = self._names[key]
                host = HostState(name, key, registered_domain(name))
            rows.append(
                host._replace(
                    fetched_total=host.fetched_total + self._first[key],
                    urls_known=host.urls_known + self._found[key],
                    bytes_mean=_blended(host.bytes_mean, self._sizes.get(key), mean),
                    usual_latency_seconds=_blended(
                        host.usual_latency_seconds, self._latencies.get(key), median
                    ),
                )
            )
        return rows


def _blended(
    before: float | None, values: Sequence[float] | None, middle: Callable[[Sequence[float]], float]
) -> float | None:
    """Return the middle of this round's values and what the earlier rounds came to, in equal parts."""
    if not values:
        return before
    return middle(values) if before is None else (before + middle(values)) / 2
