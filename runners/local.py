"""The engine inside this process, or in worker processes of this machine: Beam's FnApiRunner."""

from __future__ import annotations

import os

from runners.engine import JobRequest, Values, check_shards, whole
from runners.options import UsageError

IN_MEMORY = "in_memory"


class Local:
    """The default. One shard holds all concurrency in its own threads; more workers are more processes."""

    name = "FnApiRunner"
    page_processes = None

    def preset(self, job: JobRequest) -> list[str]:
        """Return the arguments that make asked-for workers real.

        Beam's default mode ignores the number of workers, so workers ask for processes: threads of one
        process gain nothing where pages are parsed.
        """
        if job.names("direct_num_workers") and not job.names("direct_running_mode"):
            return ["--direct_running_mode=multi_processing"]
        return []

    def check(self, job: JobRequest, values: Values) -> None:
        """Refuse workers that a mode would ignore, and fewer shards than workers."""
        workers = _workers(values)
        if values["direct_running_mode"] == IN_MEMORY and workers != 1:
            raise UsageError(
                f"--direct_num_workers={values['direct_num_workers']} has no effect with --direct_running_mode="
                f"{IN_MEMORY}: give --direct_running_mode=multi_processing, or one worker"
            )
        check_shards(job, workers, "direct_num_workers")

    def slots(self, job: JobRequest, values: Values) -> int:
        """Return the number of workers: shards of one worker run one after another."""
        return _workers(values)


def _workers(values: Values) -> int:
    count = whole(values, "direct_num_workers", 1)
    if count < 0:
        raise UsageError(f"--direct_num_workers={count} must be 0 (one for each core) or more")
    return count or os.cpu_count() or 1
