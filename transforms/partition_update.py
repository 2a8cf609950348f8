"""One partition after a round: old rows and outcomes in, the next calendar and the ledger out."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import calendar, parts
from connectors.rows import row_schema, rows_to_table, table_to_rows
from connectors.slots import deal_tiers
from crawler.budgets import round_quota
from crawler.price import change_of_cells
from crawler.ranks import within_cut
from crawler.recrawl import after
from crawler.urls import authority_of, host_of, registered_domain
from schemas.fetch import OutcomeRow
from schemas.round import DueRef, PartitionPart
from schemas.state import HostState, RobotsState, UrlState, UrlStatus
from transforms import planning, records
from transforms.compaction import Written, add_run
from transforms.gate.index import SKETCHES, index_update
from transforms.hosts import HostUpdate
from transforms.revisits import FIRST_ASKED, recrawl_policy
from transforms.state_tables import HOSTS, ROBOTS, host_columns, robots_columns
from transforms.view import RoundView

Key = tuple[int, int]


class PartitionUpdate:
    """Joins a partition's due rows, outcomes and new URLs, and writes what follows from them."""

    def __init__(
        self, view: RoundView, partition: int, dues: Sequence[DueRef], given: Sequence[PartitionPart]
    ) -> None:
        self.view, self.partition, self.dues = view, partition, dues
        self.policy = recrawl_policy(view)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.outcomes = self._rows(given, "outcomes", OutcomeRow)
        self.new = self._rows(given, "new", UrlState)
        self.hosts = HostUpdate(self._rows(given, "hosts", HostState), self.outcomes, self.new)
        self.robots = self._rows(given, "robots", RobotsState)
        self.expiry = {state.authority: state.expires_at for state in self.robots}
        self.states: dict[Key, UrlState] = {}
        self.known_before: list[UrlState] = []
        self.removed: list[dict[str, object]] = []
        self.left: list[Key] = []
        self.sketches = [
            parts.read_part(view.storage, part.path, part.row_group)
            for part in sorted(given)
            if part.kind == "sketches"
        ]

    def _rows(self, given: Sequence[PartitionPart], kind: str, row_type: type) -> list:
        chosen = sorted(part for part in given if part.kind == kind)
        storage = self.view.storage
        return [
            row
            for part in chosen
            for row in table_to_rows(parts.read_part(storage, part.path, part.row_group), row_type)
        ]

    def write(self) -> Written:
        """Write every table of the partition; return the files and the state files they replace."""
        planned, left, later = self._due_tables()
        hops = {(row.host_key, row.url_key): row for row in self.outcomes if row.kind == "hop"}
        self._settle_planned(table_to_rows(planned, UrlState))
        self._settle_hops(hops, table_to_rows(left, UrlState))
        left = _without(left, hops)
        written = self._write_calendar(left, _without(later, hops))
        host_run = add_run(self.view, HOSTS, self.partition, self._host_rows())
        robots_run = add_run(self.view, ROBOTS, self.partition, self._robots_rows())
        for name, change in change_of_cells(self.known_before, self.states.values(), self.policy).items():
            self.counts["revisits", name] = change
        kept = index_update(self.sketches, self.left, self.view.spec.partitions)
        sketch_run = add_run(self.view, SKETCHES, self.partition, kept)
        tables = [entry for entry in self._write_tables() if entry is not None]
        consumed = [path for due in self.dues for path in due.consumed]
        return Written(
            [*written, *host_run.files, *robots_run.files, *sketch_run.files, *tables],
            [*consumed, *host_run.replaced, *robots_run.replaced, *sketch_run.replaced],
        )

    def _due_tables(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        """Return the partition's rows: planned, left out by a budget, and not due yet."""
        empty = planning.DUE_SCHEMA.empty_table()
        storage = self.view.storage
        table = pa.concat_tables([empty, *(parts.read_whole(storage, due.path) for due in self.dues)])
        verdict = table.column("verdict")
        selected = pc.equal(verdict, "selected").to_numpy(zero_copy_only=False)
        later = pc.equal(verdict, planning.NOT_DUE).to_numpy(zero_copy_only=False)
        cut = planning.cut_of(self.view.plan)
        keys = table.column("url_key").to_numpy()
        planned = selected & within_cut(table.column("rank").to_numpy(), keys, cut)
        left = ~planned & ~later
        seeds = table.filter(table.column("is_new")).select(["host_key", "url"])
        for host_key, url in zip(*(column.to_pylist() for column in seeds.columns), strict=True):
            self.hosts.count_found(host_key, url)
        return tuple(table.filter(pa.array(mask)) for mask in (planned, left, later))  # type: ignore[return-value]

    def _settle_planned(self, planned: Sequence[UrlState]) -> None:
        rows = {(row.host_key, row.url_key): row for row in self.outcomes if row.kind == "planned"}
        wanted = {(state.host_key, state.url_key) for state in planned}
        if rows.keys() != wanted:
            missing, extra = len(wanted - rows.keys()), len(rows.keys() - wanted)
            raise ValueError(
                f"partition {self.partition}: {missing} planned URLs without an outcome, {extra} outcomes unplanned"
            )
        for state in planned:
            self._settle(state, rows[(state.host_key, state.url_key)])

    def _settle_hops(self, hops: dict[Key, OutcomeRow], left: Sequence[UrlState]) -> None:
        known = {(state.host_key, state.url_key): state for state in left}
        for key, row in sorted(hops.items()):
            if key in self.states:
                continue
            if key not in known:
                self.hosts.count_found(row.host_key, row.url)
            self._settle(known.get(key) or self._hop_state(row), row)

    def _hop_state(self, row: OutcomeRow) -> UrlState:
        spec = self.view.spec
        return UrlState(
            url=row.url,
            host_key=row.host_key,
            url_key=row.url_key,
            status=UrlStatus.UNFETCHED,
            next_fetch_at=spec.as_of,
            depth=row.depth,
            priority=row.priority,
            discovered_from=row.planned_url,
            discovered_round=spec.round,
            discovered_at=spec.as_of,
        )

    def _settle(self, before: UrlState, row: OutcomeRow) -> None:
        spec = self.view.spec
        # A moved as_of moves the whole timeline of visits with it.
        shift = spec.as_of - self.view.plan.planned_at
        moved = row._replace(
            finished_at=None if row.finished_at is None else max(spec.as_of, row.finished_at + shift),
            retry_after_at=None if row.retry_after_at is None else row.retry_after_at + shift,
        )
        expires_at = self.expiry.get(authority_of(row.url))
        changed = row.changed if before.visits else None
        state = after(
            before,
            moved,
            changed,
            self.policy,
            spec.as_of,
            None if expires_at is None else expires_at + shift,
        )
        state = _with_content(before, state, row)
        if state.was_asked and not before.was_asked:
            self.hosts.count_first(row.host_key)
            self.counts["counter", FIRST_ASKED] += 1
        self.known_before.append(before)
        if before.in_pages and not state.in_pages:
            reason = row.reason or row.outcome
            self.removed.append({"url": row.url, "reason": reason, "removed_at": spec.as_of})
            self.left.append((row.host_key, row.url_key))
        self.states[(row.host_key, row.url_key)] = state

    def _write_calendar(self, left: pa.Table, later: pa.Table) -> list:
        columns = row_schema(UrlState).names
        settled = rows_to_table([*self.states.values(), *self.new], UrlState)
        rows = pa.concat_tables([settled, later.select(columns), left.select(columns)])
        if not rows.num_rows:
            return []
        tiers = np.zeros(rows.num_rows, dtype=np.int64)
        if left.num_rows:
            tiers[-left.num_rows :] = self._tiers(left)
        spec = self.view.spec
        return calendar.write_slots(
            self.view.storage,
            self.partition,
            spec.round,
            rows,
            spec.as_of,
            secrets.token_hex(4),
            tiers=tiers,
        )

    def _tiers(self, left: pa.Table) -> np.ndarray:
        """Return each left-out row's backlog tier: how many rounds its turn is away, in powers of two."""
        order = np.lexsort((left.column("url_key").to_numpy(), left.column("rank").to_numpy()))
        hosts = left.column("host_key").to_numpy()[order]
        policy = planning.frontier_policy(self.view)
        quotas: dict[int, float] = {}
        for key, url in zip(left.column("host_key").to_pylist(), left.column("url").to_pylist(), strict=True):
            if key not in quotas:
                name = host_of(url)
                state = self.hosts.state(key) or HostState(name, key, registered_domain(name))
                quotas[key] = round_quota(state, self.view.policy.rules_for(name), policy, 0.0)
        limits = np.array([quotas[key] for key in hosts.tolist()], dtype=np.float64)
        tiers = np.empty(left.num_rows, dtype=np.int64)
        tiers[order] = deal_tiers(hosts, limits, planning.share_of(self.view, self.partition))
        return tiers

    def _host_rows(self) -> pa.Table | None:
        entries = self.view.entries(HOSTS.name, self.partition)
        rows = self.hosts.updated(self.view.storage, entries)
        return host_columns(rows) if rows else None

    def _robots_rows(self) -> pa.Table | None:
        newest = {state.authority: state for state in self.robots}
        return robots_columns(list(newest.values()), self.view.keys) if newest else None

    def _write_tables(self) -> Iterator[object]:
        name = f"part-{self.partition:04d}"
        captures = [self._capture(row) for row in self.outcomes]
        for row in captures:
            if row["kind"] == "planned":
                self.counts["outcome", f"{row['outcome']}/{row['reason'] or row['outcome']}"] += 1
            else:
                self.counts["counter", f"{row['kind']}_fetches"] += 1
        yield self.view.stage_table("captures", name, captures, self.partition)
        yield self.view.stage_table("hosts", name, records.host_records(self.hosts.asked), self.partition)
        yield self.view.stage_table("removed", name, self.removed, self.partition)

    def _capture(self, row: OutcomeRow) -> dict[str, object]:
        state = self.states.get((row.host_key, row.url_key))
        if row.kind != "robots" and state is not None and state.last_outcome and row.outcome != "deferred":
            row = row._replace(outcome=state.last_outcome)
        next_fetch_at = state.next_fetch_at if state is not None and row.kind != "robots" else None
        return records.capture_record(row, next_fetch_at, self.view.spec)


def _with_content(before: UrlState, state: UrlState, row: OutcomeRow) -> UrlState:
    """Return the row with the identity of the content that the crawl now holds of the URL."""
    if row.outcome in ("failed_retry", "deferred", "robots_denied"):
        return state
    if row.outcome == "not_modified":
        kept_hash = row.content_hash or before.content_hash
        return state._replace(content_hash=kept_hash, in_pages=before.in_pages)
    state = state._replace(
        in_pages=row.in_pages, content_hash=row.content_hash, duplicate_of=row.duplicate_of
    )
    if row.status == 200 and row.truncated is None and row.payload_digest and row.body_bytes:
        return state._replace(
            original_url=row.original_url or row.url,
            original_date=row.original_date or row.warc_date,
            original_record_id=row.original_record_id or row.record_id,
            original_filename=row.body_filename,
            original_offset=row.body_offset,
            original_length=row.body_length,
        )
    return state._replace(payload_digest=None, original_url=None)


def _without(rows: pa.Table, keys: Iterable[Key]) -> pa.Table:
    """Return the rows whose URL is not among the keys."""
    drop = set(keys)
    if not drop or not rows.num_rows:
        return rows
    pairs = zip(rows.column("host_key").to_pylist(), rows.column("url_key").to_pylist(), strict=True)
    return rows.filter(pa.array([pair not in drop for pair in pairs]))
