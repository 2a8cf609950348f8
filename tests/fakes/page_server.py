"""Serves a folder of HTML files as virtual hosts on loopback, gzip-compressed, in a process of its own."""

from __future__ import annotations

import gzip
import http.server
import json
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers /N.html with the N-th file; /robots.txt with 404; keeps connections."""

    protocol_version = "HTTP/1.1"
    bodies: ClassVar[list[bytes]] = []
    first_at: ClassVar[list[float]] = []
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Send one page."""
        if not self.first_at:
            self.first_at.append(time.time())
        name = self.path.rsplit("/", 1)[-1].removesuffix(".html")
        found = name.isdigit() and int(name) < len(self.bodies)
        body = self.bodies[int(name)] if found else b"not here"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if found:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve the files of a folder, sorted by name; print the port; on end of input print the first request's time."""
    Handler.bodies = [
        gzip.compress(path.read_bytes(), 6) for path in sorted(Path(sys.argv[1]).glob("*.html"))
    ]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    print(json.dumps({"first_at": Handler.first_at[:1]}), flush=True)


if __name__ == "__main__":
    main()
