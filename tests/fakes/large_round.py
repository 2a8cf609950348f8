"""A committed round of any size without a crawl: tables and calendar as a busy hour of the Web would leave them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import calendar, layout, tables
from connectors.files import digest_of
from connectors.rounds import CrawlFolder
from connectors.rows import row_schema
from schemas.crawl import CrawlIdentity
from schemas.flags import CrawlFlags
from schemas.manifest import FORMAT_VERSION, FileEntry, Manifest
from schemas.state import UrlState

START_AT = 1_790_000_000.0
ROUND_SECONDS = 3_600.0
PARTITIONS = 8
REASONS = (
    ("fetched", None, 0.46),
    ("not_modified", "http_304", 0.10),
    ("not_modified", "same_payload", 0.12),
    ("not_modified", "same_text", 0.02),
    ("redirected", "redirect_followed", 0.05),
    ("redirected", "redirect_queued", 0.03),
    ("duplicate", "exact_duplicate", 0.05),
    ("duplicate", "near_duplicate", 0.06),
    ("excluded", "noindex", 0.01),
    ("excluded", "unsupported_type", 0.02),
    ("gone", "http_404", 0.05),
    ("gone", "http_403", 0.01),
    ("failed_retry", "http_503", 0.005),
    ("failed_retry", "timeout", 0.01),
    ("failed_retry", "dns_failure", 0.005),
)
TYPES = ("text/html", "text/plain", "application/pdf", "image/jpeg", "application/json", "text/xml", None)
TYPE_SHARES = (0.86, 0.03, 0.05, 0.02, 0.015, 0.02, 0.005)


class LargeRound:
    """Columns of a round's captures: hosts by a power law, a pause after each request, a deadline."""

    def __init__(self, urls: int, hosts: int, seed: int = 1) -> None:
        self.random = np.random.default_rng(seed)
        self.urls = urls
        weights = 1.0 / np.arange(1, hosts + 1) ** 0.75
        self.host = np.sort(self.random.choice(hosts, size=urls, p=weights / weights.sum()))
        first = np.searchsorted(self.host, np.arange(hosts))
        place = np.arange(urls) - first[self.host]
        delays = self.random.choice([1.0, 2.0, 5.0, 10.0], size=hosts, p=[0.5, 0.25, 0.2, 0.05])
        latency = self.random.lognormal(-1.2, 0.8, size=hosts)
        self.delay = delays[self.host]
        self.millis = np.clip(
            latency[self.host] * self.random.lognormal(0, 0.5, size=urls) * 1000, 3, 110_000
        )
        begins = self.random.exponential(120.0, size=hosts)[self.host]
        self.started = begins + place * (self.delay + latency[self.host])
        is_late = self.started > ROUND_SECONDS
        choice = self.random.choice(len(REASONS), size=urls, p=[share for _, _, share in REASONS])
        is_closed = (self.random.random(hosts) < 0.03)[self.host]
        outcomes = np.array([outcome for outcome, _, _ in REASONS], dtype=object)[choice]
        reasons = np.array([reason for _, reason, _ in REASONS], dtype=object)[choice]
        self.outcome = np.where(is_closed, "robots_denied", np.where(is_late, "deferred", outcomes))
        self.reason = np.where(is_closed, "robots_rule", np.where(is_late, "round_deadline", reasons))
        self.asked = ~(is_closed | is_late)

    def captures(self) -> pa.Table:
        """Return the captures table of the round, sorted by host."""
        number = pa.array(np.arange(self.urls)).cast(pa.string())
        host = pc.binary_join_element_wise("www.site-", pa.array(self.host).cast(pa.string()), ".example", "")
        path = pc.binary_join_element_wise("/page/", number, "")
        is_stored = self.asked & np.isin(
            self.outcome.astype(str), ["fetched", "not_modified", "duplicate", "excluded"]
        )
        length = np.clip(self.random.lognormal(9.3, 1.1, self.urls), 400, 5_000_000).astype(np.int64)
        detected = pa.array(self.random.choice(np.array(TYPES, dtype=object), self.urls, p=TYPE_SHARES))
        columns = {
            "url_surtkey": pc.binary_join_element_wise(host, path, ")"),
            "url": pc.binary_join_element_wise("https://", host, path, ""),
            "url_host_name": host,
            "url_protocol": pa.repeat("https", self.urls),
            "url_path": path,
            "crawl": pa.repeat("large", self.urls),
            "kind": pa.repeat("planned", self.urls),
            "outcome": pa.array(self.outcome.astype(str)),
            "reason": pa.array(self.reason, pa.string()),
            "depth": pa.array(np.minimum(self.random.poisson(3.2, self.urls), 14)),
            "priority": pa.array(np.full(self.urls, 0.5)),
            "retries": pa.array(np.zeros(self.urls, dtype=np.int64)),
            "host_delay_seconds": pa.array(self.delay),
            "fetch_millis": _where(self.asked, self.millis.astype(np.int64)),
            "started_at": _instants(self.asked, START_AT + self.started),
            "finished_at": _instants(self.asked, START_AT + self.started + self.millis / 1000),
            "subset": pa.array(np.where(is_stored, "warc", "crawldiagnostics")),
            "warc_record_length": _where(self.asked, length),
            "content_mime_detected": detected,
            "content_mime_type": pc.if_else(
                pa.array(self.random.random(self.urls) < 0.04), "text/html", detected
            ),
            "content_truncated": pa.array(
                np.where(self.random.random(self.urls) < 0.002, "length", None), pa.string()
            ),
            "robots_rule": pa.array(np.where(self.reason == "robots_rule", "Disallow: /", None), pa.string()),
        }
        schema = tables.arrow_schema("captures")
        arrays = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(self.urls, field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)

    def outcomes(self) -> dict[str, dict[str, int]]:
        """Return the counts of the manifest."""
        counted: dict[str, dict[str, int]] = {}
        pairs, counts = np.unique(
            [
                f"{outcome}/{reason or outcome}"
                for outcome, reason in zip(self.outcome, self.reason, strict=True)
            ],
            return_counts=True,
        )
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            outcome, _, reason = pair.partition("/")
            counted.setdefault(outcome, {})[reason] = count
        return counted

    def states(self, known: int) -> pa.Table:
        """Return calendar rows of so many known URLs."""
        random = self.random
        is_visited = random.random(known) < 0.55
        age_days = random.exponential(12.0, known)
        interval = np.clip(random.lognormal(2.6, 1.0, known), 0.05, 90)
        now = START_AT
        next_at = np.where(
            is_visited,
            np.maximum(now - age_days * 86_400 + interval * 86_400, now + random.exponential(7_200, known)),
            np.where(random.random(known) < 0.7, now, now + random.exponential(86_400, known)),
        )
        visits = np.where(is_visited, random.poisson(4.0, known) + 1, 0)
        columns = {
            "url": pc.binary_join_element_wise(
                "https://www.site.example/", pa.array(np.arange(known)).cast(pa.string()), ""
            ),
            "host_key": pa.array(random.integers(0, 1 << 63, known).astype(np.uint64)),
            "url_key": pa.array(np.arange(known, dtype=np.uint64)),
            "status": pa.array(np.where(is_visited, "fetched", "unfetched")),
            "next_fetch_at": pa.array(next_at),
            "priority": pa.array(np.clip(random.beta(3, 3, known), 0, 1)),
            "depth": pa.array(random.poisson(3.2, known)),
            "discovered_round": pa.array(np.ones(known, dtype=np.int64)),
            "discovered_at": pa.array(np.full(known, now)),
            "visits": pa.array(visits),
            "changes": pa.array(random.binomial(np.maximum(visits - 1, 0), 0.15)),
            "last_visit_at": _where(is_visited, now - age_days * 86_400),
            "in_pages": pa.array(is_visited),
        }
        schema = row_schema(UrlState)
        arrays = [
            columns[field.name].cast(field.type)
            if field.name in columns
            else (pa.nulls(known, field.type) if field.nullable else _zeros(known, field.type))
            for field in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def write_round(root: Path, urls: int, hosts: int, known: int, seed: int = 1) -> CrawlFolder:
    """Make a crawl whose third and newest round has so many URLs on so many hosts; return its folder."""
    folder = CrawlFolder.at(str(root))
    folder.create(CrawlIdentity(FORMAT_VERSION, "large", PARTITIONS, "salt"))
    made = LargeRound(urls, hosts, seed)
    files = [*_captures(folder, made), *_smaller(folder, made)]
    rows = made.states(known)
    for partition, part in enumerate(np.array_split(np.arange(known), PARTITIONS)):
        files += calendar.write_slots(
            folder.storage, partition, 3, rows.take(part), START_AT, f"{partition:04x}"
        )
    for number in (1, 2, 3):
        folder.commit_manifest(_manifest(number, made if number == 3 else None, files if number == 3 else []))
    return folder


def _captures(folder: CrawlFolder, made: LargeRound) -> list[FileEntry]:
    rows = made.captures()
    bounds = np.searchsorted(made.host, np.arange(0, made.host[-1] + 2, made.host[-1] // PARTITIONS + 1))
    ends = [*bounds.tolist(), rows.num_rows]
    return [
        _table(folder, "captures", rows.slice(start, end - start), number)
        for number, (start, end) in enumerate(pairwise(ends))
        if end > start
    ]


def _smaller(folder: CrawlFolder, made: LargeRound) -> list[FileEntry]:
    random, near = made.random, int((made.reason == "near_duplicate").sum())
    exact = int((made.reason == "exact_duplicate").sum())
    similarity = [*np.clip(random.beta(4, 2, near) * 0.2 + 0.8, 0.8, 1).tolist(), *[1.0] * exact]
    urls = [f"https://www.copies.example/{number}" for number in range(near + exact)]
    copies = {
        "url": urls,
        "kept_url": ["https://www.site-0.example/"] * len(urls),
        "kind": ["near"] * near + ["exact"] * exact,
        "similarity": similarity,
    }
    hosts = sorted({int(host) for host in made.host})
    names = [f"www.site-{host}.example" for host in hosts]
    statuses = random.choice(
        np.array([200, 404, 403, 503, None], dtype=object), len(hosts), p=[0.6, 0.34, 0.02, 0.02, 0.02]
    )
    asked = {
        "host": names,
        "registered_domain": names,
        "failures": [0] * len(hosts),
        "robots_fetched_at": [START_AT] * len(hosts),
        "robots_status": statuses.tolist(),
    }
    return [
        _table(folder, "duplicates", tables.table_from_columns("duplicates", copies), 0),
        _table(folder, "hosts", tables.table_from_columns("hosts", asked), 0),
    ]


def _table(folder: CrawlFolder, table: str, rows: pa.Table, partition: int) -> FileEntry:
    path = layout.table_path(table, 3, f"part-{partition:04d}.parquet")
    with folder.storage.creating(path) as local:
        tables.write_table(Path(local), table, rows)
        size = Path(local).stat().st_size
        with Path(local).open("rb") as written:
            digest = digest_of(written)
    return FileEntry(path, "", table, partition, 0, rows.num_rows, size, digest)


def _manifest(number: int, made: LargeRound | None, files: list[FileEntry]) -> Manifest:
    outcomes = made.outcomes() if made else {"fetched": {"fetched": 100}}
    planned = sum(count for reasons in outcomes.values() for count in reasons.values())
    return Manifest(
        format_version=FORMAT_VERSION,
        round=number,
        run_id=f"large-{number}",
        parent=number - 1 or None,
        as_of=f"2026-09-21T{10 + number}:13:20Z",
        started_at=f"2026-09-21T{10 + number}:13:20Z",
        committed_at=f"2026-09-21T{11 + number}:21:44Z",
        flags=CrawlFlags(contact="https://crawler.example/about").to_json(),
        planned=planned,
        outcomes=outcomes,
        left_out={"round_budget": planned * 3, "host_budget": planned // 2, "host_backoff": 17}
        if made
        else {},
        counters={
            "bytes_fetched": planned * 61_000,
            "links_found": planned * 40,
            "urls_new": planned * 4,
            "links_rejected/nofollow": planned,
            "links_rejected/excluded_extension": planned // 2,
            "links_rejected/trap_repeating_path": planned // 30,
        },
        injected=[],
        files=files,
    )


def _where(chosen: np.ndarray, values: np.ndarray) -> pa.Array:
    return pa.array(values, mask=~chosen)


def _instants(chosen: np.ndarray, seconds: np.ndarray) -> pa.Array:
    return _where(chosen, np.round(seconds * 1e6).astype(np.int64)).cast(pa.timestamp("us", tz="UTC"))


def _zeros(rows: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar("" if pa.types.is_string(kind) else 0).cast(kind), rows)
