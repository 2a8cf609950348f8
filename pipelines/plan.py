"""`python -m pipelines.plan`: what the next round would do; fetches nothing and writes nothing."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from connectors.faults import CrawlFolderError
from connectors.files.local import LocalStorage
from connectors.files.overlay import OverlayStorage
from connectors.rounds import CrawlFolder
from pipelines.forecast import Forecast, forecast
from pipelines.summary import size
from runners.options import (
    EXIT_DONE,
    StrictParser,
    UsageError,
    add_crawl_argument,
    add_crawl_flags,
    crawl_flags,
    format_instant,
    parse_strict,
    run_command,
)
from schemas.flags import CrawlFlags
from schemas.round import RoundPlan, RoundSpec
from transforms import planning
from transforms.absorb import absorb
from transforms.view import RoundView, read_plan


def main(argv: Sequence[str]) -> int:
    """Print the plan of the next round, or of the unfinished one that would be resumed."""
    parser = StrictParser("plan", "Show what the next round would do. Fetches and writes nothing.")
    add_crawl_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_crawl_flags(parser)
    args = parse_strict(parser, argv)
    try:
        folder = CrawlFolder.at(args.crawl)
        folder.identity()
        with tempfile.TemporaryDirectory(prefix="roundcrawl-plan-") as scratch:
            beside = CrawlFolder(OverlayStorage(folder.root, folder.storage, LocalStorage(scratch)))
            view, plan = plan_of(beside, crawl_flags(args), args.as_of)
            document = document_of(view, plan)
    except CrawlFolderError as error:
        raise UsageError(str(error)) from error
    print(json.dumps(document) if args.json else _text(document, view))
    return EXIT_DONE


def plan_of(
    folder: CrawlFolder, flags: CrawlFlags, as_of: float | None
) -> tuple[RoundView, RoundPlan | None]:
    """Return the unfinished round's plan, or make the next one; None when nothing is due."""
    unfinished = folder.unfinished_round()
    plan = read_plan(folder, unfinished) if unfinished is not None else None
    identity, parent, now = folder.identity(), folder.newest_round(), time.time()
    spec = RoundSpec(
        crawl=folder.root,
        name=identity.name,
        salt=identity.salt,
        partitions=identity.partitions,
        scope=identity.scope,
        round=parent + 1,
        parent=parent or None,
        run_id="plan",
        as_of=(now if as_of is None else as_of) if plan is None else plan.as_of,
        started_at=now,
        deadline_at=now + flags.round_minutes * 60,
        flags=flags if plan is None else CrawlFlags.from_json(plan.flags),
        attempt=secrets.token_hex(4),
    )
    view = RoundView(spec, folder)
    if plan is not None or not view.has_work():
        return view, plan
    dues = [planning.select_due(view, part) for part in absorb(view)]
    return view, planning.pack_round(view, dues) if dues else None


def document_of(view: RoundView, plan: RoundPlan | None) -> dict[str, Any]:
    """Return the plan as the contract's JSON members."""
    if plan is None:
        due_at = view.next_due_at()
        nothing = Forecast(0.0, 0.0, [])
        return _members(0, 0, [], nothing, {}) | {"next_due": format_instant(due_at) if due_at else None}
    shards = [shard.__dict__ for shard in plan.shards]
    return _members(plan.planned, plan.hosts, shards, forecast(view, plan), plan.left_out)


def _members(
    urls: int, hosts: int, shards: list[dict[str, Any]], expected: Forecast, left_out: dict[str, int]
) -> dict[str, Any]:
    return {
        "urls": urls,
        "hosts": hosts,
        "shards": shards,
        "predicted_seconds": expected.seconds,
        "predicted_bytes": expected.bytes,
        "slowest_hosts": expected.slowest_hosts,
        "left_out": left_out,
    }


def _text(document: dict[str, Any], view: RoundView) -> str:
    if not document["urls"]:
        return f"nothing is due; next due: {document['next_due'] or 'never (the frontier is empty)'}"
    lines = [
        f"round {view.spec.round}: {document['urls']} URLs of {document['hosts']} hosts, about "
        f"{document['predicted_seconds']:.0f} s and {size(document['predicted_bytes'])}"
    ]
    for shard in document["shards"]:
        lines.append(
            f"  shard {shard['shard']}: {shard['urls']} URLs, {shard['hosts']} hosts, "
            f"{shard['load_seconds']:.0f} s of hosts"
        )
    lines += [f"  left out: {why} {count}" for why, count in sorted(document["left_out"].items())]
    lines += ["  slowest hosts:"] + [
        f"    {host['host']}: {host['urls']} URLs, {host['seconds']:.0f} s"
        for host in document["slowest_hosts"]
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    run_command(main, "plan")
