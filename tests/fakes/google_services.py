"""What a Dataflow submission talks to besides the store: a token endpoint, and the call that makes a job."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


class GoogleServices(ThreadingHTTPServer):
    """Answers every token request, and every job with the state that is asked for; runs nothing.

    ``jobs`` holds the bodies of the job-creation calls.
    """

    daemon_threads = True

    def __init__(self, state: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state = state
        self.jobs: list[dict[str, Any]] = []
        self.asked: list[str] = []

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: GoogleServices

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(f"POST {self.path}")
        if self.path.startswith("/token"):
            self._answer({"access_token": "fake", "expires_in": 3600, "token_type": "Bearer"})
        elif "/jobs" in self.path:
            self.server.jobs.append(json.loads(body))
            self._answer(self._job())
        else:
            self._answer({})

    def do_GET(self) -> None:
        self.server.asked.append(f"GET {self.path}")
        self._answer(self._job() if "/messages" not in self.path else {})

    def _job(self) -> dict[str, str]:
        name = self.server.jobs[-1]["name"] if self.server.jobs else ""
        place = {"projectId": "my-project", "location": "us-central1"}
        return {
            "id": f"job-{len(self.server.jobs)}",
            "name": name,
            "currentState": self.server.state,
            **place,
        }

    def _answer(self, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def google_services(state: str = "JOB_STATE_DONE") -> Iterator[GoogleServices]:
    """Serve GoogleServices for the block."""
    server = GoogleServices(state)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_credentials(path: Path, services: GoogleServices) -> None:
    """Write a service account's key file whose tokens come from ``services``; the key is thrown away."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "throw-away",
        "private_key": private.decode(),
        "client_email": "crawler@my-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"http://127.0.0.1:{services.port}/token",
    }
    path.write_text(json.dumps(account))
