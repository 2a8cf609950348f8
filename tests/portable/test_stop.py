"""A round whose engine never gets a worker can be stopped all the same."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.utils.thread_pool_executor import shared_unbounded_instance

from connectors.clock import SystemClock
from tests.portable.crawls import engine
from tests.portable.services import job_service


class IdlePool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """Says that it has started a worker, and has not."""

    def __init__(self) -> None:
        self.asked = 0

    def StartWorker(self, request: Any, context: Any) -> Any:
        self.asked += 1
        return beam_fn_api_pb2.StartWorkerResponse()


@pytest.fixture
def idle_pool() -> Iterator[tuple[IdlePool, str]]:
    pool, server = IdlePool(), grpc.server(shared_unbounded_instance())
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield pool, f"127.0.0.1:{port}"
    server.stop(0)


@pytest.mark.timeout(600)
def test_a_round_without_workers_ends_after_a_signal(tmp_path: Path, idle_pool: tuple[IdlePool, str]) -> None:
    pool, address = idle_pool
    with engine("in_memory", tmp_path) as crawl, job_service(tmp_path / "service.log", 1) as service:
        crawl.inject()
        crawl.engine_flags = ["--runner=PortableRunner", f"--job_endpoint={service.address}"]
        crawl.engine_flags += ["--environment_type=EXTERNAL", f"--environment_config={address}"]
        process = crawl.start()
        clock = SystemClock()
        while not pool.asked and process.poll() is None:
            clock.wait(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(400) == 1
        said = (tmp_path / "round.err").read_text().splitlines()[-1]
        assert "was stopped" in said or "ended without a manifest" in said
        assert "to resume: python -m pipelines.round" in said
