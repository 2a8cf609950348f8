"""`python -m pipelines.status`: live progress of a running round, whichever engine it is on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from connectors.clock import SystemClock
from connectors.faults import CrawlFolderError
from connectors.journal import Journal
from connectors.lease import crawl_lease
from connectors.rounds import CrawlFolder
from pipelines.progress import LEASE_SECONDS, shard_progress
from pipelines.summary import size
from runners.options import (
    EXIT_DONE,
    StrictParser,
    UsageError,
    add_crawl_argument,
    format_instant,
    parse_strict,
    run_command,
)
from schemas.round import RoundPlan
from transforms.view import read_plan


def main(argv: Sequence[str]) -> int:
    """Print where the crawl stands."""
    parser = StrictParser("status", "Show the progress of a crawl's round.")
    add_crawl_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parse_strict(parser, argv)
    try:
        folder = CrawlFolder.at(args.crawl)
        folder.identity()
        status = status_of(folder)
    except CrawlFolderError as error:
        raise UsageError(str(error)) from error
    print(json.dumps(status) if args.json else _text(status))
    return EXIT_DONE


def status_of(folder: CrawlFolder) -> dict[str, Any]:
    """Return round, phase, urls_done, urls_planned, hosts_waiting, bytes and started_at.

    ``phase`` is idle (nothing runs), planning, fetching, merging (all is fetched), or unfinished (a round was
    begun and nobody works on it). ``round`` is the one in hand, or else the newest committed one.
    """
    standing = crawl_lease(folder, SystemClock(), LEASE_SECONDS).peek()
    is_live = standing is not None and standing.live
    number = folder.unfinished_round()
    plan = read_plan(folder, number) if number is not None else None
    if plan is None:
        newest = folder.newest_round()
        is_planning = is_live and standing is not None and standing.holder.progress.get("round", 0) > newest
        return _status(newest + 1 if is_planning else newest, "planning" if is_planning else "idle")
    shards = shard_progress(folder, plan)
    done = sum(shard.get("done", 0) for shard in shards)
    is_fetched = all(_is_fetched(folder, plan, shard.shard) for shard in plan.shards)
    phase = "merging" if is_fetched else "fetching"
    return _status(
        plan.round,
        phase if is_live else "unfinished",
        urls_done=plan.planned if is_fetched else done,
        urls_planned=plan.planned,
        hosts_waiting=0 if is_fetched else sum(shard.get("hosts_waiting", 0) for shard in shards),
        bytes=sum(shard.get("bytes", 0) for shard in shards),
        started_at=format_instant(plan.planned_at),
    )


def _is_fetched(folder: CrawlFolder, plan: RoundPlan, shard: int) -> bool:
    journal = Journal(folder, plan.round, shard)
    segments = journal.segments()
    return bool(segments) and journal.read(segments[-1]).is_last


def _status(number: int, phase: str, **known: Any) -> dict[str, Any]:
    nothing = {"urls_done": 0, "urls_planned": 0, "hosts_waiting": 0, "bytes": 0, "started_at": None}
    return {"round": number, "phase": phase, **nothing, **known}


def _text(status: dict[str, Any]) -> str:
    if status["started_at"] is None:
        return f"round {status['round']}: {status['phase']}"
    return (
        f"round {status['round']}: {status['phase']}, {status['urls_done']} of {status['urls_planned']} URLs, "
        f"{status['hosts_waiting']} hosts waiting, {size(status['bytes'])}, since {status['started_at']}"
    )


if __name__ == "__main__":
    run_command(main, "status")
