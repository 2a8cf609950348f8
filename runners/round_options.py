"""The command line of `pipelines.round`: crawl flags, engine, and options that pass through to Beam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runners.engine import JobRequest
from runners.options import (
    StrictParser,
    add_crawl_argument,
    add_crawl_flags,
    crawl_flags,
    given_crawl_flags,
    positive_int,
)
from schemas.flags import CrawlFlags


@dataclass(frozen=True)
class RoundCommand:
    """What `pipelines.round` was asked to do. ``given`` holds only the flags that the command line named."""

    crawl: str
    rounds: int
    run_id: str | None
    as_of: float | None
    flags: CrawlFlags
    given: dict[str, Any]
    job: JobRequest
    runner_preset_dump: bool


def parse_round(argv: Sequence[str]) -> RoundCommand:
    """Parse strictly; raise UsageError with one line for whatever cannot be run."""
    parser = StrictParser("round", "Run the next round(s) of a crawl: one Beam job each.")
    add_crawl_argument(parser)
    parser.add_argument("--rounds", type=positive_int, default=1, help="how many rounds to run (default 1)")
    parser.add_argument(
        "--run_id", default=None, help="a name for this run; a committed one is not run again"
    )
    parser.add_argument("--runner", default="FnApiRunner", help="the engine (default FnApiRunner, local)")
    parser.add_argument(
        "--shared_filesystem",
        action="store_true",
        help="every worker sees the crawl folder under the same path",
    )
    parser.add_argument(
        "--runner_preset_dump",
        action="store_true",
        help="print the Beam options of the job and do nothing else",
    )
    add_crawl_flags(parser)
    namespace, foreign = parser.parse_known_args(list(argv))
    if foreign:
        # Beam is only imported when some argument might be one of its own.
        from runners.engines import check_beam_arguments

        check_beam_arguments(foreign, parser.names())
    flags = crawl_flags(namespace)
    return RoundCommand(
        crawl=namespace.crawl,
        rounds=namespace.rounds,
        run_id=namespace.run_id,
        as_of=namespace.as_of,
        flags=flags,
        given=given_crawl_flags(namespace),
        job=JobRequest(namespace.runner, namespace.crawl, flags, tuple(foreign), namespace.shared_filesystem),
        runner_preset_dump=namespace.runner_preset_dump,
    )
