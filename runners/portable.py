"""Any engine behind Beam's job service, and the job service embedded in this process."""

from __future__ import annotations

from runners.engine import JobRequest, Values, check_folder, check_shards, whole
from runners.machines import is_this_machine
from runners.options import UsageError

EMBEDDED = "embed"
LOOPBACK, EXTERNAL = "LOOPBACK", "EXTERNAL"


class Portable:
    """`--job_endpoint=embed` runs the job here; an address hands it to a job server that is already there."""

    name = "PortableRunner"
    page_processes = None

    def preset(self, job: JobRequest) -> list[str]:
        """Return the worker environment: Beam's default is a container image, which this crawl has not got."""
        arguments = []
        if not job.names("job_endpoint"):
            arguments.append(f"--job_endpoint={EMBEDDED}")
        if not job.names("environment_type"):
            is_pool = job.names("environment_config")
            arguments.append(f"--environment_type={EXTERNAL if is_pool else LOOPBACK}")
        return arguments

    def check(self, job: JobRequest, values: Values) -> None:
        """Refuse workers that cannot reach this process or this disk, and workers that would not be started."""
        endpoint = values["job_endpoint"]
        check_workers(job, values, "--job_endpoint", endpoint, endpoint == EMBEDDED)
        if endpoint == EMBEDDED and whole(values, "direct_num_workers", 1) != 1:
            raise UsageError(
                f"--direct_num_workers={values['direct_num_workers']} has no effect with --job_endpoint={EMBEDDED}, "
                "which runs one worker: leave it out, or give --runner=FnApiRunner"
            )
        check_shards(job, self.slots(job, values), "parallelism")

    def slots(self, job: JobRequest, values: Values) -> int:
        """Return the worker slots of the job service; an embedded one runs a single worker."""
        return max(1, whole(values, "parallelism", 1))


def check_workers(job: JobRequest, values: Values, flag: str, master: str, is_here: bool) -> None:
    """Refuse what a master elsewhere cannot reach: workers in this process, and this machine's disk."""
    is_here = is_here or is_this_machine(master)
    environment, pool = values.get("environment_type"), values.get("environment_config")
    if environment == LOOPBACK and not is_here:
        raise UsageError(
            f"--environment_type={LOOPBACK} runs the workers in this process, which {flag}={master} cannot reach: "
            f"give --environment_type={EXTERNAL} --environment_config=HOST:PORT"
        )
    if environment == EXTERNAL and not pool:
        raise UsageError(
            f"--environment_type={EXTERNAL} needs --environment_config=HOST:PORT, the address of the worker pool"
        )
    if not is_here:
        check_folder(job, f"{flag}={master} does not")
    elif environment == EXTERNAL and not is_this_machine(pool):
        check_folder(job, f"the workers of --environment_config={pool} do not")
