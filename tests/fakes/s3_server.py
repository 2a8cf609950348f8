"""`python -m tests.fakes.s3_server PORT`: moto's S3 on loopback, one write at a time.

Its conditional writes look first and write afterwards; a real store does both at once, so writes wait for each other.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def one_write_at_a_time(app: WSGI) -> WSGI:
    """Return the application with its writes in turn."""
    writing = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return app(environ, start_response)
        with writing:
            return app(environ, start_response)

    return answer


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        one_write_at_a_time(DomainDispatcherApplication(create_backend_app)),
        threaded=True,
    )
