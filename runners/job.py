"""One job on its engine, which another thread can give up."""

from __future__ import annotations

import apache_beam as beam

CANCEL_AFTER_SECONDS = 60.0
"""How long after a stop a job may go on: its workers cut downloads after 10 s and make safe what they have."""


class Job:
    """Runs a pipeline to its end."""

    def __init__(self, pipeline: beam.Pipeline) -> None:
        self._pipeline = pipeline
        self._result: beam.runners.runner.PipelineResult | None = None

    def run(self) -> None:
        """Return when the job has ended; raise what the engine raises when it failed or was cancelled."""
        self._result = self._pipeline.run()
        self._result.wait_until_finish()

    def cancel(self) -> None:
        """Ask the engine to end the job, as far as it has been handed over: its workers may be none at all."""
        if self._result is not None:
            self._result.cancel()
