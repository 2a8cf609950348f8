"""One shard on the real clock: a session's decisions carried out by a pool of downloading threads."""

from __future__ import annotations

import logging
import queue
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from connectors import layout, runs
from connectors.clock import Clock, SystemClock
from connectors.delay_notes import DelayNotes
from connectors.encoding import decode_body
from connectors.faults import LeaseLost
from connectors.http import HttpFetcher
from connectors.lease import LeaseKeeper, shard_lease
from connectors.pacer import Postponed
from crawler.redirects import open_chains
from crawler.robots import MAX_BODY_BYTES
from crawler.session import ShardSession
from crawler.urls import host_of, partition_of
from crawler.visit import ROBOTS, Ask, FetchPolicy, Finished, Reply, Settled, Wait, reply_of
from schemas.fetch import Capture, FetchFailure, OutcomeRow
from schemas.journal import JournalEntry
from schemas.round import ListPart, SegmentRef
from transforms.admission import redirect_gate
from transforms.fetcher import exempt_addresses, shared_fetcher
from transforms.orders import OperatorOrders
from transforms.recording import recorded_rows
from transforms.segment import KnownPayloads, SegmentRecorder
from transforms.shard_start import heed, start_of
from transforms.view import RoundStopped, RoundView

POLL_SECONDS = 1.0
SEGMENT_BYTES = 256_000_000
CUT_SECONDS = 10.0
LOCK_WAIT_SECONDS = 30.0

log = logging.getLogger(__name__)


class _Answer(NamedTuple):
    ask: Ask
    answer: Capture | FetchFailure | Postponed


class ShardRun:
    """Runs one shard to its end, its deadline or a stop. `segments` yields what is safe, as it becomes safe."""

    def __init__(
        self,
        view: RoundView,
        shard: int,
        given: Sequence[ListPart],
        fetcher: HttpFetcher | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.view, self.shard, self.given = view, shard, given
        self.flags = view.spec.flags
        self.clock = clock or SystemClock()
        self.fetcher = fetcher or shared_fetcher(self.flags)
        self.attempt = secrets.token_hex(4)
        self.notes = DelayNotes(view.folder, view.spec.round, shard)
        self.answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        self.payloads = KnownPayloads()
        self.in_hand = 0
        self.bytes = 0
        self.is_cut = False

    def segments(self) -> Iterator[SegmentRef]:
        """Yield every journal entry of the shard: those of earlier attempts first, then this one's."""
        spec = self.view.spec
        self.lease = shard_lease(
            self.view.folder, spec.round, self.shard, self.clock, self.flags.lease_seconds
        )
        self.lease.acquire(LOCK_WAIT_SECONDS)
        try:
            earlier = self.view.journal(self.shard).entries()
            for entry in earlier:
                path = layout.journal_path(spec.round, self.shard, entry.segment)
                yield SegmentRef(self.shard, entry.segment, path)
            if earlier and earlier[-1].is_last:
                return
            self._open_session(earlier, self._mark_start())
            with LeaseKeeper(self.lease, self._progress, self.clock) as self.keeper:
                self._log("start")
                yield from self._work(len(earlier) + 1)
                self._log("end")
        finally:
            self.lease.release()

    def _progress(self) -> dict[str, int]:
        return self.session.progress()._asdict() | {"bytes": self.bytes}

    def _log(self, what: str) -> None:
        log.info("round %d shard %d: %s, %s", self.view.spec.round, self.shard, what, self.session.progress())

    def _mark_start(self) -> bool:
        """Leave a mark of this attempt and return whether an earlier one may have asked hosts already."""
        folder = layout.journal_folder(self.view.spec.round, self.shard)
        is_takeover = bool(self.view.storage.list(f"{folder}started-"))
        self.view.storage.write_new(f"{folder}started-{self.attempt}.json", b"{}")
        return is_takeover

    def _open_session(self, earlier: Sequence[JournalEntry], is_takeover: bool) -> None:
        start = start_of(self.view, self.given, earlier)
        if is_takeover:
            heed(self.notes, self.view, start.hosts)
        now = self.clock.now()
        self.items = {state.url: state for state in start.items}
        self.probes: dict[int, runs.KeyProbe] = {}
        self.orders = OperatorOrders(self.view, self.flags.checkpoint_seconds)
        self.session = ShardSession(
            start.items,
            start.hosts,
            start.robots,
            self.view.policy.rules_for,
            FetchPolicy.from_flags(self.flags, exempt_addresses(self.flags)),
            self.view.spec.deadline_at,
            now,
            f"{self.view.spec.salt}/{self.view.spec.round}",
            self.view.keys,
            first_request_after=now if is_takeover else None,
            done={row.url for row in start.rows if row.kind != ROBOTS},
            chains=open_chains(start.rows),
            known=self._is_known,
            admits=redirect_gate(self.view),
        )

    def _is_known(self, url: str) -> bool:
        """Return whether URL-seen holds a redirect's target: it has a visit of its own to wait for."""
        host_key = self.view.keys.host_key(host_of(url))
        partition = partition_of(host_key, self.view.spec.partitions)
        if partition not in self.probes:
            entries = self.view.entries("seen", partition)
            self.probes[partition] = runs.KeyProbe(self.view.storage, entries)
        return self.probes[partition].contains(host_key, self.view.keys.url_key(url))

    def _work(self, number: int) -> Iterator[SegmentRef]:
        recorder = self._open_segment(number)
        pool = ThreadPoolExecutor(self.flags.fetch_concurrency, thread_name_prefix=f"fetch-{self.shard}")
        is_over = False
        try:
            while not is_over:
                is_over = self._step(pool, recorder)
                if is_over or self._must_close(recorder):
                    yield self._close(recorder, is_over and self.orders.stopped_at is None)
                    recorder = self._open_segment(recorder.number + 1)
        finally:
            # What is in hand ends before the lease does: whoever comes next may ask the same hosts.
            pool.shutdown(wait=True, cancel_futures=True)
            recorder.discard()
            for probe in self.probes.values():
                probe.close()
        if self.orders.stopped_at is not None:
            raise RoundStopped(f"round {self.view.spec.round} was stopped")

    def _open_segment(self, number: int) -> SegmentRecorder:
        self.opened_at = self.clock.now()
        return SegmentRecorder(self.view, self.shard, number, self.opened_at, self.attempt)

    def _must_close(self, recorder: SegmentRecorder) -> bool:
        limit = min(SEGMENT_BYTES, self.flags.warc_max_bytes)
        age = self.clock.now() - self.opened_at
        return not recorder.is_empty and (
            age >= self.flags.checkpoint_seconds or recorder.size_bytes >= limit
        )

    def _close(self, recorder: SegmentRecorder, is_last: bool) -> SegmentRef:
        if not self.lease.holds(self.clock.monotonic(), 0.0):
            raise LeaseLost(f"another attempt may hold shard {self.shard}; this one records nothing more")
        hosts, robots = self.session.changed_hosts(), self.session.changed_robots()
        segment = recorder.close(hosts, robots, self.clock.now(), is_last)
        self._log(f"checkpoint {segment.segment}")
        return segment

    def _step(self, pool: ThreadPoolExecutor, recorder: SegmentRecorder) -> bool:
        """Hand out what may be asked now, take in what came back; return whether the shard is done."""
        self._mind_the_operator(recorder)
        wake_at = self._hand_out(pool, recorder)
        if wake_at is None:
            return True
        timeout = min(POLL_SECONDS, max(0.0, wake_at - self.clock.now()))
        try:
            self._take_in(self.answers.get(timeout=timeout or 0.001), recorder)
            while True:
                self._take_in(self.answers.get_nowait(), recorder)
        except queue.Empty:
            pass
        return False

    def _hand_out(self, pool: ThreadPoolExecutor, recorder: SegmentRecorder) -> float | None:
        """Start every download that may start; return when to look again, None when all is done."""
        while self.in_hand < self.flags.fetch_concurrency:
            if self.keeper.lost.is_set():
                raise LeaseLost(f"another attempt may hold shard {self.shard}; this one asks nothing more")
            if not self.lease.holds(self.clock.monotonic(), self.flags.fetch_timeout_seconds):
                # The store did not answer for a while: nothing is asked until the lease is renewed, or lost.
                return self.clock.now() + POLL_SECONDS
            action = self.session.next_action(self.clock.now())
            if isinstance(action, Finished):
                return None
            if isinstance(action, Wait):
                return float("inf") if action.until is None else action.until
            if isinstance(action, Settled):
                recorder.rows += self._completed(action.rows)
                continue
            self.in_hand += 1
            pool.submit(self._download, action)
        return float("inf")

    def _download(self, ask: Ask) -> None:
        # Whatever happens in this thread must reach the loop, which would wait for ever otherwise.
        now = self.clock.now()
        answer: Capture | FetchFailure | Postponed = FetchFailure(
            ask.request.url, "local_error", "", now, now
        )
        try:
            if ask.untold_delay_seconds is not None:
                host_key = self.view.keys.host_key(ask.host)
                self.notes.leave(ask.host, host_key, ask.untold_delay_seconds)
            answer = self.fetcher.fetch(ask.request)
        finally:
            self.answers.put(_Answer(ask, answer))

    def _take_in(self, answered: _Answer, recorder: SegmentRecorder) -> None:
        self.in_hand -= 1
        ask, answer = answered
        now = self.clock.now()
        if isinstance(answer, Postponed):
            self.session.postpone(ask.ticket, answer.ip, now + answer.seconds, now)
            return
        if self.is_cut and (isinstance(answer, FetchFailure) or answer.truncated is not None):
            self.session.abandon(ask.ticket, now)
            return
        rows = self._completed(self.session.finish(ask.ticket, self._reply(ask, answer), now))
        recorder.rows += recorded_rows(recorder, self.payloads, self.items, ask, answer, rows)
        self.bytes += len(answer.body) if isinstance(answer, Capture) else 0

    @staticmethod
    def _reply(ask: Ask, answer: Capture | FetchFailure) -> Reply:
        if isinstance(answer, FetchFailure) or ask.kind != ROBOTS:
            return reply_of(answer)
        coding = ",".join(v for k, v in answer.response_headers if k.lower() == "content-encoding")
        return reply_of(answer, decode_body(answer.body, coding, MAX_BODY_BYTES + 1).data)

    def _completed(self, rows: Sequence[OutcomeRow]) -> list[OutcomeRow]:
        """Return the rows with what the crawl knew of their URL before."""
        completed = []
        for row in rows:
            state = self.items.get(row.url) if row.kind != ROBOTS else None
            if state is not None:
                row = row._replace(
                    visits=state.visits,
                    previous_content_hash=state.content_hash,
                    previous_status=state.status,
                )
            completed.append(row)
        return completed

    def _mind_the_operator(self, recorder: SegmentRecorder) -> None:
        """Obey new exclusions within one checkpoint interval, and a stop at once."""
        now = self.clock.now()
        rules = self.orders.new_rules(now)
        if rules is not None:
            recorder.rows += self._completed(self.session.use_rules(rules.rules_for, now))
        if self.orders.is_stopping(now):
            self.session.stop()
            if not self.is_cut and now - (self.orders.stopped_at or now) > CUT_SECONDS:
                self.is_cut = True
                self.fetcher.cut()
