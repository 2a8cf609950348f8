"""Google Cloud Dataflow, batch."""

from __future__ import annotations

from runners.engine import JobRequest, Values, check_shards, whole
from runners.options import UsageError

NEEDED = ("project", "region", "temp_location")


class Dataflow:
    """Batch jobs on Dataflow."""

    name = "DataflowRunner"

    def preset(self, job: JobRequest) -> list[str]:
        """Return what a round needs on Dataflow."""
        return []

    def check(self, job: JobRequest, values: Values) -> None:
        """Refuse a job that the service could not take, or whose workers could not see the crawl."""
        for name in NEEDED:
            if not values.get(name):
                raise UsageError(
                    f"--{name} is missing: {self.name} needs {', '.join(f'--{n}=...' for n in NEEDED)}"
                )
        if not values["temp_location"].startswith("gs://"):
            raise UsageError(f"--temp_location={values['temp_location']} must be a gs:// folder")
        if job.crawl_is_local:
            raise UsageError(
                f"--crawl={job.crawl} lies on this machine, which the service's workers cannot see: put the crawl on gs://"
            )
        check_shards(job, self.slots(job, values), "num_workers")

    def slots(self, job: JobRequest, values: Values) -> int:
        """Return the number of workers."""
        return max(1, whole(values, "num_workers", 1))
