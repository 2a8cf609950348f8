"""How much of a round's time its earlier attempts left over."""

from __future__ import annotations

from connectors.journal import Journal
from connectors.rounds import CrawlFolder
from schemas.round import RoundPlan


def remaining_seconds(folder: CrawlFolder, plan: RoundPlan) -> float:
    """Return the seconds that the fetching of an unfinished round may still take, 0 or more.

    Used up is what the journal of the longest shard accounts for: each entry says how long its segment was
    open. What was fetched and not journalled is fetched again, and so is its time.
    """
    used = 0.0
    for shard in plan.shards:
        entries = Journal(folder, plan.round, shard.shard).entries()
        used = max(used, sum(entry.closed_at - entry.opened_at for entry in entries))
    return max(0.0, plan.round_seconds - used)
