"""Beam's Prism: a runner in a process of its own, for one machine."""

from __future__ import annotations

import os
import shutil

from runners.engine import JobRequest, Values, check_folder
from runners.machines import is_this_machine
from runners.options import UsageError

BINARY = "PRISM_BIN"


class Prism:
    """Runs the shards of a round side by side, as threads of the worker process."""

    name = "PrismRunner"
    page_processes = None

    def preset(self, job: JobRequest) -> list[str]:
        """Return where the binary lies: Beam would otherwise look for a release page on the network."""
        if job.names("prism_location") or job.names("job_endpoint"):
            return []
        found = os.environ.get(BINARY) or shutil.which("prism")
        return [f"--prism_location={found}"] if found else []

    def check(self, job: JobRequest, values: Values) -> None:
        """Refuse a missing binary, and workers elsewhere on a crawl folder that they cannot see."""
        location = values.get("prism_location")
        if not values.get("job_endpoint"):
            if not location:
                raise UsageError(
                    f"--prism_location is missing: name the prism binary there or in {BINARY}; `go install "
                    "github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0` builds it"
                )
            if "://" not in location and not os.access(location, os.X_OK):
                raise UsageError(f"--prism_location={location} is not an executable file")
        pool = values.get("environment_config") if values.get("environment_type") == "EXTERNAL" else None
        if pool and not is_this_machine(pool):
            check_folder(job, f"the workers of --environment_config={pool} do not")

    def slots(self, job: JobRequest, values: Values) -> int:
        """Return 1: a shard's own threads hold the concurrency, and all shards run in one worker process."""
        return job.flags.shards or 1
