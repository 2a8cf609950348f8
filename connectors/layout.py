"""Names of everything in a crawl folder, relative to it."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

CRAWL = "crawl.json"
ROUNDS = "rounds/"
INJECT = "inject/"
STATE = "state/"
CRAWL_LEASE = "leases/crawl"
TABLES = ("captures", "pages", "links", "hosts", "duplicates", "removed")
SUBSETS = ("warc", "crawldiagnostics", "robotstxt")

_WARC_ROUND = re.compile(r"warc/(\d{6})/")


def round_folder(number: int) -> str:
    """Return the folder of one round, with its final slash."""
    return f"{ROUNDS}{number:06d}/"


def manifest_path(number: int) -> str:
    """Return the name of the file that is the commit of a round."""
    return f"{round_folder(number)}manifest.json"


def plan_path(number: int) -> str:
    """Return the name of the create-only file that starts a round."""
    return f"{round_folder(number)}plan.json"


def plan_file(number: int, name: str) -> str:
    """Return the name of a file that planning writes before plan.json names it."""
    return f"{round_folder(number)}plan/{name}"


def shard_file(number: int, name: str) -> str:
    """Return the name of a shard's list of URLs."""
    return f"{round_folder(number)}shards/{name}"


def work_file(number: int, name: str) -> str:
    """Return the name of a file that one step of the round leaves for another."""
    return f"{round_folder(number)}work/{name}"


def staged(number: int, path: str) -> str:
    """Return where the file that will be published as ``path`` lies until the round is committed."""
    return f"{staged_folder(number)}{path}"


def staged_folder(number: int) -> str:
    """Return the folder of a round's files that wait for its commit."""
    return f"{round_folder(number)}staged/"


def journal_folder(number: int, shard: int) -> str:
    """Return the folder of one shard's journal entries."""
    return f"{round_folder(number)}journal/shard-{shard:04d}/"


def journal_path(number: int, shard: int, segment: int) -> str:
    """Return the name of one journal entry; segments count from 1."""
    return f"{journal_folder(number, shard)}{segment:06d}.json"


def delay_notes_prefix(number: int, shard: int) -> str:
    """Return what the names of a shard's notes of Crawl-delays begin with."""
    return f"{journal_folder(number, shard)}delay-"


def delay_note_path(number: int, shard: int, host_key: int, seconds: float) -> str:
    """Return the name of the note that a host wants this pause."""
    return f"{delay_notes_prefix(number, shard)}{host_key:016x}-{round(seconds * 1000)}.json"


def stop_path(number: int, token: str) -> str:
    """Return the name of the file by which one run of a round tells its workers to stop."""
    return f"{round_folder(number)}stop-{token}.json"


def nothing_path(number: int, token: str) -> str:
    """Return the name of the file by which one run of a round says that nothing was due."""
    return f"{round_folder(number)}nothing-due-{token}.json"


def run_path(run_id: str) -> str:
    """Return the name of the file that tells which round a run committed."""
    return f"runs/{hashlib.blake2b(run_id.encode(), digest_size=16).hexdigest()}.json"


def lease_folder(number: int) -> str:
    """Return the folder of the leases of a round's shards."""
    return f"leases/{number:06d}/"


def shard_lease(number: int, shard: int) -> str:
    """Return the name, without suffix, of the lease of one shard of a round."""
    return f"{lease_folder(number)}shard-{shard:04d}"


def warc_folder(number: int) -> str:
    """Return the folder of a round's WARC files."""
    return f"warc/{number:06d}/"


def warc_path(number: int, subset: str, name: str) -> str:
    """Return the name of a WARC file."""
    return f"{warc_folder(number)}{subset}/{name}"


def wet_folder(number: int) -> str:
    """Return the folder of a round's exported texts."""
    return f"wet/{number:06d}/"


def wet_path(number: int, warc: str) -> str:
    """Return the name of the texts of a WARC file: NAME.warc.gz has its texts in NAME.warc.wet.gz."""
    return f"{wet_folder(number)}{warc.rpartition('/')[2].removesuffix('.gz')}.wet.gz"


def warc_round(path: str) -> int | None:
    """Return the round that a WARC file's name tells, or None for another file."""
    match = _WARC_ROUND.match(path)
    return int(match[1]) if match else None


def index_path(number: int, subset: str) -> str:
    """Return the name of the sorted CDXJ file of one subset of a round."""
    return f"index/{number:06d}/{subset}.cdxj.gz"


def table_path(table: str, number: int, name: str) -> str:
    """Return the name of one Parquet file of a public table."""
    return f"tables/{table}/round={number:06d}/{name}"


def state_path(table: str, partition: int, name: str) -> str:
    """Return the name of one file of a state table."""
    return f"{STATE}{table}/p={partition:04d}/{name}"


def report_path(number: int) -> str:
    """Return the name of a round's report."""
    return f"reports/{number:06d}.html"


def inject_path(at: float, token: str) -> str:
    """Return a name for seeds given at ``at`` (UTC epoch seconds); names sort by time."""
    return f"{INJECT}{datetime.fromtimestamp(at, UTC):%Y%m%dT%H%M%S.%fZ}-{token}.json"


def round_number(folder: str) -> int | None:
    """Return the round whose folder has this name ('000001'), or None for another name."""
    return int(folder) if re.fullmatch(r"\d{6,}", folder) else None
