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
from crawler.robotsbook import RobotsBook, denial_of
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
from crawler.waiting import WaitingVisits
from schemas.fetch import OutcomeRow
from schemas.state import HostState, RobotsState, UrlState


class ShardSession:
    """Decides every request of one shard. Call ``next_action`` until Finished, ``finish`` for each Ask.

    ``items`` are the planned URLs, ``hosts`` and ``robots`` what the crawl remembers of their hosts and
    authorities (any may lack), ``rules_of`` the operator's rules of a host. No request starts at or after
    ``deadline_at``. After a takeover: ``first_request_after`` (see HostBook), ``done`` URLs that the journal
    records, ``chains`` from ``open_chains``. ``known`` says whether the crawl knows a URL already, ``admits``
    whether its scope lets (target, source) of a redirect in.

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
        admits: Callable[[str, str], bool] = lambda url, source_url: True,
    ) -> None:
        self.deadline_at = deadline_at
        self._policy, self._known, self._admits = policy, known, admits
        self._hosts = HostBook(hosts, rules_of, policy, keys, first_request_after)
        self._robots = RobotsBook(robots, policy.user_agent, policy.robots_ttl_hours, keys)
        self._flights: dict[int, Flight] = {}
        self._tickets, self._now = 0, now
        seating = seat(items, self._hosts, policy, seed, set(done), chains or {})
        self._bench, self._taken, self._planned = seating.bench, seating.taken, seating.planned
        self._ledger = Ledger(keys, seating.done)
        self._waiting = WaitingVisits(
            self._bench, self._hosts, self._robots, self._ledger, seating.hosts, deadline_at
        )

    def next_action(self, now: float) -> Action:
        """Return the one thing to do now: Ask, Settled, Wait or Finished. Time-outs are the caller's."""
        self._now = now
        if not self._waiting.stopping and now >= self.deadline_at:
            for host in sorted(self._waiting.hosts()):
                self._waiting.close(host, DEFERRED, "round_deadline")
        while not self._waiting.stopping and not self._ledger and (grant := self._bench.acquire(now)):
            ask = self._start(grant.item)
            if ask is not None:
                return ask
            self._bench.release(grant.host, max(now, self._hosts.ready_at(grant.host)), now)
        if self._ledger:
            return Settled(self._ledger.take())
        if self._waiting.stopping or not self._bench.waiting:
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
            self._waiting.close(host, EXCLUDED, str(reply.failure))
        elif is_host_failure(reply) and self._hosts.is_retired(host):
            self._waiting.close(host, DEFERRED, "host_failures")
        else:
            self._waiting.close_if_late(host)
        return [own, *self._ledger.take()]

    def abandon(self, ticket: int, now: float) -> None:
        """Take back a request that was cut by a stop: it gets no row, and its host keeps its delay."""
        self._now = now
        visit = self._flights.pop(ticket).visit
        self._hosts.touch(visit.host, now)
        self._bench.add_first(visit.host, visit)
        self._bench.release(visit.host, self._hosts.rest(visit.host), now)

    def postpone(self, ticket: int, ip: str, until: float, now: float) -> None:
        """Take back a request that was not sent because its address, ``ip``, must not be asked before ``until``."""
        self._now = now
        visit = self._flights.pop(ticket).visit
        if visit.kind != ROBOTS:
            self._hosts.asked[visit.host] -= 1
        self.locate(visit.host, ip)
        self._bench.add_first(visit.host, visit)
        self._bench.release(visit.host, max(now, until), now)

    def use_rules(self, rules_of: RulesOf, now: float) -> list[OutcomeRow]:
        """Obey new rules of the operator from here on; return the rows of what they exclude at once."""
        self._now = now
        self._hosts.use_rules(rules_of)
        for host in sorted(self._waiting.hosts()):
            if self._hosts.rules(host).exclude:
                self._waiting.close(host, EXCLUDED, "excluded")
        return self._ledger.take()

    def stop(self) -> None:
        """Ask nothing more: Finished follows once what is in hand has ended. What waits gets no row."""
        self._waiting.stopping = True

    def locate(self, host: str, ip: str | None) -> None:
        """Record the address of a host, also ahead of its first request."""
        if ip is not None:
            self._bench.locate(host, None if ip in self._policy.exempt_addresses else ip)

    def progress(self) -> Progress:
        """Return how far the session is."""
        return Progress(self._ledger.done, self._planned, len(self._waiting.hosts()), len(self._flights))

    def changed_hosts(self) -> list[HostState]:
        """Return the host rows that changed since the last call: what the next journal entry must hold."""
        return self._hosts.changed()

    def changed_robots(self) -> list[RobotsState]:
        """Return the robots.txt states that changed since the last call."""
        return self._robots.changed()

    def _start(self, visit: Visit) -> Ask | None:
        """Return the request for a visit whose host is free now, or deal with it without one."""
        if visit.host in self._waiting.closed:
            self._waiting.drop(visit, *self._waiting.closed[visit.host])
        elif self._hosts.rules(visit.host).exclude:
            self._waiting.drop(visit, EXCLUDED, "excluded")
            self._waiting.close(visit.host, EXCLUDED, "excluded")
        elif visit.kind == ROBOTS:
            if not self._robots.reuse(visit, self._now):
                return self._ask(visit)
            self._waiting.resume(visit.authority, self._now)
        elif self._hosts.excludes(visit.host, visit.url):
            self._waiting.drop(visit, EXCLUDED, "excluded")
        else:
            return self._start_page(visit)
        return None

    def _start_page(self, visit: Visit) -> Ask | None:
        authority = authority_of(visit.url)
        if authority in self._robots.barred:
            self._waiting.drop(visit, DEFERRED, self._robots.barred[authority])
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
            self._waiting.drop(visit, DEFERRED, "crawl_delay")
            self._waiting.close(visit.host, DEFERRED, "crawl_delay")
        elif self._hosts.ready_at(visit.host) > self._now:
            # Only now is it known that this host wants a longer pause than its queue has kept.
            self._bench.add_first(visit.host, visit)
            self._waiting.close_if_late(visit.host)
        else:
            return self._ask(visit)
        return None

    def _ask(self, visit: Visit) -> Ask:
        request = request_for(visit, self._policy, self._hosts.rules(visit.host).insecure_tls)
        self._tickets += 1
        self._flights[self._tickets] = Flight(visit, request, self._hosts.owed_seconds(visit.host))
        untold = None
        if visit.kind != ROBOTS:
            self._hosts.asked[visit.host] += 1
            untold = self._hosts.untold_delay(visit.host)
        return Ask(self._tickets, request, visit.kind, visit.host, untold, visit.via)

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
                self._waiting.enqueue(redirect.visit)
        return self._row(flight, reply, judgement, target)

    def _record_robots(self, flight: Flight, reply: Reply) -> OutcomeRow:
        visit = flight.visit
        step = self._robots.hear(visit, reply, self._policy.max_retries)
        self._hosts.record_robots(visit.host, reply.finished_at, reply.status)
        state = self._robots.fresh(visit.authority, self._now)
        if step.hop is not None:
            self._waiting.enqueue(step.hop)
        elif state is not None and state.access == DENY:
            self._waiting.deny(visit.host, visit.authority, state)
        else:
            self._waiting.resume(visit.authority, self._now)
        return self._row(flight, reply, step.judgement, step.target)

    def _row(self, flight: Flight, reply: Reply, judgement: Judgement, target: str | None) -> OutcomeRow:
        host = self._hosts.state(flight.visit.host)
        return self._ledger.record(flight.visit, reply, judgement, flight.owed_seconds, host, target)

    def _may_follow(self, url: str, source_url: str) -> bool:
        return url not in self._taken and self._admits(url, source_url) and not self._known(url)
