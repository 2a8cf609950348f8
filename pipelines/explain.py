"""`python -m pipelines.explain`: why a URL was, or was not, fetched."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from connectors.faults import CrawlFolderError
from connectors.rounds import CrawlFolder
from pipelines.explanation import text_of
from runners.options import (
    EXIT_DONE,
    EXIT_FAILED,
    StrictParser,
    UsageError,
    add_crawl_argument,
    format_instant,
    parse_strict,
    run_command,
)
from transforms.explaining import explain


def main(argv: Sequence[str]) -> int:
    """Print what the crawl's files tell of one URL; exit 0 whether the crawl knows it or not."""
    parser = StrictParser("explain", "Say why a URL was, or was not, fetched, and when it will be.")
    add_crawl_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("url", metavar="URL", help="the URL, in any spelling")
    args = parse_strict(parser, argv)
    try:
        document = explain(CrawlFolder.at(args.crawl), args.url, time.time())
    except CrawlFolderError as error:
        if error.exit_code != EXIT_FAILED:
            raise UsageError(str(error)) from error
        sys.stderr.write(f"explain: {error}\n")
        return EXIT_FAILED
    print(json_of(document) if args.json else _shown(text_of(document)))
    return EXIT_DONE


def json_of(document: dict[str, Any]) -> str:
    """Return the document as one line of JSON in ASCII, instants as RFC 3339, control characters escaped."""
    return json.dumps(document, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return format_instant(value.timestamp())
    raise TypeError(f"no JSON form: {type(value).__name__}")


def _shown(text: str) -> str:
    """Return the text with what standard output cannot show as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


if __name__ == "__main__":
    run_command(main, "explain")
