"""Packing a round without Beam: the selected URLs of all partitions, cut to the round and dealt to shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import parts
from connectors.rows import table_to_rows
from crawler import frontier
from crawler.budgets import planned_delay
from crawler.packing import host_load, pack
from crawler.politeness import usual_latency
from crawler.ranks import EVERYTHING, threshold_for, within_cut
from schemas.manifest import FORMAT_VERSION
from schemas.round import DueRef, RoundPlan, ShardPlan
from schemas.state import HostState
from transforms.absorb import Absorbed, read_absorbed
from transforms.fetcher import exempt_addresses
from transforms.planning import NOT_DUE, frontier_policy
from transforms.view import RoundView, read_policy

READERS = 8


class _Chosen(NamedTuple):
    """What the partitions selected, row for row; their hosts; and what they left out, by reason."""

    rank: np.ndarray
    url_keys: np.ndarray
    host_keys: np.ndarray
    hosts: dict[int, HostState]
    left_out: Counter[str]


def pack_round(view: RoundView, dues: Sequence[DueRef]) -> RoundPlan | None:
    """Cut the selected URLs to the round's budget and pack their hosts into shards.

    None when nothing is selected. Pure: writes nothing.
    """
    dues = sorted(dues)
    chosen = _read(view, dues)
    cut = threshold_for(chosen.rank, chosen.url_keys, view.spec.flags.round_urls)
    within = within_cut(chosen.rank, chosen.url_keys, cut)
    if not within.any():
        return None
    absorbed = read_absorbed(view, dues[0].absorbed_path)
    left_out = dict(sorted(chosen.left_out.items()))
    if over := int(np.count_nonzero(~within)):
        left_out[frontier.ROUND_BUDGET] = over
    shards, groups, hosts = _packed(view, chosen.hosts, absorbed, chosen.host_keys[within])
    return RoundPlan(
        format_version=FORMAT_VERSION,
        round=view.spec.round,
        parent=view.spec.parent,
        run_id=view.spec.run_id,
        as_of=view.spec.as_of,
        planned_at=view.spec.started_at,
        round_seconds=view.spec.flags.round_minutes * 60,
        flags=view.spec.flags.to_json(),
        planned=int(np.count_nonzero(within)),
        hosts=hosts,
        left_out=left_out,
        cut_rank=None if cut == EVERYTHING else cut.rank,
        cut_key=None if cut == EVERYTHING else cut.url_key,
        shards=shards,
        due=tuple(dues),
        shard_of_group=groups,
        injected=absorbed.injected,
        policy_path=absorbed.policy_path,
        scope_path=absorbed.scope_path,
    )


def _read(view: RoundView, dues: Sequence[DueRef]) -> _Chosen:
    with ThreadPoolExecutor(READERS, "plan") as readers:
        read = list(readers.map(partial(_read_choice, view), dues))
        hosts = {
            host.host_key: host for rows in readers.map(partial(_read_hosts, view), dues) for host in rows
        }
    rank, url_keys, host_keys = (
        np.concatenate([choice.column(name).to_numpy() for choice, _ in read])
        for name in ("rank", "url_key", "host_key")
    )
    return _Chosen(rank, url_keys, host_keys, hosts, sum((left for _, left in read), Counter()))


def _read_choice(view: RoundView, due: DueRef) -> tuple[pa.Table, Counter[str]]:
    """Return a partition's selected rows, and how many were left out for each reason."""
    columns = ["rank", "url_key", "host_key", "verdict"]
    table = parts.read_whole(view.storage, due.path, columns)
    verdicts = table.column("verdict")
    left = Counter(why for why in verdicts.to_pylist() if why not in (frontier.SELECTED, NOT_DUE))
    return table.filter(pc.equal(verdicts, frontier.SELECTED)), left


def _read_hosts(view: RoundView, due: DueRef) -> list[HostState]:
    return table_to_rows(parts.read_whole(view.storage, due.hosts_path), HostState)


def _packed(
    view: RoundView, states: Mapping[int, HostState], absorbed: Absorbed, planned_hosts: np.ndarray
) -> tuple[tuple[ShardPlan, ...], dict[str, int], int]:
    keys, urls = np.unique(planned_hosts, return_counts=True)
    rules = read_policy(view.storage, absorbed.policy_path)
    policy = frontier_policy(view)
    loads = np.array(
        [
            host_load(count, planned_delay(host, rules.rules_for(host.host), policy), usual_latency(host))
            for count, host in zip(urls.tolist(), (states[key] for key in keys.tolist()), strict=True)
        ]
    )
    count = min(view.spec.flags.shards or 1, len(keys))
    exempt = exempt_addresses(view.spec.flags)
    addresses = [None if states[key].ip in exempt else states[key].ip for key in keys.tolist()]
    packing = pack(keys, loads, count, addresses)
    shard_of = packing.shard_of(keys)
    plans = tuple(
        ShardPlan(shard, int(urls[mine].sum()), int(mine.sum()), float(packing.loads[shard]))
        for shard in range(count)
        for mine in [shard_of == shard]
    )
    groups = {str(int(key) >> 48): int(shard) for key, shard in zip(keys, shard_of, strict=True)}
    return plans, groups, len(keys)
