"""Emulators of object stores on loopback: started by whoever needs them, ended with their block."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from connectors.clock import SystemClock

ROOT = Path(__file__).parents[2]
FAKE_GCS = ROOT / ".cache" / "bin" / "fake-gcs-server"
FAKE_GCS_SOURCE = "github.com/fsouza/fake-gcs-server@v1.56.1"
BUCKET = "crawls"
START_SECONDS = 300


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def served(port: int, *command: str) -> Iterator[None]:
    """Run a server for the block; begin when it listens."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for_port(port, process)
        yield
    finally:
        process.terminate()
        process.wait(60)


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    clock = SystemClock()
    end = clock.monotonic() + START_SECONDS
    while clock.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        clock.wait(0.1)
    raise RuntimeError(f"{process.args!r} does not listen on port {port}")


def fake_gcs() -> Path:
    """Return the emulator's program, built with the Go toolchain if it is not there yet."""
    if not FAKE_GCS.exists():
        FAKE_GCS.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOBIN": str(FAKE_GCS.parent)}
        subprocess.run(["go", "install", FAKE_GCS_SOURCE], env=environment, check=True)
    return FAKE_GCS


@contextlib.contextmanager
def gcs_emulator(data: Path | None = None) -> Iterator[str]:
    """Serve an emulator that honours generation conditions, with the bucket ``crawls``; yield its address.

    ``data`` is a folder with a folder a bucket, whose files are there from the start.
    """
    port = free_port()
    host = f"127.0.0.1:{port}"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    names = ["-public-host", host, "-external-url", f"http://{host}"]
    given = ["-data", str(data)] if data else []
    with served(port, str(fake_gcs()), *options, *names, *given):
        if data is None:
            bucket = urllib.request.Request(
                f"http://{host}/storage/v1/b?project=x",
                data=b'{"name": "%s"}' % BUCKET.encode(),
                headers={"Content-Type": "application/json"},
            )
            urllib.request.urlopen(bucket).close()
        yield f"http://{host}"


@contextlib.contextmanager
def s3_emulator() -> Iterator[str]:
    """Serve an emulator that honours If-Match and If-None-Match, with the bucket ``crawls``."""
    port = free_port()
    with served(port, sys.executable, "-m", "tests.fakes.s3_server", str(port)):
        bucket = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
        urllib.request.urlopen(bucket).close()
        yield f"http://127.0.0.1:{port}"
