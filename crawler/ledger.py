"""The rows of a session: one for each visit that came to an end, with or without a request."""

from __future__ import annotations

from crawler.outcomes import NOT_MODIFIED, Judgement, is_backoff, row_of, with_reply
from crawler.urls import UrlKeys, host_of
from crawler.visit import PLANNED, Reply, Visit
from schemas.fetch import OutcomeRow
from schemas.state import HostState


class Ledger:
    """Writes rows and counts the planned URLs that have theirs. ``done`` begins at those of the journal."""

    def __init__(self, keys: UrlKeys, done: int) -> None:
        self._keys = keys
        self._settled: list[OutcomeRow] = []
        self.done = done

    def settle(
        self, visit: Visit, outcome: str, reason: str, detail: str | None = None, rule: str | None = None
    ) -> None:
        """Write the row of a visit that ends without a request."""
        retries = visit.state.retries if visit.state is not None and visit.kind == PLANNED else 0
        row = self._row(visit, Judgement(outcome, reason, retries))
        self._settled.append(row._replace(detail=detail, robots_rule=rule))

    def record(
        self,
        visit: Visit,
        reply: Reply,
        judgement: Judgement,
        owed_seconds: float,
        host: HostState,
        target: str | None,
    ) -> OutcomeRow:
        """Return the row of a visit that was asked; ``host`` is the host's row after the reply."""
        row = with_reply(self._row(visit, judgement), reply, owed_seconds)
        if judgement.outcome == NOT_MODIFIED and visit.state is not None:
            row = row._replace(
                etag=reply.etag or visit.state.etag,
                last_modified=reply.last_modified or visit.state.last_modified,
            )
        retry_after_at = host.not_before_at if is_backoff(reply) else None
        return row._replace(redirect_url=target, retry_after_at=retry_after_at)

    def take(self) -> list[OutcomeRow]:
        """Return the rows that were settled without a request since the last call."""
        rows, self._settled = self._settled, []
        return rows

    def __bool__(self) -> bool:
        return bool(self._settled)

    def _row(self, visit: Visit, judgement: Judgement) -> OutcomeRow:
        state = visit.state
        if visit.kind == PLANNED and state is not None:
            self.done += 1
            return row_of(visit, state.host_key, state.url_key, judgement)
        return row_of(
            visit, self._keys.host_key(host_of(visit.url)), self._keys.url_key(visit.url), judgement
        )
