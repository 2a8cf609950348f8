"""`python -m pipelines.report`: one HTML file that shows what a round did."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from connectors import layout
from connectors.faults import CrawlFolderError
from connectors.rounds import CrawlFolder
from runners.options import (
    EXIT_DONE,
    EXIT_FAILED,
    StrictParser,
    UsageError,
    add_crawl_argument,
    parse_strict,
    positive_int,
    run_command,
)
from transforms.report.reporting import write_report
from transforms.report.svg import NoPlottingLibrary


def main(argv: Sequence[str]) -> int:
    """Write the report of a round into the crawl folder and print where it lies; an existing one stays."""
    parser = StrictParser("report", "Write a self-contained HTML report of a committed round.")
    add_crawl_argument(parser)
    parser.add_argument("--round", type=positive_int, default=None, metavar="N", help="default: the newest")
    args = parse_strict(parser, argv)
    try:
        folder = CrawlFolder.at(args.crawl)
        folder.identity()
        number = args.round or folder.newest_round()
        if not number:
            raise UsageError(f"{folder.root} has no committed round yet; run python -m pipelines.round first")
        is_new = write_report(folder, number)
    except NoPlottingLibrary as error:
        raise UsageError(str(error)) from error
    except CrawlFolderError as error:
        if error.exit_code != EXIT_FAILED:
            raise UsageError(str(error)) from error
        sys.stderr.write(f"report: {error}\n")
        return EXIT_FAILED
    print(
        f"report: {folder.root}/{layout.report_path(number)}{'' if is_new else ' (already there, unchanged)'}"
    )
    return EXIT_DONE


if __name__ == "__main__":
    run_command(main, "report")
