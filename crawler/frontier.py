"""Which due URLs a round takes: budgets of hosts and domains first, then the round's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawler.budgets import Budgets, FrontierPolicy, RoundTerms, RulesOf, budgets_of
from crawler.ranks import Candidates, Cut, Flags, Floats, Ints, Keys, draw_ranks, weights, within_cut
from schemas.state import HostState

SELECTED = "selected"
HOST_BACKOFF = "host_backoff"
HOSTS_PER_DOMAIN = "hosts_per_domain"
HOST_BUDGET = "host_budget"
DOMAIN_BUDGET = "domain_budget"
ROUND_BUDGET = "round_budget"
REASONS = (SELECTED, HOST_BACKOFF, HOSTS_PER_DOMAIN, HOST_BUDGET, DOMAIN_BUDGET, ROUND_BUDGET)


class Selection(NamedTuple):
    """The verdict on each candidate, row for row: its rank, and an index into REASONS (0 = selected)."""

    rank: Floats
    reason: NDArray[np.uint8]

    @property
    def selected(self) -> Flags:
        """Return for each candidate whether it is in the round."""
        chosen: Flags = self.reason == 0
        return chosen

    def left_out(self) -> dict[str, int]:
        """Return how many candidates each reason left out; reasons that left out none are absent."""
        counts = np.bincount(self.reason, minlength=len(REASONS)).tolist()
        return {name: count for name, count in zip(REASONS[1:], counts[1:], strict=True) if count}


def select(
    candidates: Candidates,
    hosts: Mapping[int, HostState],
    rules_of: RulesOf,
    policy: FrontierPolicy,
    terms: RoundTerms,
) -> Selection:
    """Return which due URLs of one partition fit the budgets of their hosts and domains.

    ``hosts`` holds the host of every candidate (KeyError otherwise) and should hold the other known hosts
    of their domains, which count towards totals. ``rules_of`` gives the rules of a host name or registered
    domain; ``round_urls`` and ``total_urls`` named for a domain bound the domain and each of its hosts.
    Totals bound URLs asked for the first time: ``HostState.fetched_total`` of them are used up.

    The verdict on a URL depends neither on the order of rows nor on that of hosts, and more due URLs of one
    domain never change the verdict on another. The round's own budget comes afterwards, over all
    partitions: ``threshold_for`` and ``cut_to``.
    """
    keys, host = np.unique(candidates.host_key, return_inverse=True)
    budgets = budgets_of(keys, hosts, rules_of, policy, terms)
    weight = weights(candidates, terms.as_of, budgets.priority[host])
    rank = draw_ranks(candidates.url_key, weight, terms.salt, terms.number)
    queue = np.lexsort((candidates.host_key, candidates.url_key, rank))
    domain = budgets.domain[host]
    first = ~candidates.was_asked
    fresh = first & (candidates.discovered_round >= terms.number - 1)
    verdicts = _Verdicts(queue)
    verdicts.leave_out(budgets.paused[host], HOST_BACKOFF)
    verdicts.leave_out(_is_crowded_out(host, budgets, verdicts.waiting()), HOSTS_PER_DOMAIN)
    verdicts.keep_least(host, budgets.host_first[host], HOST_BUDGET, among=first)
    verdicts.keep_least(domain, budgets.domain_first[domain], DOMAIN_BUDGET, among=first)
    quota = budgets.host_urls[host]
    kept = np.floor(policy.new_share * quota).astype(np.int64)
    late = _places(host, verdicts.waiting()) >= quota - kept
    verdicts.keep_least(host, kept, HOST_BUDGET, among=late, preferred=fresh)
    verdicts.keep_least(domain, budgets.domain_urls[domain], DOMAIN_BUDGET)
    return Selection(rank, verdicts.reason)


def cut_to(selection: Selection, url_keys: Keys, cut: Cut) -> Selection:
    """Return the selection without the URLs beyond the round's cut, which get the reason round_budget."""
    beyond = selection.selected & ~within_cut(selection.rank, url_keys, cut)
    code = np.uint8(REASONS.index(ROUND_BUDGET))
    return selection._replace(reason=np.where(beyond, code, selection.reason))


class _Verdicts:
    """The candidates of one selection, in the order of their ranks, and why each was left out."""

    def __init__(self, queue: Ints) -> None:
        self._queue = queue
        self.reason = np.zeros(len(queue), dtype=np.uint8)

    def waiting(self, among: Flags | None = None) -> Ints:
        """Return the rows not left out so far (``among`` these), least rank first."""
        open_rows = self.reason == 0 if among is None else (self.reason == 0) & among
        waiting: Ints = self._queue[open_rows[self._queue]]
        return waiting

    def leave_out(self, rows: Flags, why: str) -> None:
        """Give these rows a reason; the first reason a row gets stands."""
        self.reason[rows & (self.reason == 0)] = REASONS.index(why)

    def keep_least(
        self, group: Ints, limit: Ints, why: str, among: Flags | None = None, preferred: Flags | None = None
    ) -> None:
        """Leave out all but the ``limit`` first rows of each group, ``preferred`` ones before others."""
        rows = self.waiting(among)
        if preferred is not None:
            rows = np.concatenate([rows[preferred[rows]], rows[~preferred[rows]]])
        self.leave_out(_places(group, rows) >= np.maximum(limit, 0), why)


def _places(group: Ints, rows: Ints) -> Ints:
    """Return for each of ``rows`` how many rows of its group stand before it there; -1 for all others."""
    places = np.full(len(group), -1, dtype=np.int64)
    if len(rows):
        grouped = rows[np.argsort(group[rows], kind="stable")]
        members = group[grouped]
        starts = np.flatnonzero(np.r_[True, members[1:] != members[:-1]])
        sizes = np.diff(np.r_[starts, len(grouped)])
        places[grouped] = np.arange(len(grouped)) - np.repeat(starts, sizes)
    return places


def _is_crowded_out(host: Ints, budgets: Budgets, rows: Ints) -> Flags:
    """Return the rows of hosts never asked so far that are beyond their domain's number of hosts.

    Of such hosts those with the least rank come first.
    """
    new_rows = rows[budgets.never_asked[host[rows]]]
    hosts, first_at = np.unique(host[new_rows], return_index=True)
    in_turn = hosts[np.argsort(first_at)]
    left = np.maximum(budgets.domain_new_hosts, 0)[budgets.domain]
    crowded: Flags = (_places(budgets.domain, in_turn) >= left)[host]
    return crowded
