"""The command line of `pipelines.dedup`: WARC files in, tables out, and options that pass through to Beam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runners.engine import JobRequest
from runners.options import HELP, StrictParser, UsageError
from schemas.flags import CrawlFlags, FlagError

_FLAGS = {"near_dup_threshold": float, "max_body_bytes": int, "page_processes": int, "user_agent": str}


@dataclass(frozen=True)
class DedupCommand:
    """What `pipelines.dedup` was asked to do. ``warc`` holds patterns as in a shell."""

    warc: tuple[str, ...]
    out: str
    flags: CrawlFlags
    job: JobRequest


def parse_dedup(argv: Sequence[str]) -> DedupCommand:
    """Parse strictly; raise UsageError with one line for whatever cannot be run."""
    parser = StrictParser("dedup", "Find the copies among the pages of WARC files: one Beam job.")
    parser.add_argument(
        "--warc",
        action="append",
        required=True,
        metavar="GLOB",
        help="WARC files, * and ? as in a shell, ** for any folders; local, gs:// or s3://; repeatable",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="new folder: local, gs:// or s3://")
    parser.add_argument("--runner", default="FnApiRunner", help="the engine (default FnApiRunner, local)")
    parser.add_argument(
        "--shared_filesystem",
        action="store_true",
        help="every worker sees the files and the folder under the same paths",
    )
    for name, kind in _FLAGS.items():
        parser.add_argument(f"--{name}", type=kind, default=None, help=HELP[name])
    namespace, foreign = parser.parse_known_args(list(argv))
    if foreign:
        # Beam is only imported when some argument might be one of its own.
        from runners.engines import check_beam_arguments

        check_beam_arguments(foreign, parser.names())
    given = {name: getattr(namespace, name) for name in _FLAGS}
    try:
        flags = CrawlFlags(**{name: value for name, value in given.items() if value is not None})
    except FlagError as error:
        raise UsageError(str(error)) from None
    job = JobRequest(namespace.runner, namespace.out, flags, tuple(foreign), namespace.shared_filesystem)
    return DedupCommand(tuple(namespace.warc), namespace.out, flags, job)
