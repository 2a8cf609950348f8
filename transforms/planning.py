"""Planning a round without Beam: what is due, what is chosen, which shard gets it.

`pipelines.plan` calls these functions in a loop, `transforms.plan` spreads them over workers.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import calendar, layout, parts, runs, sealed
from connectors.files import AlreadyThere
from connectors.rows import row_schema, rows_to_table, table_to_rows
from crawler import frontier
from crawler.budgets import FrontierPolicy, RoundTerms
from crawler.ranks import EVERYTHING, Candidates, Cut, within_cut
from crawler.urls import authority_of, host_of, registered_domain
from schemas.round import DueRef, ListPart, RoundPlan, SeedPart
from schemas.state import HostState, RobotsState, UrlState
from transforms import state_tables
from transforms.absorb import read_absorbed
from transforms.view import RoundView, plan_document, read_plan, read_policy

DUE_SCHEMA = (
    row_schema(UrlState)
    .append(pa.field("rank", pa.float64()))
    .append(pa.field("verdict", pa.string()))
    .append(pa.field("is_new", pa.bool_()))
)
NOT_DUE = "not_due"
OVERSELECT = 1.25
LEAST_SHARE = 1000


def frontier_policy(view: RoundView) -> FrontierPolicy:
    """Return the budgets that the round's flags ask for."""
    flags = view.spec.flags
    return FrontierPolicy(
        round_urls=flags.round_urls,
        round_seconds=flags.round_minutes * 60,
        host_round_urls=flags.host_round_urls,
        host_total_urls=flags.host_total_urls,
        domain_round_urls=flags.domain_round_urls,
        max_domain_hosts=flags.max_domain_hosts,
        min_delay_seconds=flags.min_delay_seconds,
        max_crawl_delay_seconds=flags.max_crawl_delay_seconds,
    )


def select_due(view: RoundView, part: SeedPart) -> DueRef:
    """Read one partition's due URLs and new seeds, and mark what fits the budgets of hosts and domains."""
    absorbed = read_absorbed(view, part.absorbed_path)
    entries = view.entries("calendar", part.partition)
    turn = view.spec.round + part.partition
    opened = calendar.entries_to_open(entries, view.spec.as_of, share_of(view, part.partition), turn)
    read = calendar.read(view.storage, opened, view.spec.as_of)
    seeds = _new_seeds(view, part)
    due = pa.concat_tables([read.due, seeds])
    hosts = _hosts_of(view, part.partition, due)
    rules = read_policy(view.storage, absorbed.policy_path)
    terms = RoundTerms(view.spec.round, view.spec.as_of, view.spec.started_at, view.spec.salt)
    selection = frontier.select(candidates(due), hosts, rules.rules_for, frontier_policy(view), terms)
    verdicts = np.array(frontier.REASONS, dtype=object)[selection.reason]
    is_new = np.arange(due.num_rows) >= read.due.num_rows
    chosen = _with_verdicts(due, selection.rank, verdicts, is_new)
    waiting = _with_verdicts(read.later, np.zeros(read.later.num_rows), [NOT_DUE] * read.later.num_rows, None)
    token = secrets.token_hex(4)
    path = layout.plan_file(view.spec.round, f"due-{part.partition:04d}-{token}.parquet")
    hosts_path = layout.plan_file(view.spec.round, f"hosts-{part.partition:04d}-{token}.parquet")
    rows = parts.write_table(view.storage, path, pa.concat_tables([chosen, waiting]))
    host_rows = [hosts[key] for key in np.unique(_keys(due, "host_key")).tolist()]
    parts.write_table(view.storage, hosts_path, rows_to_table(host_rows, HostState))
    consumed = [entry.path for entry in opened]
    return DueRef(part.partition, path, hosts_path, rows, consumed, part.absorbed_path)


def share_of(view: RoundView, partition: int) -> int:
    """Return how many due rows of a partition are worth reading: its part of the round's URLs and more."""
    waiting = view.waiting_entries()
    total = sum(entry.rows for entry in waiting)
    own = sum(entry.rows for entry in waiting if entry.partition == partition)
    return int(OVERSELECT * view.spec.flags.round_urls * own / max(1, total)) + LEAST_SHARE


def _new_seeds(view: RoundView, part: SeedPart) -> pa.Table:
    """Return the injected seeds that URL-seen does not hold yet."""
    if not part.path:
        return row_schema(UrlState).empty_table()
    seeds = parts.read_part(view.storage, part.path, part.row_group)
    known = view.entries("seen", part.partition)
    fresh = runs.probe_new(view.storage, known, _keys(seeds, "host_key"), _keys(seeds, "url_key"))
    return seeds.filter(pa.array(fresh))


def _keys(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).to_numpy()


def _hosts_of(view: RoundView, partition: int, due: pa.Table) -> dict[int, HostState]:
    """Return the state of each host among the due URLs and of its domain's others; fresh ones for new hosts."""
    names: dict[int, str] = {}
    for key, url in zip(due.column("host_key").to_pylist(), due.column("url").to_pylist(), strict=True):
        if key not in names:
            names[key] = host_of(url)
    found = state_tables.hosts_and_siblings(
        view.storage, view.entries(state_tables.HOSTS.name, partition), names
    )
    for key, name in names.items():
        if key not in found:
            found[key] = HostState(name, key, registered_domain(name))
    return found


def candidates(due: pa.Table) -> Candidates:
    """Return calendar rows as the columns that selection reads."""
    return Candidates(
        url_key=_keys(due, "url_key"),
        host_key=_keys(due, "host_key"),
        priority=_keys(due, "priority"),
        depth=_keys(due, "depth"),
        inlink_domains=_keys(due, "inlink_domains"),
        visits=_keys(due, "visits"),
        changes=_keys(due, "changes"),
        next_fetch_at=_keys(due, "next_fetch_at"),
        discovered_round=_keys(due, "discovered_round"),
        was_asked=due.column("was_asked").to_numpy(),
    )


def _with_verdicts(
    rows: pa.Table, rank: np.ndarray, verdicts: Sequence[str], is_new: np.ndarray | None
) -> pa.Table:
    new = is_new if is_new is not None else np.zeros(rows.num_rows, dtype=bool)
    table = rows.append_column("rank", pa.array(rank, pa.float64()))
    table = table.append_column("verdict", pa.array(list(verdicts), pa.string()))
    return table.append_column("is_new", pa.array(new, pa.bool_())).cast(DUE_SCHEMA)


def commit_plan(view: RoundView, plan: RoundPlan) -> RoundPlan:
    """Write the plan create-only and return the plan that stands: an earlier attempt's, if it was first."""
    try:
        view.storage.write_new(layout.plan_path(plan.round), sealed.seal(plan_document(plan)))
    except AlreadyThere:
        standing = read_plan(view.folder, plan.round)
        if standing is None:
            raise
        return standing
    return plan


def planned_rows(view: RoundView, plan: RoundPlan, due: DueRef) -> pa.Table:
    """Return a partition's calendar rows that are in the plan: selected and within the round's cut."""
    table = parts.read_whole(view.storage, due.path)
    table = table.filter(pc.equal(table.column("verdict"), frontier.SELECTED))
    cut = cut_of(plan)
    return table.filter(pa.array(within_cut(table.column("rank").to_numpy(), _keys(table, "url_key"), cut)))


def cut_of(plan: RoundPlan) -> Cut:
    """Return the last rank that the plan takes."""
    if plan.cut_rank is None or plan.cut_key is None:
        return EVERYTHING
    return Cut(plan.cut_rank, plan.cut_key)


def deal(view: RoundView, due: DueRef) -> list[ListPart]:
    """Write a partition's planned URLs, with their hosts and robots.txt, one row group a shard."""
    rows = planned_rows(view, view.plan, due)
    if not rows.num_rows:
        return []
    hosts = table_to_rows(parts.read_whole(view.storage, due.hosts_path), HostState)
    shard_of = view.plan.shard_of_group
    row_shards = np.array([shard_of[str(key >> 48)] for key in rows.column("host_key").to_pylist()])
    planned = set(rows.column("host_key").to_pylist())
    order = sorted(set(row_shards.tolist()))
    token = secrets.token_hex(4)
    paths = [
        layout.shard_file(view.spec.round, f"{kind}-{due.partition:04d}-{token}.parquet")
        for kind in ("urls", "hosts", "robots")
    ]
    urls = [rows.filter(pa.array(row_shards == shard)).select(row_schema(UrlState).names) for shard in order]
    by_shard = [
        [host for host in hosts if host.host_key in planned and shard_of[str(host.host_key >> 48)] == shard]
        for shard in order
    ]
    parts.write_parts(view.storage, paths[0], urls, row_schema(UrlState))
    parts.write_parts(
        view.storage, paths[1], (rows_to_table(h, HostState) for h in by_shard), row_schema(HostState)
    )
    robots = [_robots(view, due.partition, table) for table in urls]
    with_robots = [number for number, states in enumerate(robots) if states]
    tables = (rows_to_table(robots[number], RobotsState) for number in with_robots)
    parts.write_parts(view.storage, paths[2], tables, row_schema(RobotsState))
    groups = {number: group for group, number in enumerate(with_robots)}
    return [ListPart(shard, n, *paths, groups.get(n, -1)) for n, shard in enumerate(order)]


def _robots(view: RoundView, partition: int, urls: pa.Table) -> list[RobotsState]:
    pairs = zip(urls.column("host_key").to_pylist(), urls.column("url").to_pylist(), strict=True)
    authorities = {(key, authority_of(url)) for key, url in pairs}
    return state_tables.known_robots(
        view.storage, view.entries(state_tables.ROBOTS.name, partition), authorities, view.keys
    )
