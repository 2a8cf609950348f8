"""How dear a visit is in a round, from what the rounds before it counted. Imports no Beam."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from crawler.price import Means, mean_interval, price_of
from crawler.recrawl import RecrawlPolicy
from transforms.view import RoundView

FIRST_ASKED = "urls_first_asked"


def recrawl_policy(view: RoundView) -> RecrawlPolicy:
    """Return the bounds of revisits that the round's flags ask for, and the price of a visit in force.

    The same for every partition and attempt: it follows from the parent's manifest and the round's own terms.
    """
    flags = view.spec.flags
    policy = RecrawlPolicy(
        recrawl_min_hours=flags.recrawl_min_hours,
        recrawl_max_days=flags.recrawl_max_days,
        first_interval_days=min(30.0, flags.recrawl_max_days),
        max_retries=flags.max_retries,
        robots_ttl_hours=flags.robots_ttl_hours,
    )
    parent = view.parent
    if parent is None:
        return policy
    means = Means(flags.round_urls, parent.counters.get(FIRST_ASKED, 0), round_interval_seconds(view))
    return replace(policy, multiplier_seconds=price_of(parent.revisit_cells, means, policy))


def round_interval_seconds(view: RoundView) -> float | None:
    """Return the mean time between the starts of the crawl's rounds, this one's included; None for the first."""
    parent = view.parent
    if parent is None:
        return None
    gap_seconds = view.spec.as_of - datetime.fromisoformat(parent.as_of).timestamp()
    return mean_interval(parent.round_interval_seconds, gap_seconds, parent.round - 1)


def revisit_cells(view: RoundView, changes: Mapping[str, int]) -> dict[str, int]:
    """Return the crawl's pages by worth and change rate after a round that changed their numbers by these."""
    cells = dict(view.parent.revisit_cells) if view.parent else {}
    for name, change in changes.items():
        cells[name] = cells.get(name, 0) + change
    return {name: count for name, count in sorted(cells.items()) if count}
