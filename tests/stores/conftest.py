"""Emulators of object stores on loopback, started and ended with the run that asks for this folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from connectors.files import Storage, open_storage

ROOT = Path(__file__).parents[2]
FAKE_GCS = ROOT / ".cache" / "bin" / "fake-gcs-server"
FAKE_GCS_SOURCE = "github.com/fsouza/fake-gcs-server@v1.56.1"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave this folder out unless the command line names it."""
    return None if any("tests/stores" in str(arg) for arg in config.invocation_params.args) else True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    clock = SystemClock()
    end = clock.monotonic() + 60
    while clock.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        clock.wait(0.1)
    raise RuntimeError(f"{process.args!r} does not listen on port {port}")


@contextlib.contextmanager
def served(port: int, *command: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port, process)
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="session")
def gcs_address() -> Iterator[str]:
    """An emulator that honours generation conditions, with the bucket ``crawls``."""
    if not FAKE_GCS.exists():
        FAKE_GCS.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["go", "install", FAKE_GCS_SOURCE], env={**os.environ, "GOBIN": str(FAKE_GCS.parent)}, check=True
        )
    port = free_port()
    host = f"127.0.0.1:{port}"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    names = ["-public-host", host, "-external-url", f"http://{host}"]
    with served(port, str(FAKE_GCS), *options, *names):
        bucket = urllib.request.Request(
            f"http://{host}/storage/v1/b?project=x",
            data=b'{"name": "crawls"}',
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(bucket).close()
        yield f"http://{host}"


@pytest.fixture(scope="session")
def s3_address() -> Iterator[str]:
    """An emulator that honours If-Match and If-None-Match, with the bucket ``crawls``."""
    port = free_port()
    server = str(Path(sys.executable).with_name("moto_server"))
    with served(port, server, "-H", "127.0.0.1", "-p", str(port)):
        bucket = urllib.request.Request(f"http://127.0.0.1:{port}/crawls", method="PUT")
        urllib.request.urlopen(bucket).close()
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=["gs", "s3"])
def scheme(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One kind of store, its emulator named in the environment."""
    name: str = request.param
    if name == "gs":
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", request.getfixturevalue("gcs_address"))
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3_address"))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return name


@pytest.fixture
def storage(scheme: str) -> Storage:
    """An empty storage of its own."""
    return open_storage(f"{scheme}://crawls/test-{secrets.token_hex(8)}")
