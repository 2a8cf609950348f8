"""`python -m pipelines.inject`: create a crawl; add seeds and the operator's policy."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from connectors import runs
from connectors.faults import CrawlFolderError
from connectors.rounds import CrawlFolder
from crawler.policy import PolicyBook, PolicyError, parse_policy
from crawler.urls import NormalUrl, UrlKeys, host_of, normalise, partition_of
from runners.options import (
    EXIT_DONE,
    StrictParser,
    UsageError,
    add_crawl_argument,
    format_instant,
    parse_strict,
    positive_int,
    run_command,
)
from schemas.crawl import CrawlIdentity
from schemas.manifest import FORMAT_VERSION

DEFAULT_PARTITIONS = 64
DEFAULT_PRIORITY = 0.5


class Seeds(NamedTuple):
    """The seed lines of one command, told apart: normal URLs, and (line, reason) of each refused one."""

    accepted: list[str]
    refused: list[tuple[str, str]]


def main(argv: Sequence[str]) -> int:
    """Add seeds and policy; print what was accepted, already known and refused."""
    args = parse_strict(_parser(), argv)
    seeds = sort_seeds(_seed_lines(args))
    for line, reason in seeds.refused:
        sys.stderr.write(f"refused: {line!r}: {reason}\n")
    if not seeds.accepted and not args.policy:
        source = f"{args.seeds} has" if args.seeds else "the command line has"
        raise UsageError(f"{source} no URL to crawl: give http:// or https:// URLs, one a line")
    policy = _policy(args.policy)
    try:
        folder = CrawlFolder.at(args.crawl)
        known = add(folder, args, seeds.accepted, policy)
    except CrawlFolderError as error:
        raise UsageError(str(error)) from error
    new = len(seeds.accepted) - known
    print(f"accepted: {new}, known: {known}, refused: {len(seeds.refused)}")
    return EXIT_DONE


def _parser() -> StrictParser:
    parser = StrictParser(
        "inject", "Create a crawl if it is new; add seeds and per-domain policy. Idempotent."
    )
    add_crawl_argument(parser)
    parser.add_argument("urls", nargs="*", metavar="URL", help="seed URLs")
    parser.add_argument("--seeds", metavar="FILE", help="file of seed URLs, one a line; # starts a comment")
    parser.add_argument(
        "--priority", type=_priority, default=None, help="0 to 1, for these seeds (default 0.5)"
    )
    parser.add_argument("--policy", metavar="FILE", help="YAML file of rules per domain")
    parser.add_argument(
        "--scope", choices=("any", "domain", "host"), default=None, help="limit links (default any)"
    )
    parser.add_argument(
        "--salt", metavar="TEXT", default=None, help="salt of a new crawl, for reproducible tests"
    )
    parser.add_argument(
        "--partitions", type=positive_int, default=None, help="state partitions of a new crawl"
    )
    return parser


def _priority(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got {text}")
    return value


def _seed_lines(args: argparse.Namespace) -> list[str]:
    if not args.urls and not args.seeds and not args.policy:
        raise UsageError("nothing to inject: give URLs, --seeds=FILE or --policy=FILE")
    lines = list(args.urls)
    if args.seeds:
        lines += _read_text(args.seeds, "--seeds").splitlines()
    return lines


def _read_text(path: str, flag: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot read {flag}={path}: {why}; give a readable UTF-8 text file") from error


def sort_seeds(lines: Iterable[str]) -> Seeds:
    """Return the lines as normal URLs, each once, in order, and the bad ones with their reason."""
    accepted: dict[str, None] = {}
    refused: list[tuple[str, str]] = []
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        result = normalise(text)
        if isinstance(result, NormalUrl):
            accepted[result.url] = None
        else:
            refused.append((text[:200], result.reason))
    return Seeds(list(accepted), refused)


def _policy(path: str | None) -> PolicyBook | None:
    if path is None:
        return None
    try:
        return PolicyBook(parse_policy(_read_text(path, "--policy")))
    except PolicyError as error:
        raise UsageError(f"--policy={path}: {error}") from error


def add(folder: CrawlFolder, args: argparse.Namespace, urls: Sequence[str], policy: PolicyBook | None) -> int:
    """Store what is new create-only, for the next plan to take in; return how many URLs were known."""
    now = time.time()
    identity = folder.find_identity()
    if identity is not None:
        _check_same(identity, args)
    known = _known(folder, identity, urls, args.priority) if identity else frozenset()
    new = [url for url in urls if url not in known]
    if identity is None:
        identity = folder.create(_new_identity(folder, args, now))
    if new or policy is not None:
        priority = DEFAULT_PRIORITY if args.priority is None else args.priority
        document = {
            "at": format_instant(now),
            "seeds": [{"url": url, "priority": priority} for url in new],
            "policy": policy.to_json() if policy is not None else {},
        }
        folder.write_inject(document, now, secrets.token_hex(4))
    return len(known)


def _check_same(identity: CrawlIdentity, args: argparse.Namespace) -> None:
    """Refuse to change what is fixed for the crawl's life."""
    for name in ("scope", "salt", "partitions"):
        given, fixed = getattr(args, name), getattr(identity, name)
        if given is not None and given != fixed:
            shown = "" if name == "salt" else f"={fixed}"
            raise UsageError(
                f"--{name}={given}: this crawl was created with another {name}{shown}; leave it out"
            )


def _new_identity(folder: CrawlFolder, args: argparse.Namespace, now: float) -> CrawlIdentity:
    partitions = args.partitions or DEFAULT_PARTITIONS
    if partitions & (partitions - 1) or partitions > 4096:
        raise UsageError(f"--partitions must be a power of two up to 4096, got {partitions}")
    return CrawlIdentity(
        format_version=FORMAT_VERSION,
        name=folder.root.rstrip("/").rpartition("/")[2] or "crawl",
        partitions=partitions,
        salt=args.salt if args.salt is not None else secrets.token_hex(16),
        scope=args.scope or "any",
        created_at=format_instant(now),
    )


def _known(
    folder: CrawlFolder, identity: CrawlIdentity, urls: Sequence[str], priority: float | None
) -> frozenset[str]:
    """Return the URLs that the crawl knows: committed, or waiting in an inject file with this priority or more."""
    manifest = folder.newest_manifest()
    waiting: dict[str, float] = {}
    for path in folder.inject_paths(manifest.injected if manifest else []):
        for seed in folder.read_inject(path).get("seeds", ()):
            waiting[seed["url"]] = max(seed["priority"], waiting.get(seed["url"], 0.0))
    known = {url for url in urls if waiting.get(url, -1.0) >= (priority or 0.0)}
    keys = UrlKeys(identity.salt)
    by_partition: dict[int, list[str]] = {}
    for url in urls:
        number = partition_of(keys.host_key(host_of(url)), identity.partitions)
        by_partition.setdefault(number, []).append(url)
    for number, group in by_partition.items():
        entries = (
            [e for e in manifest.files if e.table == "seen" and e.partition == number] if manifest else []
        )
        with runs.KeyProbe(folder.storage, entries) as probe:
            known.update(u for u in group if probe.contains(keys.host_key(host_of(u)), keys.url_key(u)))
    return frozenset(known)


if __name__ == "__main__":
    run_command(main, "inject")
