"""One shard's fetching as a pure state machine: what to ask next, and what each answer means.

The worker, the tests and the planner run this same class; only the clock and the network differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from crawler.hostbook import HostBook, RulesOf
from crawler.ledger import Ledger
from crawler.outcomes import (
    DEFERRED,
    EXCLUDED,
    HOST_REFUSALS,
    REDIRECTED,
    REFUSALS,
    ROBOTS_DENIED,
    Judgement,
    is_host_failure,
    judge,
)
from crawler.redirects import redirect_of
from crawler.robots import DENY
from crawler.robotsbook import UNREACHABLE, RobotsBook, denial_of
from crawler.seating import seat
from crawler.urls import UrlKeys, authority_of
from crawler.visit import (
    PLANNED,
    ROBOTS,
    Action,
    Ask,
    FetchPolicy,
    Finished,
    Flight,
    Progress,
    Reply,
    Settled,
    Visit,
    Wait,
    request_for,
)
from schemas.fetch import OutcomeRow
from schemas.state import HostState, RobotsState, UrlState


class ShardSession:
    """Decides every request of one shard. Call ``next_action`` until Finished, ``finish`` for each Ask.

    ``items`` are the planned URLs, ``hosts`` and ``robots`` what the crawl remembers of their hosts and
    authorities (any may lack), ``rules_of`` the operator's rules of a host. No request starts at or after
    ``deadline_at``. After a takeover: ``first_request_after`` (see HostBook), ``done`` URLs that the journal
    records, ``chains`` from ``open_chains``. ``known`` says whether the crawl knows a URL already, ``admits``
    whether its scope lets a redirect's target in.

    Guarantees, whatever the replies: requests to one host never overlap and keep its delay, counted from the
    end of the last one; robots.txt is asked for first and obeyed; each planned URL gets exactly one row of
    kind planned, no URL is asked twice; equal inputs and replies give equal actions. ``now`` never decreases.
    """

    def __init__(
        self,
        items: Iterable[UrlState],
        hosts: Mapping[str, HostState],
        robots: Mapping[str, RobotsState],
        rules_of: RulesOf,
        policy: FetchPolicy,
        deadline_at: float,
        now: float,
        seed: str,
        keys: UrlKeys,
        *,
        first_request_after: float | None = None,
        done: Collection[str] = (),
        chains: Mapping[str, tuple[str, ...]] | None = None,
        known: Callable[[str], bool] = lambda url: False,
        admits: Callable[[str], bool] = lambda url: True,
    ) -> None:
        self.deadline_at = deadline_at
        self._policy, self._known, self._admits = policy, known, admits
        self._hosts = HostBook(hosts, rules_of, policy, keys, first_request_after)
        self._robots = RobotsBook(robots, policy.user_agent, policy.robots_ttl_hours, keys)
        self._closed: dict[str, tuple[str, str]] = {}
        self._flights: dict[int, Flight] = {}
        self._tickets, self._stopping, self._now = 0, False, now
        seating = seat(items, self._hosts, policy, seed, set(done), chains or {})
        self._bench, self._taken, self._planned = seating.bench, seating.taken, seating.planned
        self._ledger = Ledger(keys, seating.done)
        self._seated = set(seating.hosts)
        for host in seating.hosts:
            self._close_if_late(host)

    def next_action(self, now: float) -> Action:
        """Return the one thing to do now: Ask, Settled, Wait or Finished. Time-outs are the caller's."""
        self._now = now
        if not self._stopping and now >= self.deadline_at:
            for host in sorted(self._hosts_waiting()):
                self._close(host, DEFERRED, "round_deadline")
        while not self._stopping and not self._ledger and (grant := self._bench.acquire(now)):
            ask = self._start(grant.item)
            if ask is not None:
                return ask
            self._bench.release(grant.host, max(now, self._hosts.ready_at(grant.host)), now)
        if self._ledger:
            return Settled(self._ledger.take())
        if self._stopping or not self._bench.waiting:
            return Wait(None) if self._flights else Finished()
        wake_at = self._bench.wake_at()
        return Wait(self.deadline_at if wake_at is None else min(wake_at, self.deadline_at))

    def finish(self, ticket: int, reply: Reply, now: float) -> list[OutcomeRow]:
        """Take the reply to a request; return the rows that it made final, the request's own row first.

        Its WARC columns are the caller's to fill in.
        """
        self._now = now
        flight = self._flights.pop(ticket)
        host = flight.visit.host
        refused = reply.failure in REFUSALS
        if not refused:
            self._hosts.record(host, reply)
            self.locate(host, reply.ip)
        record = self._record_robots if flight.visit.kind == ROBOTS else self._record
        own = record(flight, reply)
        ready_at = max(now, self._hosts.ready_at(host)) if refused else self._hosts.rest(host)
        self._bench.release(host, ready_at, now)
        if reply.failure in HOST_REFUSALS:
            self._close(host, EXCLUDED, str(reply.failure))
        elif is_host_failure(reply) and self._hosts.is_retired(host):
            self._close(host, DEFERRED, "host_failures")
        else:
            self._close_if_late(host)
        return [own, *self._ledger.take()]

    def abandon(self, ticket: int, now: float) -> None:
        """Take back a request that was cut by a stop: it gets no row, and its host keeps its delay."""
        self._now = now
        visit = self._flights.pop(ticket).visit
        self._hosts.touch(visit.host, now)
        self._bench.add_first(visit.host, visit)
        self._bench.release(visit.host, self._hosts.rest(visit.host), now)

    def use_rules(self, rules_of: RulesOf, now: float) -> list[OutcomeRow]:
        """Obey new rules of the operator from here on; return the rows of what they exclude at once."""
        self._now = now
        self._hosts.use_rules(rules_of)
        for host in sorted(self._hosts_waiting()):
            if self._hosts.rules(host).exclude:
                self._close(host, EXCLUDED, "excluded")
        return self._ledger.take()

    def stop(self) -> None:
        """Ask nothing more: Finished follows once what is in hand has ended. What waits gets no row."""
        self._stopping = True

    def locate(self, host: str, ip: str | None) -> None:
        """Record the address of a host, also ahead of its first request."""
        if ip is not None:
            self._bench.locate(host, None if ip in self._policy.exempt_addresses else ip)

    def progress(self) -> Progress:
        """Return how far the session is."""
        return Progress(self._ledger.done, self._planned, len(self._hosts_waiting()), len(self._flights))

    def changed_hosts(self) -> list[HostState]:
        """Return the host rows that changed since the last call: what the next journal entry must hold."""
        return self._hosts.changed()

    def changed_robots(self) -> list[RobotsState]:
        """Return the robots.txt states that changed since the last call."""
        return self._robots.changed()

    def _start(self, visit: Visit) -> Ask | None:
        """Return the request for a visit whose host is free now, or deal with it without one."""
        if visit.host in self._closed:
            self._drop(visit, *self._closed[visit.host])
        elif self._hosts.rules(visit.host).exclude:
            self._drop(visit, EXCLUDED, "excluded")
            self._close(visit.host, EXCLUDED, "excluded")
        elif visit.kind == ROBOTS:
            if not self._robots.reuse(visit, self._now):
                return self._ask(visit)
            self._resume(visit.authority)
        elif self._hosts.excludes(visit.host, visit.url):
            self._drop(visit, EXCLUDED, "excluded")
        else:
            return self._start_page(visit)
        return None

    def _start_page(self, visit: Visit) -> Ask | None:
        authority = authority_of(visit.url)
        if authority in self._robots.barred:
            self._drop(visit, DEFERRED, self._robots.barred[authority])
            return None
        state = self._robots.fresh(authority, self._now)
        if state is None:
            robots_visit = self._robots.expect(authority, visit)
            return self._ask(robots_visit) if robots_visit is not None else None
        rules = self._robots.rules(state)
        verdict = rules.verdict(visit.url) if rules is not None else None
        if verdict is not None:
            self._hosts.hear_crawl_delay(visit.host, verdict.crawl_delay_seconds)
        if state.access == DENY:
            self._ledger.settle(visit, *denial_of(state), detail=state.reason)
        elif verdict is not None and not verdict.allowed:
            self._ledger.settle(visit, ROBOTS_DENIED, "robots_rule", rule=verdict.rule)
        elif self._hosts.is_spent(visit.host):
            self._drop(visit, DEFERRED, "crawl_delay")
            self._close(visit.host, DEFERRED, "crawl_delay")
        elif self._hosts.ready_at(visit.host) > self._now:
            # Only now is it known that this host wants a longer pause than its queue has kept.
            self._bench.add_first(visit.host, visit)
            self._close_if_late(visit.host)
        else:
            return self._ask(visit)
        return None

    def _ask(self, visit: Visit) -> Ask:
        request = request_for(visit, self._policy, self._hosts.rules(visit.host).insecure_tls)
        self._tickets += 1
        self._flights[self._tickets] = Flight(visit, request, self._hosts.owed_seconds(visit.host))
        if visit.kind != ROBOTS:
            self._hosts.asked[visit.host] += 1
        return Ask(self._tickets, request, visit.kind, visit.host)

    def _record(self, flight: Flight, reply: Reply) -> OutcomeRow:
        visit, request = flight.visit, flight.request
        retries = visit.state.retries if visit.state is not None and visit.kind == PLANNED else 0
        conditional = request.etag is not None or request.last_modified is not None
        judgement = judge(reply, retries, self._policy.max_retries, conditional)
        target = None
        if judgement.outcome == REDIRECTED:
            redirect = redirect_of(visit, reply, self._policy.max_redirects, self._may_follow)
            judgement = judgement._replace(outcome=redirect.outcome, reason=redirect.reason)
            target = redirect.target
            if redirect.visit is not None:
                self._taken.add(redirect.visit.url)
                self._enqueue(redirect.visit)
        return self._row(flight, reply, judgement, target)

    def _record_robots(self, flight: Flight, reply: Reply) -> OutcomeRow:
        visit = flight.visit
        step = self._robots.hear(visit, reply, self._policy.max_retries)
        self._hosts.record_robots(visit.host, reply.finished_at, reply.status)
        state = self._robots.fresh(visit.authority, self._now)
        if step.hop is not None:
            self._enqueue(step.hop)
        elif state is not None and state.access == DENY:
            self._deny(visit.host, visit.authority, state)
        else:
            self._resume(visit.authority)
        return self._row(flight, reply, step.judgement, step.target)

    def _deny(self, host: str, authority: str, state: RobotsState) -> None:
        """End all that waits for an authority which denies everything, at once: the host may rest long now."""
        others = []
        for visit in [*self._robots.release(authority), *self._bench.drain(host)]:
            if visit.kind != ROBOTS and authority_of(visit.url) == authority:
                self._ledger.settle(visit, *denial_of(state), detail=state.reason)
            else:
                others.append(visit)
        for visit in reversed(others):
            self._enqueue(visit)

    def _row(self, flight: Flight, reply: Reply, judgement: Judgement, target: str | None) -> OutcomeRow:
        host = self._hosts.state(flight.visit.host)
        return self._ledger.record(flight.visit, reply, judgement, flight.owed_seconds, host, target)

    def _may_follow(self, url: str) -> bool:
        return url not in self._taken and self._admits(url) and not self._known(url)

    def _resume(self, authority: str) -> None:
        """Put the visits that waited for a robots.txt back, ahead of their hosts' others, in order."""
        state = self._robots.fresh(authority, self._now)
        rules = self._robots.rules(state) if state is not None else None
        for visit in reversed(self._robots.release(authority)):
            if rules is not None:
                self._hosts.hear_crawl_delay(visit.host, rules.crawl_delay_seconds)
            self._enqueue(visit)

    def _enqueue(self, visit: Visit) -> None:
        if visit.host in self._closed and not self._stopping:
            self._drop(visit, *self._closed[visit.host])
            return
        if visit.host not in self._seated:
            self._seated.add(visit.host)
            self._bench.rest(visit.host, self._hosts.ready_at(visit.host))
        self._bench.add_first(visit.host, visit)

    def _drop(self, visit: Visit, outcome: str, reason: str) -> None:
        """End a visit without a request, and with a robots.txt what waits for it."""
        if visit.kind == ROBOTS:
            why = reason if outcome == DEFERRED else UNREACHABLE
            for waiting in self._robots.bar(visit.authority, why):
                self._ledger.settle(waiting, DEFERRED, why)
        else:
            self._ledger.settle(visit, outcome, reason)

    def _close(self, host: str, outcome: str, reason: str) -> None:
        """Ask a host nothing more this round; what waits gets its row, unless a stop leaves it for later."""
        if self._stopping:
            return
        self._closed[host] = outcome, reason
        for visit in [*self._robots.release_host(host), *self._bench.drain(host)]:
            self._drop(visit, outcome, reason)

    def _close_if_late(self, host: str) -> None:
        if self._hosts.ready_at(host) >= self.deadline_at:
            backing_off = (self._hosts.state(host).not_before_at or 0.0) >= self.deadline_at
            self._close(host, DEFERRED, "host_backoff" if backing_off else "round_deadline")

    def _hosts_waiting(self) -> set[str]:
        return self._bench.hosts() | self._robots.hosts_waiting()
