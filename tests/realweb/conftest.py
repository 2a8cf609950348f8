"""Real HTML that no one here wrote: Debian's documentation packages behind a real web server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

PACKAGES = ("nginx-light", "apache2-doc", "python3-doc", "postgresql-doc-15")
ROOTS = {
    "httpd.example": Path("/usr/share/doc/apache2-doc/manual"),
    "python.example": Path("/usr/share/doc/python3.11/html"),
    "postgres.example": Path("/usr/share/doc/postgresql-doc-15/html"),
}
SEEDS = (
    "http://httpd.example/en/index.html",
    "http://python.example/index.html",
    "http://postgres.example/index.html",
)
ROUNDS = 12

NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 256; }}
http {{
  types {{ text/html html; text/css css; text/plain txt; image/png png; image/gif gif; }}
  default_type application/octet-stream;
  access_log {folder}/access.log;
  keepalive_requests 100000;
  port_in_redirect off;
  gzip on;
  gzip_types text/plain;
  {servers}
  server {{ listen 127.0.0.1:{port} default_server; return 404; }}
}}
"""
SERVER = "server {{ listen 127.0.0.1:{port}; server_name {name}; root {root}; {more} }}"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave this folder out of a run that does not ask for it."""
    return None if os.environ.get("REALWEB") else True


@dataclass
class RealCrawl:
    """A finished crawl of the documentation sites, and where their files lie."""

    folder: Path
    seconds: float

    def rows(self, query: str) -> list[tuple]:
        """Run SQL; {captures} and the like stand for the tables."""
        names = ("captures", "pages", "links", "duplicates")
        sources = {name: f"read_parquet('{self.folder}/tables/{name}/*/*.parquet')" for name in names}
        return duckdb.sql(query.format(**sources)).fetchall()

    @staticmethod
    def file_of(url: str) -> Path:
        """Return the file that a URL of these sites names."""
        host, _, path = url.removeprefix("http://").partition("/")
        file = ROOTS[host] / path.partition("?")[0]
        return file / "index.html" if file.is_dir() else file


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def install() -> None:
    """Install the packages that are missing, with Debian's own client."""
    missing = [
        name for name in PACKAGES if subprocess.run(["dpkg", "-s", name], capture_output=True).returncode
    ]
    if missing:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], check=True)


@pytest.fixture(scope="session")
def web_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Return the port of an nginx that serves the packages as virtual hosts."""
    install()
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    # Served without a charset, so that the pages themselves have to say theirs.
    servers = [SERVER.format(port=port, name=name, root=root, more="") for name, root in ROOTS.items()]
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, servers="\n  ".join(servers)))
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([program, "-p", str(folder), "-c", str(config)])
    try:
        wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)


def wait_for(port: int, seconds: float = 10.0) -> None:
    """Return when something listens on a loopback port; fail after ``seconds``."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise TimeoutError(f"nothing listens on port {port}")


def command(name: str, *arguments: str) -> list[str]:
    """Return the command line of one of the product's commands."""
    return [sys.executable, "-m", f"pipelines.{name}", *arguments]


@pytest.fixture(scope="session")
def real_crawl(web_port: int, tmp_path_factory: pytest.TempPathFactory) -> RealCrawl:
    """Crawl the sites until nothing is due any more."""
    folder = tmp_path_factory.mktemp("realweb") / "crawl"
    subprocess.run(
        command("inject", f"--crawl={folder}", "--scope=host", "--salt=realweb", *SEEDS), check=True
    )
    flags = [
        f"--rounds={ROUNDS}",
        f"--connect_to=::127.0.0.1:{web_port}",
        "--min_delay_seconds=0",
        "--latency_factor=0",
        "--round_minutes=10",
    ]
    started = time.monotonic()
    subprocess.run(command("round", f"--crawl={folder}", *flags), check=True)
    return RealCrawl(folder, time.monotonic() - started)
