"""What a partition's hosts became in a round: the clocks that the shards kept, and how many URLs each has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

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
        self._sizes: dict[int, list[int]] = {}
        for row in outcomes:
            if row.status == 200 and row.kind != "robots":
                self._sizes.setdefault(row.host_key, []).append(row.body_bytes)

    def count_first(self, host_key: int) -> None:
        """Count one URL of a host that was asked for the first time."""
        self._first[host_key] += 1

    def count_found(self, host_key: int, url: str) -> None:
        """Count one URL that enters the crawl without being a link: a seed, or a fetched redirect's target."""
        self._found[host_key] += 1
        self._names[host_key] = host_of(url)

    def _bytes_mean(self, host: HostState) -> float | None:
        """Return the mean size of the host's pages, this round's and the earlier rounds' in equal parts."""
        sizes = self._sizes.get(host.host_key)
        if sizes is None:
            return host.bytes_mean
        return _mean(sizes) if host.bytes_mean is None else (host.bytes_mean + _mean(sizes)) / 2

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
                    bytes_mean=self._bytes_mean(host),
                )
            )
        return rows


def _mean(sizes: Sequence[int]) -> float:
    return sum(sizes) / len(sizes)
