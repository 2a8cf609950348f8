"""Apache Flink: a cluster that is already there, or one inside the job server."""

from __future__ import annotations

from pathlib import Path

from runners.engine import JobRequest, Values, check_shards, whole
from runners.options import UsageError
from runners.portable import EXTERNAL, LOOPBACK, check_workers

INSIDE = ("[local]", "[auto]")
POOL = "localhost:50000"


class Flink:
    """Batch jobs on Flink. What each default is good for stands beside it."""

    name = "FlinkRunner"
    page_processes = None

    def preset(self, job: JobRequest) -> list[str]:
        """Return what a round needs on Flink."""
        arguments = [
            # The SDK fuses the steps: the Java side's fusion fails on a collection that goes both into a Flatten
            # and into a GroupByKey, and a round has several.
            "--experiments=pre_optimize=all",
            # Counted from a worker's start, and again from the end of its job. Shorter: a round's many stages would
            # wait for new workers again and again; longer: workers of 150 MB each would wait for nothing after it.
            "--environment_cache_millis=60000",
        ]
        given = {
            argument.split("=", 1)[0].lstrip("-"): argument.partition("=")[2]
            for argument in job.beam_arguments
        }
        parallelism = given.get("parallelism", str(job.flags.shards or 1))
        if "parallelism" not in given:
            arguments.append(f"--parallelism={parallelism}")
        if "sdk_worker_parallelism" not in given:
            # One Python process for each slot: slots that share one would share its interpreter lock.
            arguments.append(f"--sdk_worker_parallelism={parallelism}")
        is_inside = given.get("flink_master", INSIDE[0]) in INSIDE
        if "flink_master" not in given:
            arguments.append(f"--flink_master={INSIDE[0]}")
        if "environment_type" not in given:
            arguments.append(f"--environment_type={LOOPBACK if is_inside else EXTERNAL}")
        if (
            not is_inside
            and "environment_config" not in given
            and given.get("environment_type") in (None, EXTERNAL)
        ):
            # A worker pool beside each TaskManager, on the port that such pools usually have.
            arguments.append(f"--environment_config={POOL}")
        return arguments

    def check(self, job: JobRequest, values: Values) -> None:
        """Refuse what the cluster cannot reach, and numbers of workers that contradict each other."""
        master = values["flink_master"]
        check_workers(job, values, "--flink_master", master, master in INSIDE)
        parallelism, workers = self.slots(job, values), whole(values, "sdk_worker_parallelism", 1)
        if workers > parallelism:
            raise UsageError(
                f"--sdk_worker_parallelism={workers} starts more Python workers than --parallelism={parallelism} "
                f"has slots for: give --sdk_worker_parallelism={parallelism} or less"
            )
        jar = values.get("flink_job_server_jar")
        if jar and "://" not in jar and not Path(jar).is_file():
            raise UsageError(f"--flink_job_server_jar={jar} is not a file")
        check_shards(job, parallelism, "parallelism")

    def slots(self, job: JobRequest, values: Values) -> int:
        """Return the parallelism: one shard for each task slot."""
        parallelism = whole(values, "parallelism", 1)
        if parallelism < 1:
            raise UsageError(
                f"--parallelism={parallelism} must be 1 or more: the number of the cluster's task slots"
            )
        return parallelism
