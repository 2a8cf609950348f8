"""`python -m runners.worker_pool`: starts Python workers on this machine for engines that ask for them.

Beam's own pool listens on every interface and leaves its workers behind when it is ended; this one listens where
it is told to, loopback by default, and ends them.
"""

from __future__ import annotations

import argparse
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from runners.logs import start_logging
from runners.options import EXIT_DONE, EXIT_USAGE

if __name__ == "__main__":
    start_logging()  # Beam, when imported first, would do it its own way.

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.utils.thread_pool_executor import shared_unbounded_instance

ADDRESS = "127.0.0.1:50000"
END_SECONDS = 10
ENDPOINTS = ("logging_endpoint", "artifact_endpoint", "provision_endpoint", "control_endpoint")

log = logging.getLogger("runners.worker_pool")


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """One process for each worker that an engine asks for; it has the pool's stderr and no stdout."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    def StartWorker(self, request: Any, context: Any) -> Any:
        """Start a worker process; the answer names the error when it cannot be started."""
        endpoints = [f"--{name}={getattr(request, name).url}" for name in ENDPOINTS]
        command = [sys.executable, "-m", "runners.worker_boot", f"--id={request.worker_id}", *endpoints]
        try:
            worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(error=str(error))
        with self._lock:
            self._workers[request.worker_id] = worker
        log.info("worker %s: started as process %d", request.worker_id, worker.pid)
        threading.Thread(target=self._watch, args=(request.worker_id, worker), daemon=True).start()
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:
        """End a worker process; one that is not known is none."""
        with self._lock:
            worker = self._workers.pop(request.worker_id, None)
        if worker is not None:
            _end(worker)
        return beam_fn_api_pb2.StopWorkerResponse()

    def _watch(self, name: str, worker: subprocess.Popen[bytes]) -> None:
        """Forget a worker when its process ends: some engines only close its connection."""
        code = worker.wait()
        with self._lock:
            if self._workers.get(name) is worker:
                del self._workers[name]
        log.info("worker %s: process %d ended with %d", name, worker.pid, code)

    def close(self) -> None:
        """End every worker process."""
        with self._lock:
            workers, self._workers = self._workers, {}
        for worker in workers.values():
            worker.terminate()
        for worker in workers.values():
            _end(worker)


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.terminate()
    try:
        worker.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT; print the address as soon as the pool listens."""
    parser = argparse.ArgumentParser(prog="python -m runners.worker_pool", allow_abbrev=False)
    parser.add_argument("--address", default=ADDRESS, help=f"HOST:PORT to listen on (default {ADDRESS})")
    address = parser.parse_args(list(argv)).address
    start_logging()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    pool = WorkerPool()
    server = grpc.server(shared_unbounded_instance())
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        sys.stderr.write(f"worker_pool: --address={address} cannot be listened on\n")
        return EXIT_USAGE
    server.start()
    sys.stdout.write(f"{address.rpartition(':')[0]}:{port}\n")
    sys.stdout.flush()
    ended.wait()
    server.stop(0)
    pool.close()
    return EXIT_DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
