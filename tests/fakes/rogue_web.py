"""A web in which every host misbehaves, on loopback: listeners, names, seeds, and what must become of each.

`python -m tests.fakes.rogue_web` prints the table of docs/hostile.md.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.fakes.certificates import CertificateAuthority
from tests.fakes.dns_server import DnsServer
from tests.fakes.raw_server import Peer, RawServer
from tests.fakes.rogues import bombs, endless, network, pages, replies, sites
from tests.fakes.rogues.model import Catalogue, Rogue, Turn, no_robots

POLICY = "domains:\n  tls-allowed.example: {insecure_tls: true}\n"
HEAD = "| misbehaviour | what it does | outcome | reason | then |\n|---|---|---|---|---|\n"


def catalogue() -> list[Rogue]:
    """Return every misbehaviour, by kind."""
    web = Catalogue()
    replies.add_status_lines(web)
    replies.add_header_fields(web)
    replies.add_framing(web)
    endless.add_time_and_size(web)
    bombs.add_codings(web)
    bombs.add_cookies(web)
    sites.add_redirects(web)
    sites.add_robots(web)
    pages.add_pages(web)
    network.add_tls(web)
    network.add_names(web)
    network.add_addresses(web)
    return web.rogues


def table(rogues: Sequence[Rogue]) -> str:
    """Return the misbehaviours as sections of a Markdown page."""
    sections: dict[str, list[str]] = defaultdict(list)
    for rogue in rogues:
        notes = []
        if rogue.truncated:
            notes.append(f"truncated: {rogue.truncated}")
        if rogue.end:
            notes.append(f"at its end {' '.join(filter(None, rogue.end))}")
        cells = (rogue.name, rogue.what, rogue.outcome, rogue.reason or "", ", ".join(notes))
        sections[rogue.kind].append(f"| {' | '.join(cells)} |\n")
    return "\n".join(f"### {kind}\n{HEAD}{''.join(rows)}" for kind, rows in sections.items())


class RogueWeb:
    """Serves misbehaviours; ``silent`` is a listener that nobody may connect to.

    ``asked`` counts the requests for each host. ``ca_file`` is the authority that the TLS hosts' certificates
    come from, all but the unsigned ones.
    """

    def __init__(self, rogues: Sequence[Rogue], folder: Path) -> None:
        self.rogues = rogues
        self._by_host = {host: rogue for rogue in rogues for host in (rogue.host, *rogue.hosts)}
        authority, stranger = CertificateAuthority(folder), CertificateAuthority(_made(folder / "stranger"))
        self.ca_file = authority.ca_file
        self._contexts = {
            "tls-unknown.example": stranger.server_context("tls-unknown.example"),
            "tls-allowed.example": stranger.server_context("tls-allowed.example"),
            "tls-expired.example": authority.server_context("tls-expired.example", expired=True),
        }
        context = authority.server_context("other.example")
        context.sni_callback = self._choose_certificate
        self.http = RawServer(self._serve)
        self.silent = RawServer(self._serve)
        self.servers = {
            "http": self.http,
            "silent": self.silent,
            "tls": RawServer(self._serve, tls=context),
            "tls-plain": RawServer(_speak_plainly),
            "tls-garbage": RawServer(lambda peer: peer.send(bytes(range(256)) * 4)),
            "tls-silent": RawServer(lambda peer: peer.hold()),
            "tls-resets": RawServer(lambda peer: peer.reset()),
        }
        records = {(name, kind): answer for rogue in rogues for name, kind, answer in rogue.records}
        self.names = DnsServer(records)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> RogueWeb:
        bombs.prepare(rogue.name for rogue in self.rogues)
        for server in self.servers.values():
            self._stack.enter_context(server)
        self._stack.enter_context(self.names)
        self.ports = {name: server.port for name, server in self.servers.items()}
        self.ports["closed"] = self._reserve().getsockname()[1]
        self.ports["hole"] = self._black_hole()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def seeds(self) -> list[str]:
        """Return the URL of every misbehaviour, as it is injected."""
        return [rogue.seed for rogue in self.rogues]

    def flags(self) -> list[str]:
        """Return the command line that leads every host to its listener, and all other names to our server."""
        rules = [
            f"--connect_to={host}:{443 if rogue.reach.startswith('tls') else 80}:127.0.0.1:{self.ports[rogue.reach]}"
            for host, rogue in self._by_host.items()
            if rogue.reach != "dns"
        ]
        return [*rules, f"--nameservers=127.0.0.1:{self.names.nameserver.port}"]

    def _serve(self, peer: Peer) -> None:
        going_on: bool | None = True
        while going_on and (head := peer.read_request()):
            fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
            host = fields[b"Host"].decode().partition(":")[0]
            turn = Turn(peer, head, host, head.split(b" ")[1].decode(), self.ports)
            rogue = self._by_host[host]
            act = (rogue.robots or no_robots) if turn.path.startswith("/robots.txt") else rogue.act
            assert act is not None, rogue.name
            going_on = act(turn)

    def _choose_certificate(self, sock: ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        if name in self._contexts:
            sock.context = self._contexts[name]

    def _reserve(self) -> socket.socket:
        sock = self._stack.enter_context(socket.socket())
        sock.bind(("127.0.0.1", 0))
        return sock

    def _black_hole(self) -> int:
        """Return a port whose queue of connections is full, so that new ones get no answer at all."""
        sock = self._reserve()
        sock.listen(0)
        for _ in range(4):
            filler = self._stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(sock.getsockname())
        return int(sock.getsockname()[1])


def _speak_plainly(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 400 Speak TLS\r\nContent-Length: 0\r\n\r\n")
    peer.hold()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


if __name__ == "__main__":
    print(table(catalogue()))
