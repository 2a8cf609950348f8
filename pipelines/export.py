"""`python -m pipelines.export`: a round's outputs in other tools' formats."""

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
from transforms.exporting import export_wet


def main(argv: Sequence[str]) -> int:
    """Write the files that are not there yet, and print how many there are and where."""
    parser = StrictParser("export", "Write what a committed round holds in the formats of other tools.")
    add_crawl_argument(parser)
    parser.add_argument(
        "--wet", action="store_true", help="texts as WARC conversion records, one file a WARC file"
    )
    parser.add_argument("--round", type=positive_int, default=None, metavar="N", help="default: the newest")
    args = parse_strict(parser, argv)
    if not args.wet:
        raise UsageError("nothing to export: give --wet")
    try:
        folder = CrawlFolder.at(args.crawl)
        folder.identity()
        number = args.round or folder.newest_round()
        if not number:
            raise UsageError(f"{folder.root} has no committed round yet; run python -m pipelines.round first")
        files = list(export_wet(folder, number))
    except CrawlFolderError as error:
        if error.exit_code != EXIT_FAILED:
            raise UsageError(str(error)) from error
        sys.stderr.write(f"export: {error}\n")
        return EXIT_FAILED
    new = [file for file in files if file.is_new]
    print(
        f"wet: {sum(file.records for file in new)} records in {len(new)} new files, "
        f"{len(files) - len(new)} already there: {folder.root}/{layout.wet_folder(number)}"
    )
    return EXIT_DONE


if __name__ == "__main__":
    run_command(main, "export")
