"""`python -m pipelines.audit`: re-check a crawl from its own files."""

from __future__ import annotations

import json
from collections.abc import Sequence

from connectors.faults import CrawlFolderError
from connectors.rounds import CrawlFolder
from runners.options import (
    EXIT_DONE,
    EXIT_FAILED,
    StrictParser,
    UsageError,
    add_crawl_argument,
    parse_strict,
    run_command,
)
from transforms.auditing import Audit


def main(argv: Sequence[str]) -> int:
    """Print every fault found; exit 1 when there is one."""
    parser = StrictParser("audit", "Re-check counts, digests, index, pacing and duplicates of a crawl.")
    add_crawl_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parse_strict(parser, argv)
    try:
        folder = CrawlFolder.at(args.crawl)
        folder.identity()
        audit = Audit(folder)
        faults = audit.run()
    except CrawlFolderError as error:
        if error.exit_code == EXIT_FAILED:
            faults, audit = [str(error)], None
        else:
            raise UsageError(str(error)) from error
    if args.json:
        print(json.dumps({"ok": not faults, "faults": faults}))
    else:
        for fault in faults:
            print(fault)
        seen = (
            f"{audit.rounds} rounds, {audit.files} files, {audit.captures} captures"
            if audit
            else "stopped early"
        )
        print(f"audit: {len(faults)} faults ({seen})")
    return EXIT_FAILED if faults else EXIT_DONE


if __name__ == "__main__":
    run_command(main, "audit")
