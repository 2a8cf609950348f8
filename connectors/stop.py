"""How a round is told to stop: a signal here, a file in the crawl folder for workers elsewhere."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

from connectors import layout, sealed
from connectors.files import AlreadyThere
from connectors.rounds import CrawlFolder

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Catches SIGINT and SIGTERM for the length of a ``with`` block; ``event`` is set by the first.

    A second signal acts as if it had not been caught. Use it in the main thread.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.signal_name: str | None = None
        self._earlier: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether a signal has come."""
        return self.event.is_set()

    def __enter__(self) -> StopSignal:
        self._earlier = {number: signal.signal(number, self._catch) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            self._restore()
            os.kill(os.getpid(), number)
            return
        self.signal_name = signal.Signals(number).name
        self.event.set()

    def _restore(self) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
        self._earlier = {}


@dataclass(frozen=True)
class StopMarker:
    """The stop of one run of a round: ``token`` names the run, so that the run that resumes it goes on.

    Picklable. Workers ask ``requested`` now and then: it costs one look-up.
    """

    folder: CrawlFolder
    round: int
    token: str

    def request(self, reason: str, at: float) -> None:
        """Tell the workers of this run to stop. Idempotent. ``at`` is UTC epoch seconds."""
        path = layout.stop_path(self.round, self.token)
        try:
            self.folder.storage.write_new(path, sealed.seal({"reason": reason, "stopped_at": at}))
        except AlreadyThere:
            return

    def requested(self) -> bool:
        """Return whether this run was told to stop."""
        return self.folder.storage.exists(layout.stop_path(self.round, self.token))
