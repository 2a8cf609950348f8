"""One real round over rogue and healthy webs, in a process of its own, and what it came to.

`python -m tests.fakes.hostile_round CA_FILE FLAGS...` is that process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from connectors import transport
from connectors.warc_read import iter_records, split_http
from crawler.urls import NormalUrl, normalise
from pipelines import audit, inject
from pipelines import round as round_command
from tests.fakes.healthy_web import HealthyWeb
from tests.fakes.rogue_web import POLICY, RogueWeb
from tests.fakes.rogues.model import Rogue
from tests.fakes.toy_server import serve

LIMITS = (
    "--connect_timeout_seconds=2",
    "--read_timeout_seconds=2",
    "--fetch_timeout_seconds=4",
    "--min_delay_seconds=0.1",
    "--latency_factor=0",
    "--contact=https://bot.example/",
    "--max_domain_hosts=100",
)


@dataclass(frozen=True)
class HostileRound:
    """A round that has ended: the crawl folder, what the process printed and took, who asked where."""

    folder: Path
    exit_code: int
    printed: str
    seconds: float
    peak_bytes: int
    silent_connections: int

    def rows(self, query: str) -> list[tuple]:
        """Run SQL with DuckDB; {captures} and the like stand for the Parquet files of a table."""
        tables = ("captures", "pages", "links", "hosts", "duplicates")
        files = {name: f"read_parquet('{self.folder}/tables/{name}/*/*.parquet')" for name in tables}
        return duckdb.sql(query.format(**files)).fetchall()

    def manifest(self) -> dict:
        """Return the manifest of the round."""
        return json.loads((self.folder / "rounds/000001/manifest.json").read_text())

    def wrong(self, rogues: Sequence[Rogue]) -> dict[str, tuple]:
        """Return the misbehaviours that became something else: (wanted, found) by name."""
        columns = "url, outcome, reason, content_truncated"
        planned = {
            url: (outcome, reason, truncated)
            for url, outcome, reason, truncated in self.rows(
                f"SELECT {columns} FROM {{captures}} WHERE kind = 'planned'"
            )
        }
        hops = self.rows(
            "SELECT url_host_registered_domain, outcome, reason FROM {captures} WHERE kind = 'hop' ORDER BY started_at"
        )
        ends = {domain: (outcome, reason) for domain, outcome, reason in hops}
        wrong: dict[str, tuple] = {}
        for rogue in rogues:
            wanted = (rogue.outcome, rogue.reason, rogue.truncated)
            found = planned.get(normal(rogue.seed))
            if found != wanted:
                wrong[rogue.name] = wanted, found
            elif rogue.end is not None and ends.get(rogue.host) != rogue.end:
                wrong[rogue.name] = rogue.end, ends.get(rogue.host)
        return wrong

    def healthy_pages(self) -> int:
        """Return how many healthy pages are in the pages table."""
        return self.rows("SELECT count(DISTINCT url) FROM {pages} WHERE host LIKE '%.healthy%'")[0][0]

    def control_characters(self) -> list[str]:
        """Return where control characters got through: printed lines, heads in WARC files, texts in tables."""
        found = [f"printed: {line!r}" for line in self.printed.split("\n") if not _is_clean(line)]
        for path in sorted(self.folder.glob("warc/*/*/*.warc.gz")):
            for record in iter_records(path):
                head = record.head + (split_http(record.block)[0] if record.kind != "warcinfo" else b"")
                if not _is_clean(head.decode("latin-1").replace("\r\n", "")):
                    found.append(f"{path.name}: {record.get('WARC-Target-URI')}")
        for table, columns in (
            ("captures", ("url", "detail", "reason", "content_mime_type", "fetch_redirect", "robots_rule")),
            ("pages", ("url", "title", "content_type", "etag", "last_modified", "language")),
            ("links", ("target_url", "anchor", "rel")),
        ):
            for column in columns:
                values = self.rows(f"SELECT DISTINCT {column} FROM {{{table}}} WHERE {column} IS NOT NULL")
                found += [f"{table}.{column}: {value!r}" for (value,) in values if not _is_clean(value)]
        return found

    def audit(self) -> int:
        """Return the exit code of the audit command."""
        return audit.main([f"--crawl={self.folder}"])


def run_round(
    folder: Path, rogues: Sequence[Rogue], healthy: HealthyWeb, minutes: float, *more: str
) -> HostileRound:
    """Inject all rogues and all healthy pages, and run one round over them."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    crawl = folder / "crawl"
    with RogueWeb(rogues, folder) as web, serve(healthy) as server:
        seeds = folder / "seeds.txt"
        seeds.write_text("\n".join([*web.seeds(), *healthy.urls()]), encoding="utf-8")
        assert inject.main([f"--crawl={crawl}", "--salt=h", f"--seeds={seeds}", f"--policy={policy}"]) == 0
        pins = [f"--connect_to={host}:80:127.0.0.1:{server.port}" for host in healthy.hosts]
        flags = [
            f"--crawl={crawl}",
            "--runner=FnApiRunner",
            f"--round_minutes={minutes}",
            *LIMITS,
            *pins,
            *more,
        ]
        line = [sys.executable, "-m", "tests.fakes.hostile_round", web.ca_file, *flags, *web.flags()]
        began = time.monotonic()
        ended = subprocess.run(line, capture_output=True, text=True, errors="surrogateescape", check=False)
        seconds = time.monotonic() - began
        last = ended.stdout.rstrip("\n").rpartition("\n")[2]
        peak = json.loads(last)["peak_bytes"] if last.startswith("{") else 0
        return HostileRound(
            crawl,
            ended.returncode,
            ended.stdout + ended.stderr,
            seconds,
            peak,
            web.silent.connections,
        )


def normal(url: str) -> str:
    """Return a seed as the tables have it."""
    result = normalise(url)
    assert isinstance(result, NormalUrl), (url, result)
    return result.url


def _is_clean(text: str) -> bool:
    return not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text)


def main() -> int:
    """Run the round, then print the peak memory of this process."""
    transport.DEFAULT_CA_BUNDLE_PATH = sys.argv[1]
    code = round_command.main(sys.argv[2:])
    print(json.dumps({"peak_bytes": peak_bytes()}), flush=True)
    return code


def peak_bytes() -> int:
    """Return this process's peak resident memory; getrusage's counts that of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


if __name__ == "__main__":
    sys.exit(main())
