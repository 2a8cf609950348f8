"""What the end of a request means for its URL and for its host, and the row that records it."""

from __future__ import annotations

from typing import NamedTuple

from crawler.visit import Reply, Visit
from schemas.fetch import OutcomeRow

FETCHED = "fetched"
NOT_MODIFIED = "not_modified"
REDIRECTED = "redirected"
ROBOTS_DENIED = "robots_denied"
EXCLUDED = "excluded"
FAILED_RETRY = "failed_retry"
GONE = "gone"
DEFERRED = "deferred"

HOST_REFUSALS = frozenset({"private_address", "no_contact"})
"""Failures that are our own refusal to connect to a host, for any of its URLs, this round."""

REFUSALS = HOST_REFUSALS | {"port_not_allowed", "bad_url"}
"""Failures that are our own refusal: nothing was asked, and no retry will change it."""

_NOT_THE_HOSTS_FAULT = REFUSALS | {"local_error", "header_too_large", "body_too_large"}
NO_CONNECTION = frozenset(
    {"dns_failure", "connection_refused", "connect_timeout", "unreachable", "tls_error"}
)
"""Failures before a host could answer anything at all."""

_WORDS = {"connect_timeout": "timeout"}
"""Failures that are told apart inside, and the word that they have in tables."""

_SIGNALS = frozenset({408, 425, 429, 503})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Judgement(NamedTuple):
    """The outcome of one request. ``retries`` is the URL's count of failures in a row after it."""

    outcome: str
    reason: str | None
    retries: int


def judge(reply: Reply, retries: int, max_retries: int, conditional: bool) -> Judgement:
    """Return what a reply makes of a URL that had failed ``retries`` times in a row before it.

    2xx fetched, also when truncated. 304 not_modified if the request was ``conditional``. Other 3xx
    redirected, without a reason yet: that depends on the target. 408, 425, 429, 503 failed_retry and no
    retry is used up. Other 4xx gone. 5xx, statuses that do not exist and network failures failed_retry;
    one more than ``max_retries`` in a row is gone. Our own refusals are excluded.
    """
    if reply.status is None:
        reason = reply.failure or "no_response"
        if reason in REFUSALS:
            return Judgement(EXCLUDED, reason, retries)
        return _failed(word_of(reason), retries, max_retries)
    status = reply.status
    reason = f"http_{status}"
    if 200 <= status < 300:
        return Judgement(FETCHED, None, 0)
    if status == 304:
        return Judgement(NOT_MODIFIED, reason, 0) if conditional else _failed(reason, retries, max_retries)
    if 300 <= status < 400:
        return Judgement(REDIRECTED, None, 0)
    if status in _SIGNALS:
        return Judgement(FAILED_RETRY, reason, retries)
    if 400 <= status < 500:
        return Judgement(GONE, reason, 0)
    return _failed(reason, retries, max_retries)


def word_of(failure: str) -> str:
    """Return the reason that tables give for a failure."""
    return _WORDS.get(failure, failure)


def _failed(reason: str, retries: int, max_retries: int) -> Judgement:
    return Judgement(GONE if retries >= max_retries else FAILED_RETRY, reason, retries + 1)


def is_redirect(reply: Reply) -> bool:
    """Return whether a reply names another URL to ask instead (RFC 9110, section 15.4)."""
    return reply.status in _REDIRECTS and bool(reply.location)


def is_backoff(reply: Reply) -> bool:
    """Return whether the host itself asks for a pause: 429 or 503."""
    return reply.status in (429, 503)


def is_host_failure(reply: Reply) -> bool:
    """Return whether a reply counts among the failures in a row that retire a host."""
    if reply.status is None:
        return reply.failure not in _NOT_THE_HOSTS_FAULT
    return reply.status in (408, 429) or reply.status >= 500


def was_asked(row: OutcomeRow) -> bool:
    """Return whether a request was sent for this row: not for a denial, a deferral or our own refusal."""
    return row.started_at is not None and row.reason not in REFUSALS


def row_of(visit: Visit, host_key: int, url_key: int, judgement: Judgement) -> OutcomeRow:
    """Return the row of a visit that was not asked, or not yet: identity, outcome and reason."""
    state = visit.state
    return OutcomeRow(
        url=visit.url,
        host_key=host_key,
        url_key=url_key,
        kind=visit.kind,
        outcome=judgement.outcome,
        reason=judgement.reason,
        detail=None,
        planned_url=visit.chain[0] if visit.chain else visit.url,
        depth=state.depth if state else 0,
        priority=state.priority if state else 0.0,
        discovered_from=state.discovered_from if state else None,
        retries=judgement.retries,
    )


def with_reply(row: OutcomeRow, reply: Reply, host_delay_seconds: float) -> OutcomeRow:
    """Return the row with what the reply tells: instants, address, status and the headers that matter."""
    return row._replace(
        detail=reply.detail,
        started_at=reply.started_at,
        finished_at=reply.finished_at,
        ip=reply.ip,
        status=reply.status,
        host_delay_seconds=host_delay_seconds,
        etag=reply.etag,
        last_modified=reply.last_modified,
        content_type=reply.content_type,
        content_encoding=reply.content_encoding,
        truncated=reply.truncated,
        robots_tag=reply.robots_tag,
    )
