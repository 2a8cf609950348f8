"""What a plan knew of one URL when it chose it or left it out. Imports no Beam."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import parts
from connectors.rows import table_to_rows
from crawler import frontier
from crawler.budgets import planned_delay, round_quota
from crawler.policy import PolicyBook
from crawler.ranks import score, within_cut
from crawler.urls import host_of, registered_domain
from schemas.flags import CrawlFlags
from schemas.round import RoundPlan
from schemas.state import HostState, UrlState
from transforms import planning
from transforms.crawl_now import CrawlNow, instant
from transforms.view import RoundView, read_plan


class PlanRow(NamedTuple):
    """A URL among the due rows of one plan. ``verdict`` is selected, or the budget that left it out.

    ``state`` is its row before the round; ``inputs`` are what the verdict was made from, for a document.
    """

    state: UrlState
    verdict: str
    inputs: dict[str, Any]


def plan_row(crawl: CrawlNow, number: int, url: str) -> PlanRow | None:
    """Return what the plan of a round made of a normal URL.

    None when the plan did not look at it, or its files are swept, as they are some rounds later.
    """
    plan = crawl.unfinished if number > crawl.newest else read_plan(crawl.folder, number)
    partition = crawl.partition(url)
    due = next((due for due in plan.due if due.partition == partition), None) if plan else None
    if plan is None or due is None or not all(map(crawl.storage.exists, (due.path, due.hosts_path))):
        return None
    rows = _due_rows(crawl, due.path, url)
    return None if rows is None else _plan_row(crawl, plan, rows, due.hosts_path)


class _DueRows(NamedTuple):
    """The wanted row of a due file, and the rank and key of each row of its host that was due."""

    row: pa.Table
    ranks: np.ndarray
    url_keys: np.ndarray


def _due_rows(crawl: CrawlNow, path: str, url: str) -> _DueRows | None:
    host_key, url_key = crawl.keys_of(url)
    keys = parts.read_whole(crawl.storage, path, ["host_key", "url_key", "rank", "verdict"])
    url_keys = keys.column("url_key").to_numpy()
    of_host = keys.column("host_key").to_numpy() == np.uint64(host_key)
    is_due = pc.not_equal(keys.column("verdict"), planning.NOT_DUE).to_numpy(zero_copy_only=False)
    place = np.flatnonzero(of_host & is_due & (url_keys == np.uint64(url_key)))
    if not len(place):
        return None
    row = parts.read_whole(crawl.storage, path).slice(int(place[0]), 1)
    among = of_host & is_due
    return _DueRows(row, keys.column("rank").to_numpy()[among], url_keys[among])


def _plan_row(crawl: CrawlNow, plan: RoundPlan, rows: _DueRows, hosts_path: str) -> PlanRow:
    (state,) = table_to_rows(rows.row, UrlState)
    rank, verdict = rows.row.column("rank")[0].as_py(), rows.row.column("verdict")[0].as_py()
    key = np.uint64(state.url_key)
    cut = planning.cut_of(plan)
    if verdict == frontier.SELECTED and not within_cut(np.array([rank]), np.array([key]), cut)[0]:
        verdict = frontier.ROUND_BUDGET
    view = round_view(crawl, plan)
    rules = _rules(view)
    ahead = (rows.ranks < rank) | ((rows.ranks == rank) & (rows.url_keys < key))
    host_rules = rules.rules_for(host_of(state.url))
    priority = state.priority if host_rules.priority is None else host_rules.priority
    inputs = {
        "as_of": instant(plan.as_of),
        "due_since": instant(state.next_fetch_at),
        "priority": priority,
        "inlink_domains": state.inlink_domains,
        "score": score(state._replace(priority=priority), plan.as_of),
        "rank": rank,
        "cut_rank": plan.cut_rank,
        "host_place": int(np.count_nonzero(ahead)) + 1,
        "host_urls_due": len(rows.ranks),
        **_budgets(view, rules, state, hosts_path),
    }
    return PlanRow(state, verdict, inputs)


def round_view(crawl: CrawlNow, plan: RoundPlan) -> RoundView:
    """Return the view that the round of this plan had of the crawl."""
    spec = replace(
        crawl.spec,
        round=plan.round,
        parent=plan.parent,
        as_of=plan.as_of,
        started_at=plan.planned_at,
        flags=CrawlFlags.from_json(plan.flags),
    )
    view = RoundView(spec, crawl.folder)
    view.plan = plan
    return view


def _rules(view: RoundView) -> PolicyBook:
    """Return the operator's rules as they were, empty when their file is swept."""
    path = view.plan.policy_path
    return view.policy if path and view.storage.exists(path) else PolicyBook({})


def _budgets(view: RoundView, rules: PolicyBook, state: UrlState, hosts_path: str) -> dict[str, Any]:
    """Return the bounds that the round set to the URL's host and domain, and what was used up before it."""
    hosts = table_to_rows(parts.read_whole(view.storage, hosts_path), HostState)
    host = next(row for row in hosts if row.host_key == state.host_key)
    flags, own, above = (
        view.spec.flags,
        rules.rules_for(host.host),
        rules.rules_for(registered_domain(host.host)),
    )
    policy = planning.frontier_policy(view)
    return {
        "host_budget": round_quota(host, own, policy, view.spec.started_at),
        "host_urls_asked": host.fetched_total,
        "host_total_urls": flags.host_total_urls if own.total_urls is None else own.total_urls,
        "host_delay_seconds": planned_delay(host, own, policy),
        "host_not_before_at": instant(host.not_before_at),
        "domain_budget": flags.domain_round_urls if above.round_urls is None else above.round_urls,
        "round_budget": flags.round_urls,
    }
