"""Command-line flags to frozen policies: `--name=value`, never abbreviated, nothing unknown passes."""

from __future__ import annotations

import argparse
import difflib
import sys
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from typing import Any, NoReturn, get_type_hints

from connectors.files import StorageError
from runners.ending import INTERRUPTED, ends_with
from schemas.flags import CrawlFlags, FlagError

EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_LOCKED = 0, 1, 2, 3

HELP = {
    "user_agent": "product token and version sent to every server",
    "contact": "web page or mailto: address for webmasters; part of the User-Agent",
    "min_delay_seconds": "least pause between two requests to one host",
    "latency_factor": "pause at least this many times the last response time",
    "max_delay_seconds": "upper bound of the pause that latency asks for",
    "max_crawl_delay_seconds": "a Crawl-delay above this: few URLs a round, never faster",
    "min_ip_delay_seconds": "least pause between two requests to one address",
    "round_minutes": "how long a round may fetch",
    "round_urls": "most URLs planned in a round",
    "host_round_urls": "most URLs of one host in a round (default: what fits)",
    "host_total_urls": "most URLs of one host that the crawl remembers",
    "domain_round_urls": "most URLs of one registered domain in a round",
    "max_domain_hosts": "most host names of one registered domain",
    "max_depth": "most links between a seed and a page",
    "max_url_length": "longest URL that is admitted, in characters",
    "max_path_segments": "most path segments of an admitted URL",
    "max_body_bytes": "longest body that is kept, as sent and as decoded",
    "max_redirects": "most redirect hops followed in one round",
    "max_retries": "failures in a row before a URL counts as gone",
    "connect_timeout_seconds": "time limit for a connection",
    "read_timeout_seconds": "time limit between two pieces of a reply",
    "fetch_timeout_seconds": "time limit of a whole download",
    "robots_ttl_hours": "how long a robots.txt is trusted",
    "recrawl_min_hours": "shortest time between two visits of a page",
    "recrawl_max_days": "longest time between two visits of a page",
    "near_dup_threshold": "estimated Jaccard similarity from which a page is a near duplicate",
    "fetch_concurrency": "downloads at once in one worker process",
    "page_processes": "processes that parse pages (default: one per core)",
    "shards": "shards of the round (default: one per concurrent worker slot)",
    "checkpoint_seconds": "how often fetched pages are made safe",
    "lease_seconds": "after how long a silent holder on an object store is taken over",
    "warc_max_bytes": "size at which a WARC file is closed",
    "nameservers": "DNS servers, IP[:PORT], comma separated (default: the system's)",
    "connect_to": "HOST:PORT:ADDRESS:PORT as in curl; repeatable; empty HOST or PORT means any",
    "allow_private_addresses": "also connect to loopback, private and link-local addresses",
}


class UsageError(Exception):
    """A command line that cannot be run; the text is the one line that the user sees."""


class StrictParser(argparse.ArgumentParser):
    """An argument parser that never abbreviates and reports errors as UsageError."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(prog=f"python -m pipelines.{command}", description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the whole usage text."""
        raise UsageError(message)

    def names(self) -> list[str]:
        """Return every option string of this command."""
        return [option for action in self._actions for option in action.option_strings]


def positive_int(text: str) -> int:
    """Parse a whole number above 0."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be greater than 0, got {text}")
    return value


def parse_instant(text: str) -> float:
    """Parse an RFC 3339 instant to UTC epoch seconds; an instant without a zone is refused."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an RFC 3339 time such as 2026-01-31T12:00:00Z")
    return instant.timestamp()


def format_instant(at: float) -> str:
    """Write epoch seconds as RFC 3339 in UTC, whole microseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def add_crawl_argument(parser: StrictParser) -> None:
    """Add `--crawl`, which every command takes."""
    parser.add_argument("--crawl", required=True, metavar="PATH", help="crawl folder: local, gs:// or s3://")


def add_crawl_flags(parser: StrictParser) -> None:
    """Add every flag of CrawlFlags; a flag that is not given stays None, so that it can be told apart."""
    hints = get_type_hints(CrawlFlags)
    for field in fields(CrawlFlags):
        default = field.default if field.default is not MISSING else None
        text = HELP[field.name] + (f" (default {default})" if default not in (None, (), False) else "")
        kind = _value_type(hints[field.name])
        if kind is bool:
            parser.add_argument(f"--{field.name}", action="store_true", default=None, help=text)
        elif field.name == "connect_to":
            parser.add_argument("--connect_to", action="append", default=None, metavar="RULE", help=text)
        elif kind is tuple:
            parser.add_argument(f"--{field.name}", type=_comma_separated, default=None, help=text)
        else:
            parser.add_argument(f"--{field.name}", type=_named(kind), default=None, help=text)
    parser.add_argument(
        "--as_of", type=parse_instant, default=None, metavar="RFC3339", help='what "due" means now'
    )


def _value_type(hint: Any) -> type:
    if isinstance(hint, types.UnionType):
        hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
    return typing.get_origin(hint) or hint


def _named(kind: type) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
        if isinstance(value, float) and not abs(value) < float("inf"):
            raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
        return value

    return convert


def _comma_separated(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def given_crawl_flags(namespace: argparse.Namespace) -> dict[str, Any]:
    """Return only the crawl flags that the command line named."""
    given = {field.name: getattr(namespace, field.name) for field in fields(CrawlFlags)}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if v is not None}


def crawl_flags(namespace: argparse.Namespace) -> CrawlFlags:
    """Return the validated flags: what was given over the defaults.

    Raises UsageError with the value and the remedy.
    """
    try:
        return CrawlFlags(**given_crawl_flags(namespace))
    except FlagError as error:
        raise UsageError(str(error)) from None


def parse_strict(parser: StrictParser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line that takes no foreign options."""
    namespace, unknown = parser.parse_known_args(list(argv))
    if unknown:
        raise UsageError(unknown_flag(unknown[0], parser.names()))
    return namespace


def unknown_flag(text: str, known: Sequence[str]) -> str:
    """Return the one line for a flag or word that nobody knows, with the nearest known flag."""
    name = text.split("=", 1)[0]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else "; see --help"
    return f"unknown {'flag' if name.startswith('-') else 'argument'} {name}{hint}"


def run_command(main: Callable[[Sequence[str]], int], command: str) -> NoReturn:
    """Run a command; usage errors become one line on stderr and exit 2, a storage that refuses or fails exit 1.

    So does Ctrl-C, for commands that do not stop in a way of their own.
    """
    try:
        code = main(sys.argv[1:])
    except UsageError as error:
        sys.stderr.write(f"{command}: {' '.join(str(error).split())}\n")
        code = EXIT_USAGE
    except StorageError as error:
        sys.stderr.write(f"{command}: {' '.join(str(error).split())}\n")
        code = EXIT_FAILED
    except KeyboardInterrupt:
        sys.stderr.write(f"{command}: {INTERRUPTED}\n")
        code = EXIT_FAILED
    except BrokenPipeError:
        code = EXIT_FAILED
    sys.exit(ends_with(code))
