"""Google Cloud Dataflow, batch."""

from __future__ import annotations

import re
from math import ceil

from runners.engine import JobRequest, Values, check_shards, whole
from runners.options import UsageError

NEEDED = ("project", "region", "temp_location")
CODE = ("setup_file", "sdk_container_image", "extra_package", "extra_packages")
MACHINE, CORES = "n2-standard-4", 4

_PROJECT = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_CORES = re.compile(r"-(\d+)(-\w+)?$")


class Dataflow:
    """Batch jobs on Dataflow. What each default is good for stands beside it."""

    name = "DataflowRunner"
    # One harness process runs on each core, and each has a pool of its own.
    page_processes = 1

    def preset(self, job: JobRequest) -> list[str]:
        """Return what a round needs on Dataflow."""
        arguments = [
            # One harness process a core: Python threads of one process would share one core.
            "--experiments=use_multiple_sdk_containers",
        ]
        if not job.names("number_of_worker_harness_threads"):
            # Each process runs one shard, whose downloads have threads of their own; the service's default of a
            # dozen would put a dozen shards, each with its own budget of memory, on one core.
            arguments.append("--number_of_worker_harness_threads=1")
        if not job.names("autoscaling_algorithm"):
            # Shards wait for hosts more than they work: the service would take workers away that it finds idle,
            # and a shard cannot be split or moved.
            arguments.append("--autoscaling_algorithm=NONE")
        cores = CORES
        if job.names("worker_machine_type") or job.names("machine_type"):
            cores = _cores(_given(job, "worker_machine_type") or _given(job, "machine_type"))
        else:
            # 4 GB a core: a shard's page process, its queues and one part of every table it merges.
            arguments.append(f"--worker_machine_type={MACHINE}")
        if not job.names("num_workers"):
            arguments.append(f"--num_workers={ceil((job.flags.shards or 1) / cores)}")
        if not job.names("use_public_ips") and not job.names("no_use_public_ips"):
            # Workers leave through the network's NAT, whose fixed addresses webmasters can know.
            arguments.append("--no_use_public_ips")
        return arguments

    def check(self, job: JobRequest, values: Values) -> None:
        """Refuse a job that the service could not take, or whose workers could not see the crawl or its code."""
        for name in NEEDED:
            if not values.get(name):
                raise UsageError(
                    f"--{name} is missing: {self.name} needs {', '.join(f'--{n}=...' for n in NEEDED)}"
                )
        if not _PROJECT.fullmatch(values["project"]):
            raise UsageError(
                f"--project={values['project']} is no project id: give the id, not number or name"
            )
        for name in ("temp_location", "staging_location"):
            if not (values.get(name) or "gs://").startswith("gs://"):
                raise UsageError(f"--{name}={values[name]} must be a gs:// folder")
        self._check_crawl(job, values)
        if not any(values.get(name) for name in CODE):
            raise UsageError(
                "--setup_file is missing: workers start without this program; give --setup_file=./setup.py, or "
                "--sdk_container_image=IMAGE that has it"
            )
        if values.get("streaming"):
            raise UsageError("--streaming cannot work: a round is a batch job; leave it out")
        for name in ("num_workers", "number_of_worker_harness_threads"):
            if whole(values, name, 1) < 1:
                raise UsageError(f"--{name}={values[name]} must be 1 or more")
        check_shards(job, whole(values, "num_workers", 1), "num_workers")

    def _check_crawl(self, job: JobRequest, values: Values) -> None:
        if job.crawl_is_local:
            raise UsageError(
                f"--crawl={job.crawl} lies on this machine, which the service's workers cannot see: put the crawl on gs://"
            )
        if job.crawl.startswith("s3://") and not values.get("sdk_container_image"):
            raise UsageError(
                f"--crawl={job.crawl} needs credentials that the service's workers have not got: put the crawl on "
                "gs://, or give --sdk_container_image=IMAGE that has them"
            )

    def slots(self, job: JobRequest, values: Values) -> int:
        """Return workers times cores times harness threads: every core of the job has a shard."""
        threads = whole(values, "number_of_worker_harness_threads", 1)
        return max(1, whole(values, "num_workers", 1) * _cores(values.get("machine_type")) * threads)


def _given(job: JobRequest, option: str) -> str | None:
    """Return the last value that the command line gave a Beam option."""
    start = f"--{option}="
    given = [argument.removeprefix(start) for argument in job.beam_arguments if argument.startswith(start)]
    return given[-1] if given else None


def _cores(machine_type: str | None) -> int:
    """Return the cores that a machine type's name tells, 1 when it tells none."""
    match = _CORES.search(machine_type or "")
    return int(match[1]) if match else 1
