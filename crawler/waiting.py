"""The visits of a shard that wait: in their host's queue, or for a robots.txt; and the hosts that are closed."""

from __future__ import annotations

from collections.abc import Iterable

from crawler.hostbook import HostBook
from crawler.ledger import Ledger
from crawler.outcomes import DEFERRED
from crawler.robotsbook import UNREACHABLE, RobotsBook, denial_of
from crawler.urls import authority_of
from crawler.visit import ROBOTS, Visit
from crawler.workbench import Workbench
from schemas.state import RobotsState


class WaitingVisits:
    """Moves visits between the workbench, the robots.txt they wait for, and their end in the ledger.

    ``seated`` are the hosts that the workbench knows the clock of. Once ``stopping`` is set, no host is closed
    any more and what waits gets no row: a later session takes it up.
    """

    def __init__(
        self,
        bench: Workbench[Visit],
        hosts: HostBook,
        robots: RobotsBook,
        ledger: Ledger,
        seated: Iterable[str],
        deadline_at: float,
    ) -> None:
        self._bench, self._hosts, self._robots, self._ledger = bench, hosts, robots, ledger
        self._seated = set(seated)
        self._deadline_at = deadline_at
        self.closed: dict[str, tuple[str, str]] = {}
        """Hosts that are asked nothing more in this session: outcome and reason of what comes for them."""
        self.stopping = False
        for host in seated:
            self.close_if_late(host)

    def hosts(self) -> set[str]:
        """Return the hosts with a visit that waits."""
        return self._bench.hosts() | self._robots.hosts_waiting()

    def enqueue(self, visit: Visit) -> None:
        """Put a visit ahead of its host's others, or end it if the host is closed."""
        if visit.host in self.closed and not self.stopping:
            self.drop(visit, *self.closed[visit.host])
            return
        if visit.host not in self._seated:
            self._seated.add(visit.host)
            self._bench.rest(visit.host, self._hosts.ready_at(visit.host))
        self._bench.add_first(visit.host, visit)

    def resume(self, authority: str, now: float) -> None:
        """Put the visits that waited for a robots.txt back, ahead of their hosts' others, in order."""
        state = self._robots.fresh(authority, now)
        rules = self._robots.rules(state) if state is not None else None
        for visit in reversed(self._robots.release(authority)):
            if rules is not None:
                self._hosts.hear_crawl_delay(visit.host, rules.crawl_delay_seconds)
            self.enqueue(visit)

    def deny(self, host: str, authority: str, state: RobotsState) -> None:
        """End all that waits for an authority which denies everything, at once: the host may rest long now."""
        others = []
        for visit in [*self._robots.release(authority), *self._bench.drain(host)]:
            if visit.kind != ROBOTS and authority_of(visit.url) == authority:
                self._ledger.settle(visit, *denial_of(state), detail=state.reason)
            else:
                others.append(visit)
        for visit in reversed(others):
            self.enqueue(visit)

    def drop(self, visit: Visit, outcome: str, reason: str) -> None:
        """End a visit without a request, and with a robots.txt what waits for it."""
        if visit.kind == ROBOTS:
            why = reason if outcome == DEFERRED else UNREACHABLE
            for waiting in self._robots.bar(visit.authority, why):
                self._ledger.settle(waiting, DEFERRED, why)
        else:
            self._ledger.settle(visit, outcome, reason)

    def close(self, host: str, outcome: str, reason: str) -> None:
        """Ask a host nothing more; what waits for it gets its row."""
        if self.stopping:
            return
        self.closed[host] = outcome, reason
        for visit in [*self._robots.release_host(host), *self._bench.drain(host)]:
            self.drop(visit, outcome, reason)

    def close_if_late(self, host: str) -> None:
        """Close a host that may not be asked before the deadline."""
        if self._hosts.ready_at(host) >= self._deadline_at:
            state = self._hosts.state(host)
            backing_off = state.backoff_count > 0 and (state.not_before_at or 0.0) >= self._deadline_at
            self.close(host, DEFERRED, "host_backoff" if backing_off else "round_deadline")
