"""The robots.txt answers of a shard's authorities, and the visits that wait for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crawler.outcomes import (
    DEFERRED,
    EXCLUDED,
    FAILED_RETRY,
    GONE,
    NO_CONNECTION,
    REDIRECTED,
    REFUSALS,
    Judgement,
    judge,
    word_of,
)
from crawler.redirects import FOLLOWED, INVALID, LOOP, QUEUED, TOO_MANY, stays_in_domain, target_of
from crawler.robots import DENY, MAX_REDIRECTS, RULES, RobotsRules, access_of, clip, ttl_seconds
from crawler.robotsroom import ParsedRules, RobotsRoom
from crawler.urls import NormalUrl, UrlKeys, authority_of, host_of, normalise, path_of
from crawler.visit import ROBOTS, Reply, Visit
from schemas.fetch import Truncation
from schemas.state import RobotsState

REDIRECTED_AWAY = "robots_redirect"
UNREACHABLE = "robots_unreachable"
NO_ROOM = "robots_too_large"


class RobotsStep(NamedTuple):
    """What one reply on the way to a robots.txt means: its row, and the next hop or None at the end."""

    judgement: Judgement
    target: str | None
    hop: Visit | None


class RobotsBook:
    """Keeps one RobotsState per authority (scheme, host and port), its parsed rules, and who waits for it.

    Large files share a bounded room. One that finds none is as good as unreachable: its authority waits, for
    to ask on without its rules is no choice.
    """

    def __init__(
        self, robots: Mapping[str, RobotsState], user_agent: str, ttl_hours: float, keys: UrlKeys
    ) -> None:
        self._room = RobotsRoom()
        self._states = {name: state for name, state in robots.items() if self._room.grants(len(state.body))}
        self._ttl_hours = ttl_hours
        self._keys = keys
        self._changed: set[str] = set()
        self._expected: dict[str, list[Visit]] = {}
        self.barred: dict[str, str] = {}
        """Authorities whose robots.txt cannot be had in this session, and why; not remembered beyond it."""
        self._parsed = ParsedRules(user_agent)

    def fresh(self, authority: str, now: float) -> RobotsState | None:
        """Return the answer that still stands for an authority, None when it must be asked for."""
        state = self._states.get(authority)
        return state if state is not None and state.expires_at > now else None

    def rules(self, state: RobotsState) -> RobotsRules | None:
        """Return the parsed rules of an answer, None when it holds none."""
        return self._parsed.of(state.body) if state.access == RULES else None

    def expect(self, authority: str, visit: Visit) -> Visit | None:
        """Let a visit wait for its robots.txt; return the visit to that, for the first that waits."""
        waiting = self._expected.setdefault(authority, [])
        waiting.append(visit)
        if len(waiting) > 1:
            return None
        return Visit(ROBOTS, _robots_url(authority), visit.host, authority=authority)

    def release(self, authority: str) -> list[Visit]:
        """Return the visits that waited for an authority's robots.txt, first first; they wait no more."""
        return self._expected.pop(authority, [])

    def bar(self, authority: str, reason: str) -> list[Visit]:
        """Give an authority up for this session; return the visits that waited for its robots.txt."""
        self.barred[authority] = reason
        return self.release(authority)

    def release_host(self, host: str) -> list[Visit]:
        """Return the visits of a host that wait for a robots.txt; they wait no more."""
        taken = []
        for waiting in self._expected.values():
            taken += [visit for visit in waiting if visit.host == host]
            waiting[:] = [visit for visit in waiting if visit.host != host]
        return taken

    def hosts_waiting(self) -> set[str]:
        """Return the hosts with a visit that waits for a robots.txt."""
        return {visit.host for waiting in self._expected.values() for visit in waiting}

    def hear(self, visit: Visit, reply: Reply, max_retries: int) -> RobotsStep:
        """Return what a reply to a robots.txt visit means, and keep the answer if it is the last hop's."""
        judgement = judge(reply, 0, max_retries, conditional=False)
        target = target_of(visit, reply)
        if target is None:
            if judgement.outcome == REDIRECTED:
                judgement = judgement._replace(reason=INVALID)
            self._settle(visit, reply)
            return RobotsStep(judgement, None, None)
        chain = (*visit.chain, visit.url)
        if target in chain or len(chain) > MAX_REDIRECTS:
            self._settle(visit, reply)
            return RobotsStep(Judgement(GONE, LOOP if target in chain else TOO_MANY, 0), target, None)
        owner = _owner_of(target)
        answer = self.fresh(owner, reply.finished_at) if owner else None
        if answer is not None:
            self._adopt(visit.authority, answer)
        elif stays_in_domain(visit, target):
            hop = Visit(ROBOTS, target, host_of(target), chain=chain, authority=visit.authority)
            return RobotsStep(Judgement(REDIRECTED, FOLLOWED, 0), target, hop)
        else:
            self._keep(visit.authority, reply.finished_at, DENY, reply.status, REDIRECTED_AWAY, b"")
        return RobotsStep(Judgement(REDIRECTED, QUEUED, 0), target, None)

    def reuse(self, visit: Visit, now: float) -> bool:
        """Return whether a robots.txt visit is needless because its URL has been answered; adopt that."""
        owner = _owner_of(visit.url)
        answer = self.fresh(owner, now) if owner and owner != visit.authority else None
        if answer is not None:
            self._adopt(visit.authority, answer)
        return answer is not None

    def changed(self) -> list[RobotsState]:
        """Return the states that changed since the last call, by authority."""
        rows = [self._states[authority] for authority in sorted(self._changed)]
        self._changed.clear()
        return rows

    def _settle(self, visit: Visit, reply: Reply) -> None:
        """Keep the state that the last reply of a chain amounts to, for all authorities that it answers.

        A body that broke off (time-out, lost connection) may lack its rules, so it is no answer.
        """
        broken = reply.truncated not in (None, Truncation.LENGTH)
        access = DENY if broken else access_of(reply.status)
        reason = f"truncated_{reply.truncated}" if broken else reply.failure
        if reason is None and access != RULES:
            reason = f"http_{reply.status}"
        if visit.chain:
            reason = _seen_from_afar(reason)
        body = clip(reply.body) if access == RULES else b""
        for authority in {visit.authority, _owner_of(visit.url) or visit.authority}:
            self._keep(authority, reply.finished_at, access, reply.status, reason, body)

    def _adopt(self, authority: str, other: RobotsState) -> None:
        """Give an authority the answer of another, to which its robots.txt redirects."""
        host_key = self._keys.host_key(host_of(_robots_url(authority)))
        reason = _seen_from_afar(other.reason)
        self._store(other._replace(authority=authority, host_key=host_key, reason=reason))

    def _keep(
        self, authority: str, at: float, access: str, status: int | None, reason: str | None, body: bytes
    ) -> None:
        last = self._states.get(authority)
        last_error = last.expires_at - last.fetched_at if last and last.access == DENY else None
        expires_at = at + ttl_seconds(access, self._ttl_hours, last_error)
        host_key = self._keys.host_key(host_of(_robots_url(authority)))
        self._store(RobotsState(authority, host_key, at, expires_at, access, status, reason, body))

    def _store(self, state: RobotsState) -> None:
        last = self._states.get(state.authority)
        self._room.returned(len(last.body) if last else 0)
        if not self._room.grants(len(state.body)):
            expires_at = state.fetched_at + ttl_seconds(DENY, self._ttl_hours)
            state = state._replace(access=DENY, reason=NO_ROOM, body=b"", expires_at=expires_at)
        self._states[state.authority] = state
        self._changed.add(state.authority)


def denial_of(state: RobotsState) -> tuple[str, str]:
    """Return the outcome and reason of a URL whose authority has access ``deny``.

    A host that nobody can connect to fails its URLs, as a request for them would have; one that answers, but
    not with its rules, defers them.
    """
    if state.reason in REFUSALS:
        return EXCLUDED, str(state.reason)
    if state.reason in NO_CONNECTION:
        return FAILED_RETRY, word_of(str(state.reason))
    return DEFERRED, REDIRECTED_AWAY if state.reason == REDIRECTED_AWAY else UNREACHABLE


def _seen_from_afar(reason: str | None) -> str | None:
    """Return what a failure means for an authority that redirects to where it happened.

    Not the authority itself is refused, or lost: it answers, and its URLs wait.
    """
    return UNREACHABLE if reason in REFUSALS or reason in NO_CONNECTION else reason


def _robots_url(authority: str) -> str:
    url = normalise(f"{authority}/robots.txt")
    if not isinstance(url, NormalUrl):
        raise ValueError(f"not an authority of a normal URL: {authority!r}")
    return url.url


def _owner_of(url: str) -> str | None:
    """Return the authority whose robots.txt a URL is, None for any other URL."""
    return authority_of(url) if path_of(url) == "/robots.txt" and "?" not in url else None
