"""CPU of one https fetch over a fresh connection, against requests as everyone writes it."""

from __future__ import annotations

import contextlib
import gzip
import multiprocessing
import resource
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import requests
from requests.adapters import HTTPAdapter

from connectors.clock import SystemClock
from connectors.dns import Resolver
from connectors.http import HttpFetcher
from connectors.routes import AddressPolicy
from schemas.fetch import Capture, FetchRequest
from tests.fakes.certificates import CertificateAuthority

PAGE_BYTES = 153_000


def page() -> bytes:
    """Return a page of 153 KB that gzip makes about 29 KB, as real ones are on average."""
    lines = (
        f"<p class=c{n % 7}>{n * 7919 % 100_003} a line of words, number {n}</p>\n" for n in range(5_000)
    )
    return gzip.compress("".join(lines)[:PAGE_BYTES].encode(), 6)


def run(fetches: int = 150) -> dict[str, float]:
    """Return CPU milliseconds of the client process per fetch, and the ratios.

    The server runs in a process of its own and closes after each reply. Every client trusts the public
    bundle plus the test authority, so that what loading it costs is the real cost.
    """
    with tempfile.TemporaryDirectory() as folder:
        authority = CertificateAuthority(Path(folder))
        bundle = Path(folder) / "bundle.pem"
        public = Path(requests.utils.DEFAULT_CA_BUNDLE_PATH).read_bytes()
        bundle.write_bytes(public + Path(authority.ca_file).read_bytes())
        with _server(authority.server_file("localhost")) as port:
            url = f"https://localhost:{port}/"
            fetcher = _fetcher(str(bundle))
            ours = _cpu_millis(lambda: _check(fetcher, url), fetches)
            concurrent = _concurrent_cpu_millis(lambda: _check(fetcher, url), fetches)
            session = requests.Session()
            session.mount("https://", _SharedContext(str(bundle)))
            cured = _cpu_millis(lambda: _cured(session, url), fetches)
            plain = _cpu_millis(lambda: _plain(url, str(bundle)), max(10, fetches // 10))
    return {
        "fetches": fetches,
        "cpu_millis_fresh_https": ours,
        "cpu_millis_fresh_https_32_threads": concurrent,
        "cpu_millis_plain_requests": plain,
        "cpu_millis_requests_shared_context": cured,
        "plain_over_ours": round(plain / ours, 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _fetcher(ca_file: str) -> HttpFetcher:
    policy = AddressPolicy(lambda address: "loopback", allow_private=True)
    return HttpFetcher(
        "bench/1.0", "mailto:bench@example.org", Resolver(SystemClock()), policy, ca_file=ca_file
    )


def _check(fetcher: HttpFetcher, url: str) -> None:
    outcome = fetcher.fetch(FetchRequest(url))
    assert isinstance(outcome, Capture), outcome
    assert outcome.truncated is None


def _plain(url: str, bundle: str) -> None:
    response = requests.get(url, stream=True, verify=bundle, timeout=10)
    assert response.raw.read(decode_content=False)


class _SharedContext(HTTPAdapter):
    """requests' own adapter, cured of reloading the bundle and of nothing else."""

    def __init__(self, bundle: str) -> None:
        self._context = ssl.create_default_context(cafile=bundle)
        super().__init__()

    def build_connection_pool_key_attributes(self, request, verify, cert=None):
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {"ssl_context": self._context}

    def cert_verify(self, conn, url, verify, cert) -> None:
        """Leave the connection alone: the context verifies."""


def _cured(session: requests.Session, url: str) -> None:
    with session.get(url, stream=True, timeout=10) as response:
        assert response.raw.read(decode_content=False)


def _cpu_millis(action: Callable[[], None], times: int) -> float:
    action()
    began = time.process_time()
    for _ in range(times):
        action()
    return round((time.process_time() - began) / times * 1000, 3)


def _concurrent_cpu_millis(action: Callable[[], None], times: int, threads: int = 32) -> float:
    each = max(1, times // threads)
    workers = [threading.Thread(target=lambda: [action() for _ in range(each)]) for _ in range(threads)]
    began = time.process_time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return round((time.process_time() - began) / (each * threads) * 1000, 3)


@contextlib.contextmanager
def _server(certificate: str) -> Iterator[int]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(certificate, there), daemon=True
    )
    process.start()
    there.close()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def _serve(certificate: str, parent: Connection) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    body = page()
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}"
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    parent.send(listener.getsockname()[1])
    while True:
        sock, _ = listener.accept()
        threading.Thread(
            target=_reply, args=(context, sock, head.encode() + b"\r\n\r\n" + body), daemon=True
        ).start()


def _reply(context: ssl.SSLContext, sock: socket.socket, reply: bytes) -> None:
    with contextlib.suppress(OSError), context.wrap_socket(sock, server_side=True) as tls:
        tls.recv(4096)
        tls.sendall(reply)


if __name__ == "__main__":
    print(run())
