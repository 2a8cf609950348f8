"""How the hosts of a round are dealt to shards that run side by side and end together."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crawler.ranks import Floats, Ints, Keys

GROUPS = 65_536
MAX_ADDRESS_HOSTS = 1_000
_GROUP_SHIFT = np.uint64(48)
_TICKS_A_SECOND = 1_000_000
_UNIONS_A_SHARD = 4


class Packing(NamedTuple):
    """Which shard each group of hosts went to, and the load of each shard in seconds.

    A group is the top 16 bits of ``host_key``: the hosts of one registered domain, and of those that hash
    alike. Groups without a host have shard -1.
    """

    shard_of_group: Ints
    loads: Floats

    def shard_of(self, host_keys: Keys) -> Ints:
        """Return the shard of each of these hosts."""
        shards: Ints = self.shard_of_group[_group_of(host_keys)]
        return shards


def host_load(urls: int, delay_seconds: float, latency_seconds: float | None) -> float:
    """Return the seconds that a host occupies its queue: each URL takes its download and the pause after it.

    A shard that runs W downloads at once over Q hosts' queues cannot end before the largest of: its longest
    host, its load / Q, and the sum of its latencies / W.
    """
    return urls * (delay_seconds + (latency_seconds or 0.0))


def pack(
    host_keys: Keys, loads: Floats, shards: int, addresses: Sequence[str | None] | None = None
) -> Packing:
    """Return shards of nearly equal load, whole registered domains in each.

    ``loads`` are seconds of each host, ``addresses`` its last known IP address (None: unknown, or not to be
    minded). Hosts that share an address come into one shard, since a pause per address can only be kept
    there, as long as MAX_ADDRESS_HOSTS are not exceeded: larger sets are split. Sets that overlap are joined
    only up to a quarter of a shard's share. Then unions and single groups, largest first, go to the shard
    with the least load (LPT, Graham 1969): max / mean comes near 1 unless one alone is larger than a share.

    The result does not depend on the order of the hosts. ValueError if ``shards`` is below 1.
    """
    if shards < 1:
        raise ValueError(f"shards must be 1 or more, got {shards}")
    group = _group_of(host_keys)
    # Whole microseconds add up to the same sum in any order, which fractions of seconds do not.
    ticks = np.rint(np.asarray(loads, dtype=np.float64) * _TICKS_A_SECOND)
    group_ticks = np.bincount(group, weights=ticks, minlength=GROUPS).astype(np.int64)
    group_hosts = np.bincount(group, minlength=GROUPS)
    unions = _Unions(group_hosts, group_ticks, int(ticks.sum()) // (shards * _UNIONS_A_SHARD))
    for sharers in _sharers(group, addresses) if addresses is not None else ():
        unions.unite(sharers)
    union = np.array([unions.root(member) for member in range(GROUPS)], dtype=np.int64)
    union_ticks = np.bincount(union, weights=group_ticks, minlength=GROUPS).astype(np.int64)
    union_hosts = np.bincount(union, weights=group_hosts, minlength=GROUPS)
    shard_of_union, shard_ticks = _longest_first(union_ticks, np.flatnonzero(union_hosts), shards)
    shard_of_group = np.where(group_hosts > 0, shard_of_union[union], -1)
    return Packing(shard_of_group, shard_ticks / _TICKS_A_SECOND)


def _group_of(host_keys: Keys) -> Ints:
    return (host_keys >> _GROUP_SHIFT).astype(np.int64)


def _longest_first(ticks: Ints, members: Ints, shards: int) -> tuple[Ints, Ints]:
    """Return the shard of each member (-1 elsewhere) and each shard's load."""
    order = members[np.lexsort((members, -ticks[members]))]
    shard_of = np.full(len(ticks), -1, dtype=np.int64)
    heap = [(0, shard) for shard in range(shards)]
    for member, load in zip(order.tolist(), ticks[order].tolist(), strict=True):
        total, shard = heap[0]
        shard_of[member] = shard
        heapq.heapreplace(heap, (total + load, shard))
    totals = np.zeros(shards, dtype=np.int64)
    for total, shard in heap:
        totals[shard] = total
    return shard_of, totals


class _Unions:
    """Groups of hosts, united step by step; the root of a union is its least group."""

    def __init__(self, hosts: Ints, ticks: Ints, ticks_limit: int) -> None:
        self._root = list(range(len(hosts)))
        self._hosts, self._ticks = hosts.tolist(), ticks.tolist()
        self._ticks_limit = ticks_limit
        self._united: set[int] = set()

    def root(self, group: int) -> int:
        while self._root[group] != group:
            self._root[group] = self._root[self._root[group]]
            group = self._root[group]
        return group

    def unite(self, sharers: list[int]) -> None:
        """Unite groups that share an address: all that no address united before, others if not too large.

        Chains of addresses could otherwise tie the whole crawl into one union.
        """
        free = [group for group in sharers if group not in self._united]
        bound = sorted({self.root(group) for group in sharers if group in self._united})
        self._united.update(free)
        kept = free[0] if free else bound.pop(0)
        for group in free[1:]:
            kept = self._join(kept, group)
        for group in bound:
            if self._ticks[kept] + self._ticks[group] <= self._ticks_limit:
                kept = self._join(kept, group)

    def _join(self, one: int, other: int) -> int:
        if self._hosts[one] + self._hosts[other] > MAX_ADDRESS_HOSTS:
            return one
        low, high = min(one, other), max(one, other)
        self._root[high] = low
        self._hosts[low] += self._hosts[high]
        self._ticks[low] += self._ticks[high]
        return low


def _sharers(group: Ints, addresses: Sequence[str | None]) -> list[list[int]]:
    """Return the groups of each address that several share, those with most hosts first.

    An address with more than MAX_ADDRESS_HOSTS hosts is left out: it is a large platform's.
    """
    hosts_at: dict[str, list[int]] = {}
    for member, address in zip(group.tolist(), addresses, strict=True):
        if address is not None:
            hosts_at.setdefault(address, []).append(member)
    shared = [members for members in hosts_at.values() if 1 < len(members) <= MAX_ADDRESS_HOSTS]
    ordered = sorted((-len(members), sorted(set(members))) for members in shared)
    return [members for _, members in ordered if len(members) > 1]
