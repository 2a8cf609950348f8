"""A crawl folder of any size without a crawl: the files of ten rounds, made with the writers that a round uses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from connectors import calendar, layout, parts, runs, sealed, tables
from connectors.files import digest_of
from connectors.rounds import CrawlFolder
from connectors.rows import rows_to_table
from connectors.sweep import KEPT_MANIFESTS
from crawler.urls import UrlKeys, authority_of, host_of, partition_of, registered_domain
from schemas.crawl import CrawlIdentity
from schemas.fetch import OutcomeRow
from schemas.flags import CrawlFlags
from schemas.manifest import FORMAT_VERSION, FileEntry, Manifest
from schemas.round import DueRef, RoundPlan, RoundSpec
from schemas.state import HostState, RobotsState, UrlState
from transforms import records
from transforms.planning import DUE_SCHEMA
from transforms.state_tables import HOSTS, ROBOTS, SEEN, host_columns, robots_columns
from transforms.view import plan_document

HOST_COUNT, ROUNDS, PARTITIONS, SEGMENTS = 20_000, 10, 64, 60
BEGUN_AT = 1_780_000_000.0
HOUR = 3600.0
VISITED_SHARE, DUPLICATE_EVERY, DENIED_EVERY = 0.7, 50, 97


class Web(NamedTuple):
    """The URLs by number: their text, keys, partitions; URL n was found on URL n // 2, so chains are long."""

    urls: list[str]
    host_keys: list[int]
    url_keys: list[int]
    partitions: np.ndarray

    def first_round(self, number: int) -> int:
        """Return the round that visits a URL first; above ROUNDS for one that still waits."""
        visited = VISITED_SHARE * len(self.urls)
        return 1 + int(number * ROUNDS / visited) if number < visited else ROUNDS + 1


def make_web(count: int) -> Web:
    """Return URLs spread over hosts as the Web has them: few hosts with many pages."""
    keys = UrlKeys("bench")
    spread = (np.random.default_rng(1).pareto(0.9, count) * 40).astype(np.int64) % HOST_COUNT
    urls = [
        f"http://www.host{host}.com/section/{n}.html?n={n % 97}" for n, host in enumerate(spread.tolist())
    ]
    host_keys = [keys.host_key(host_of(url)) for url in urls]
    partitions = np.array([partition_of(key, PARTITIONS) for key in host_keys])
    return Web(urls, host_keys, [keys.url_key(url) for url in urls], partitions)


def round_at(number: int) -> float:
    """Return the instant at which a round begins."""
    return BEGUN_AT + number * HOUR


def outcome_of(web: Web, number: int, in_round: int, is_first: bool) -> OutcomeRow:
    """Return what became of a URL in a round: mostly fetched, some duplicates, some denied."""
    url, at = web.urls[number], round_at(in_round) + number % 3000
    outcome, reason, rule = "fetched", None, None
    if number % DUPLICATE_EVERY == 3:
        outcome, reason = "duplicate", "exact_duplicate"
    elif number % DENIED_EVERY == 5:
        outcome, reason, rule = "robots_denied", "robots_rule", "Disallow: /section"
    row = OutcomeRow(
        *(url, web.host_keys[number], web.url_keys[number], "planned", outcome, reason, None, url),
        *(number.bit_length(), 0.5, web.urls[number // 2] if number else None, 0),
        robots_rule=rule,
        visits=0 if is_first else 1,
        duplicate_of=web.urls[number - 1] if outcome == "duplicate" else None,
    )
    if outcome == "robots_denied":
        return row
    return _stored(row, in_round, at, number)


def _stored(row: OutcomeRow, in_round: int, at: float, number: int) -> OutcomeRow:
    return row._replace(
        started_at=at,
        finished_at=at + 0.3,
        ip="192.0.2.1",
        status=200,
        host_delay_seconds=5.0,
        content_type="text/html",
        mime_detected="text/html",
        payload_digest=f"{number:032d}",
        subset="warc",
        warc_filename=f"warc/{in_round:06d}/warc/bench-20260601000000-{number % SEGMENTS:05d}-0000.warc.gz",
        warc_record_offset=number * 100,
        warc_record_length=4000,
    )


def state_of(web: Web, number: int) -> UrlState:
    """Return the calendar row of a URL after the last round."""
    first = web.first_round(number)
    seen = first <= ROUNDS
    status = {"fetched": "fetched", "duplicate": "duplicate", "robots_denied": "robots_denied"}
    outcome = outcome_of(web, number, first, True) if seen else None
    found_in = min(ROUNDS, max(1, first - 1))
    return UrlState(
        *(web.urls[number], web.host_keys[number], web.url_keys[number]),
        *(status[outcome.outcome] if outcome else "unfetched",),
        round_at(ROUNDS) + (1 + number % 700) * HOUR if seen else round_at(found_in),
        *(number.bit_length(), 0.5, web.urls[number // 2] if number else None),
        *(found_in, round_at(found_in), 1, int(seen), 0),
        last_outcome=outcome.outcome if outcome else None,
        last_reason=outcome.reason if outcome else None,
        duplicate_of=outcome.duplicate_of if outcome else None,
    )


class LargeCrawl:
    """Writes a crawl folder at ``root`` with ``count`` known URLs; WARC files, pages and links are left out."""

    def __init__(self, root: Path, count: int) -> None:
        self.folder = CrawlFolder.at(str(root))
        self.storage = self.folder.storage
        self.web = make_web(count)
        self.state: list[FileEntry] = []

    def make(self) -> None:
        """Write identity, tables and plans round by round, the state, and last the manifests."""
        self.folder.create(CrawlIdentity(FORMAT_VERSION, "bench", PARTITIONS, "bench"))
        tables_of = {
            number: [*self._captures(number), *self._duplicates(number)] for number in range(1, ROUNDS + 1)
        }
        self._state()
        for number in range(1, ROUNDS + 1):
            self._plan(number)
        for number, entries in tables_of.items():
            kept = self.state if number == ROUNDS else []
            self.folder.commit_manifest(self._manifest(number, [*entries, *kept]))

    def visited(self, number: int, partition: int) -> Iterator[int]:
        """Yield the URLs of a partition that a round visited: its first visits, and half as many second ones."""
        for member in np.flatnonzero(self.web.partitions == partition).tolist():
            first = self.web.first_round(member)
            if first == number or (number > 4 and first == number - 4 and member % 2):
                yield member

    def _captures(self, number: int) -> Iterator[FileEntry]:
        spec = RoundSpec(
            *(self.folder.root, "bench", "bench", PARTITIONS, "any", number, None, "", 0.0, 0.0, 0.0),
            flags=CrawlFlags(),
            attempt="",
        )
        for partition in range(PARTITIONS):
            members = list(self.visited(number, partition))
            rows = [outcome_of(self.web, m, number, self.web.first_round(m) == number) for m in members]
            rows += self._robots_rows(number, members)
            written = [records.capture_record(row, round_at(number) + 9e5, spec) for row in rows]
            yield self._table("captures", number, partition, f"part-{partition:04d}-bench", written)

    def _robots_rows(self, number: int, members: list[int]) -> Iterator[OutcomeRow]:
        """Yield the fetch of each host's robots.txt; once a day, as its copy expires, is once in these rounds."""
        hosts = {host_of(self.web.urls[m]): m for m in members if self.web.first_round(m) == number}
        for host, member in hosts.items():
            url = f"http://{host}/robots.txt"
            row = OutcomeRow(
                *(url, self.web.host_keys[member], 0, "robots", "fetched", None, None, url, 0, 0.0, None, 0)
            )
            yield _stored(row, number, round_at(number), member)._replace(subset="robotstxt")

    def _duplicates(self, number: int) -> Iterator[FileEntry]:
        lost = [m for p in range(PARTITIONS) for m in self.visited(number, p) if m % DUPLICATE_EVERY == 3]
        for segment in range(SEGMENTS):
            rows = [
                {
                    "url": self.web.urls[m],
                    "kept_url": self.web.urls[m - 1],
                    "kind": "exact",
                    "similarity": 1.0,
                }
                for m in lost[segment::SEGMENTS]
            ]
            yield self._table("duplicates", number, 0, f"part-0000-{segment:06d}-bench", rows)

    def _table(
        self, table: str, number: int, partition: int, name: str, rows: list[dict[str, Any]]
    ) -> FileEntry:
        path = layout.table_path(table, number, f"{name}.parquet")
        with self.storage.creating(path) as local:
            tables.write_table(Path(local), table, tables.table_from_rows(table, rows))
            with Path(local).open("rb") as written:
                digest, size = digest_of(written), written.tell()
        return FileEntry(path, "", table, partition, 0, len(rows), size, digest)

    def _state(self) -> None:
        for partition in range(PARTITIONS):
            members = np.flatnonzero(self.web.partitions == partition).tolist()
            states = [state_of(self.web, m) for m in members]
            tiers = np.array([0 if s.last_outcome else 1 << (n % 6) for n, s in enumerate(states)])
            self.state += calendar.write_slots(
                self.storage, partition, ROUNDS, states, round_at(ROUNDS), "bench", tiers=tiers
            )
            keys = {"k1": [s.host_key for s in states], "k2": [s.url_key for s in states]}
            columns = {name: np.array(values, dtype=np.uint64) for name, values in keys.items()}
            hosts = {host_of(s.url): s.host_key for s in states}
            self._run(SEEN, partition, pa.table(columns))
            rows = [
                HostState(name, key, registered_domain(name), urls_known=1) for name, key in hosts.items()
            ]
            self._run(HOSTS, partition, host_columns(rows))
            copies = [
                RobotsState(
                    *(authority_of(f"http://{name}/"), key, round_at(1), round_at(40), "rules", 200, None),
                    b"User-agent: *\nDisallow: /private\n",
                )
                for name, key in hosts.items()
            ]
            self._run(ROBOTS, partition, robots_columns(copies, UrlKeys("bench")))

    def _run(self, table: runs.RunTable, partition: int, rows: pa.Table) -> None:
        self.state.append(runs.write_run(self.storage, table, partition, ROUNDS, rows, token="bench"))

    def _plan(self, number: int) -> None:
        # Of older rounds the files that a plan names are swept.
        kept = range(PARTITIONS) if number > ROUNDS - KEPT_MANIFESTS else ()
        dues = tuple(self._due(number, partition) for partition in kept)
        plan = RoundPlan(
            *(
                FORMAT_VERSION,
                number,
                number - 1 or None,
                f"run{number}",
                round_at(number),
                round_at(number),
                HOUR,
            ),
            flags=CrawlFlags().to_json(),
            planned=sum(due.rows for due in dues),
            hosts=HOST_COUNT,
            left_out={"host_budget": 1000},
            cut_rank=None,
            cut_key=None,
            shards=(),
            due=dues,
            shard_of_group={str(group): 0 for group in range(1 << 16)},
            injected=(),
            policy_path="",
            scope_path="",
        )
        self.storage.write_new(layout.plan_path(number), sealed.seal(plan_document(plan)))

    def _due(self, number: int, partition: int) -> DueRef:
        left = [m for m in np.flatnonzero(self.web.partitions == partition).tolist() if m % 7 == 0]
        members = [*self.visited(number, partition), *(m for m in left if self.web.first_round(m) > ROUNDS)]
        states = [state_of(self.web, member) for member in members]
        table = rows_to_table(states, UrlState)
        verdicts = ["selected" if s.last_outcome else "host_budget" for s in states]
        table = table.append_column("rank", pa.array([float(n) for n in range(len(states))]))
        table = table.append_column("verdict", pa.array(verdicts))
        table = table.append_column("is_new", pa.array([False] * len(states))).cast(DUE_SCHEMA)
        hosts = {s.host_key: HostState(host_of(s.url), s.host_key, "") for s in states}
        paths = [
            layout.plan_file(number, f"{kind}-{partition:04d}-bench.parquet") for kind in ("due", "hosts")
        ]
        parts.write_table(self.storage, paths[0], table)
        parts.write_table(self.storage, paths[1], rows_to_table(list(hosts.values()), HostState))
        return DueRef(partition, *paths, len(states), [], "")

    def _manifest(self, number: int, files: list[FileEntry]) -> Manifest:
        at = datetime.fromtimestamp(round_at(number), UTC).isoformat()
        return Manifest(
            *(FORMAT_VERSION, number, f"run{number}", number - 1 or None, *[at] * 3, CrawlFlags().to_json()),
            *(100_000, {}, {"host_budget": 1000}, {}, [], files),
        )
