"""Beam's local job service in a process of its own, with as many workers as asked for: `--workers=2`.

The job service that a command embeds runs one worker, whatever it is asked for; the runner beneath it
can do more.
"""

from __future__ import annotations

import argparse
import signal
import threading

from apache_beam.runners.portability import local_job_service
from apache_beam.runners.portability.fn_api_runner import fn_runner


def job_type(workers: int) -> type[local_job_service.BeamJob]:
    """Return Beam's job with this number of workers for each stage."""

    class Job(local_job_service.BeamJob):
        def _invoke_runner(self) -> fn_runner.RunnerResult:
            self.set_state(local_job_service.beam_job_api_pb2.JobState.RUNNING)
            runner = fn_runner.FnApiRunner(provision_info=self._provision_info)
            runner._num_workers = workers
            return runner.run_via_runner_api(self._pipeline_proto, self.pipeline_options())

    return Job


def main() -> None:
    """Serve until SIGTERM; print the address as soon as the service listens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    service = local_job_service.LocalJobServicer(beam_job_type=job_type(parser.parse_args().workers))
    print(f"localhost:{service.start_grpc_server()}", flush=True)
    ended.wait()
    service.stop()


if __name__ == "__main__":
    main()
