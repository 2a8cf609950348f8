"""What the operator wants of a running round: that it stops, or that a domain is left alone."""

from __future__ import annotations

from connectors.stop import StopMarker
from crawler.policy import PolicyBook
from transforms.view import RoundView

STOP_EVERY_SECONDS = 1.0
POLICY_EVERY_SECONDS = 5.0


class OperatorOrders:
    """Watches the crawl folder: for a stop every second, for injected policy well within a checkpoint."""

    def __init__(self, view: RoundView, checkpoint_seconds: float) -> None:
        self.view = view
        self.stopped_at: float | None = None
        self._marker = StopMarker(view.folder, view.spec.round, view.spec.attempt)
        self._policy_every_seconds = min(POLICY_EVERY_SECONDS, checkpoint_seconds / 4)
        self._absorbed = set(view.parent.injected if view.parent else ()) | set(view.plan.injected)
        self._book = view.policy
        self._asked_at = self._listed_at = float("-inf")

    def is_stopping(self, now: float) -> bool:
        """Return whether this run of the round was told to stop."""
        if self.stopped_at is None and now - self._asked_at >= STOP_EVERY_SECONDS:
            self._asked_at = now
            self.stopped_at = now if self._marker.requested() else None
        return self.stopped_at is not None

    def new_rules(self, now: float) -> PolicyBook | None:
        """Return the rules in force when some were injected since the last look, else None."""
        if now - self._listed_at < self._policy_every_seconds:
            return None
        self._listed_at = now
        changed = False
        for path in self.view.folder.inject_paths(self._absorbed):
            self._absorbed.add(path)
            policy = self.view.folder.read_inject(path).get("policy")
            if policy:
                self._book = self._book.updated(PolicyBook.from_json(policy))
                changed = True
        return self._book if changed else None
