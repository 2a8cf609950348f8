"""The state tables of a crawl: what is the key of each, and how rows become runs and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from connectors import runs
from connectors.files import Storage
from connectors.rows import row_schema, rows_to_table, table_to_rows
from crawler.urls import UrlKeys
from schemas.manifest import FileEntry
from schemas.state import HostState, RobotsState

DOMAIN_SHIFT = np.uint64(48)

SEEN = runs.RunTable("seen")
HOSTS = runs.RunTable("host_states", runs.NEWEST_WINS, row_schema(HostState))
ROBOTS = runs.RunTable("robots", runs.NEWEST_WINS, row_schema(RobotsState))


def host_columns(hosts: Sequence[HostState]) -> pa.Table:
    """Return rows of the hosts table, keyed by (domain bits of the host key, host key).

    So the hosts of one registered domain stand together and can be looked up at once.
    """
    host_keys = np.array([host.host_key for host in hosts], dtype=np.uint64)
    keys = pa.table({"k1": pa.array(domain_bits(host_keys)), "k2": pa.array(host_keys)})
    return _beside(keys, rows_to_table(hosts, HostState))


def domain_bits(host_keys: runs.Keys) -> runs.Keys:
    """Return what the hosts of a registered domain have in common: the top 16 bits of their keys."""
    return host_keys >> DOMAIN_SHIFT << DOMAIN_SHIFT


def robots_columns(robots: Sequence[RobotsState], keys: UrlKeys) -> pa.Table:
    """Return rows of the robots table, keyed by (host key, key of the authority)."""
    pairs = pa.table(
        {
            "k1": pa.array([state.host_key for state in robots], pa.uint64()),
            "k2": pa.array([keys.url_key(state.authority) for state in robots], pa.uint64()),
        }
    )
    return _beside(pairs, rows_to_table(robots, RobotsState))


def _beside(left: pa.Table, right: pa.Table) -> pa.Table:
    for name in right.column_names:
        left = left.append_column(right.schema.field(name), right.column(name))
    return left


def known_hosts(storage: Storage, entries: Sequence[FileEntry], keys: Iterable[int]) -> dict[int, HostState]:
    """Return the stored state of these hosts, by host key; hosts never met are absent."""
    wanted = np.unique(np.fromiter(keys, dtype=np.uint64))
    found = runs.lookup(storage, HOSTS, entries, domain_bits(wanted), wanted)
    return {host.host_key: host for host in table_to_rows(found.rows, HostState)}


def hosts_and_siblings(
    storage: Storage, entries: Sequence[FileEntry], keys: Iterable[int]
) -> dict[int, HostState]:
    """Return the stored state of every known host of these hosts' registered domains, by host key."""
    domains = np.unique(domain_bits(np.fromiter(keys, dtype=np.uint64)))
    found = runs.lookup(storage, HOSTS, entries, domains)
    return {host.host_key: host for host in table_to_rows(found.rows, HostState)}


def known_robots(
    storage: Storage, entries: Sequence[FileEntry], authorities: Iterable[tuple[int, str]], keys: UrlKeys
) -> list[RobotsState]:
    """Return the stored robots.txt of these (host key, authority) pairs; those never asked are absent."""
    pairs = sorted({(host_key, keys.url_key(authority)) for host_key, authority in authorities})
    k1 = np.array([pair[0] for pair in pairs], dtype=np.uint64)
    k2 = np.array([pair[1] for pair in pairs], dtype=np.uint64)
    return table_to_rows(runs.lookup(storage, ROBOTS, entries, k1, k2).rows, RobotsState)
