"""`python -m pipelines.plan`: what the next round would do; fetches nothing and writes nothing."""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
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
from transforms.remaining import remaining_seconds
from transforms.round_packing import pack_round
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
    print(json.dumps(document) if args.json else _text(document))
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
        deadline_at=now + (flags.round_minutes * 60 if plan is None else remaining_seconds(folder, plan)),
        flags=flags if plan is None else CrawlFlags.from_json(plan.flags),
        attempt=secrets.token_hex(4),
    )
    view = RoundView(spec, folder)
    if plan is not None or not view.has_work():
        return view, plan
    dues = [planning.select_due(view, part) for part in absorb(view)]
    plan = pack_round(view, dues) if dues else None
    if plan is not None:
        view.plan = plan
    return view, plan


def document_of(view: RoundView, plan: RoundPlan | None) -> dict[str, Any]:
    """Return the plan as the contract's JSON members, and which round it is.

    ``unfinished`` says that it was planned before: then what is predicted is the rest, of which ``urls_done``
    are none. ``next_due`` is there when nothing is due.
    """
    expected = Forecast(0.0, 0.0, []) if plan is None else forecast(view, plan)
    document = {
        "round": view.spec.round,
        "unfinished": view.folder.unfinished_round() is not None,
        "urls": plan.planned if plan else 0,
        "urls_done": expected.urls_done,
        "hosts": plan.hosts if plan else 0,
        "shards": [asdict(shard) for shard in plan.shards] if plan else [],
        "predicted_seconds": expected.seconds,
        "predicted_bytes": expected.bytes,
        "slowest_hosts": expected.slowest_hosts,
        "left_out": plan.left_out if plan else {},
    }
    if plan is None:
        due_at = view.next_due_at()
        document["next_due"] = format_instant(due_at) if due_at is not None else None
    return document


def _text(document: dict[str, Any]) -> str:
    if not document["urls"]:
        return f"nothing is due; next due: {document['next_due'] or 'never (the frontier is empty)'}"
    done = f" (unfinished: {document['urls_done']} are done)" if document["unfinished"] else ""
    lines = [
        f"round {document['round']}: {document['urls']} URLs of {document['hosts']} hosts{done}, about "
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
