"""The worker pool and its boot script, as an engine uses them; the engine is Beam's local job service."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from runners.logs import WORKER_LOGGING
from tests.flink.cluster import LOOPBACK, listens_on, wait_until
from tests.portable.services import is_alive, job_service, worker_pool

pytestmark = pytest.mark.timeout(600)


def chatter(number: int) -> Iterator[int]:
    """Print far more than a pipe holds, log a line, and return this process."""
    sys.stdout.write("x" * 200_000 + "\n")
    sys.stdout.flush()
    logging.getLogger("transforms.chatter").info("line %d of the crawl's own", number)
    logging.getLogger("apache_beam.chatter").info("line %d of Beam's own", number)
    yield os.getpid()


def test_a_worker_that_prints_does_not_hang_and_what_it_logs_is_seen(tmp_path: Path) -> None:
    with worker_pool(tmp_path / "pool.log") as pool, job_service(tmp_path / "service.log", 2) as service:
        options = PipelineOptions(
            [
                "--runner=PortableRunner",
                f"--job_endpoint={service.address}",
                "--environment_type=EXTERNAL",
                f"--environment_config={pool.address}",
                *WORKER_LOGGING,
            ]
        )
        with beam.Pipeline(options=options) as pipeline:
            numbers = pipeline | beam.Create(range(4)) | beam.Reshuffle()
            numbers | beam.FlatMap(chatter) | beam.Map(print)
        assert listens_on(pool.process.pid) <= set(LOOPBACK)
        log = pool.log()
        assert "x" * 200_000 in log
        assert log.count("of the crawl's own") == 4
        assert "of Beam's own" not in log
        assert pool.process.stdout is not None


def test_a_pool_that_is_ended_leaves_no_worker_behind(tmp_path: Path) -> None:
    with worker_pool(tmp_path / "pool.log") as pool, job_service(tmp_path / "service.log", 2) as service:
        script = (
            "import apache_beam as beam, time\n"
            "from apache_beam.options.pipeline_options import PipelineOptions\n"
            f"options = PipelineOptions(['--runner=PortableRunner', '--job_endpoint={service.address}',\n"
            f"    '--environment_type=EXTERNAL', '--environment_config={pool.address}'])\n"
            "with beam.Pipeline(options=options) as p:\n"
            "    p | beam.Create([1]) | beam.Map(lambda x: __import__('time').sleep(600))\n"
        )
        job = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: len(pool.workers()) == 2, "two workers")
            workers = pool.workers()
            pool.process.send_signal(signal.SIGTERM)
            assert pool.process.wait(120) == 0
            wait_until(lambda: not any(is_alive(pid) for pid in workers), "the end of the workers")
        finally:
            job.kill()
            job.wait()
