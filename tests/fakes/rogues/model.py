"""The nouns of the rogue web: one misbehaviour, one request that meets it, and builders of replies."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.fakes.raw_server import Peer


@dataclass(frozen=True)
class Turn:
    """One request to a rogue: the connection, the request head, host and path, and ports of other listeners."""

    peer: Peer
    head: bytes
    host: str
    path: str
    ports: dict[str, int]

    def send(self, data: bytes) -> None:
        """Send ``data`` at once."""
        self.peer.send(data)


Act = Callable[[Turn], bool | None]
"""Answers one request; True when the connection may carry another one."""


class Rogue(NamedTuple):
    """A misbehaviour and what must become of its URL.

    ``host`` is ``{name}.example`` unless ``url`` says otherwise. ``reach`` names the listener that its
    connections go to, or ``dns`` when its name is looked up. ``end`` is the outcome of the last hop of its
    redirects, ``truncated`` what captures say of the body, ``hosts`` further names that it uses.
    """

    kind: str
    name: str
    what: str
    outcome: str
    reason: str | None = None
    act: Act | None = None
    robots: Act | None = None
    url: str = ""
    reach: str = "http"
    truncated: str | None = None
    end: tuple[str, str | None] | None = None
    hosts: tuple[str, ...] = ()
    records: tuple[tuple[str, str, tuple], ...] = ()
    quick: bool = False

    @property
    def host(self) -> str:
        """The host name of the misbehaviour."""
        return f"{self.name}.example"

    @property
    def seed(self) -> str:
        """The URL that meets it."""
        return self.url or f"{'https' if self.reach.startswith('tls') else 'http'}://{self.host}/"


class Catalogue:
    """The misbehaviours of one kind after the other, each with a name of its own."""

    def __init__(self) -> None:
        self.rogues: list[Rogue] = []

    def add(
        self, kind: str, name: str, what: str, outcome: str, reason: str | None = None, **more: Any
    ) -> None:
        """Add a misbehaviour."""
        assert name not in {rogue.name for rogue in self.rogues}, name
        self.rogues.append(Rogue(kind, name, what, outcome, reason, **more))

    def sends(self, kind: str, name: str, what: str, data: bytes, *outcome: Any, **more: Any) -> None:
        """Add a misbehaviour that answers with these bytes and closes."""
        self.add(kind, name, what, *outcome, act=lambda turn: turn.send(data), **more)

    def robots(self, name: str, what: str, act: Act, *outcome: Any, **more: Any) -> None:
        """Add a misbehaviour of a robots.txt; the page behind it is a good one."""
        self.add("robots.txt", name, what, *outcome, act=good_page, robots=act, **more)

    def act(self, kind: str, name: str, what: str, *outcome: Any, **more: Any) -> Callable[[Act], Act]:
        """Add the decorated function as a misbehaviour."""

        def adding(act: Act) -> Act:
            self.add(kind, name, what, *outcome, act=act, **more)
            return act

        return adding


def words(name: str, count: int = 60) -> str:
    """Return a text that no other name has: pages of the rogue web are no copies of each other."""
    source = random.Random(name)
    return " ".join(
        "".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(3, 9))) for _ in range(count)
    )


def html(name: str, markup: str = "") -> bytes:
    """Return a small page with a text of its own."""
    return f"<html><title>{name}</title><body><article><p>{words(name)}</p></article>{markup}</body></html>".encode()


def reply(body: bytes, *headers: bytes, status: bytes = b"200 OK", media_type: bytes = b"text/html") -> bytes:
    """Return a whole and correct reply."""
    lines = [
        b"HTTP/1.1 " + status,
        b"Content-Type: " + media_type,
        *headers,
        b"Content-Length: %d" % len(body),
    ]
    return b"\r\n".join([*lines, b"", body])


def raw(*lines: bytes, body: bytes = b"") -> bytes:
    """Return status line and header fields as given, then the body."""
    return b"\r\n".join([*lines, b"", body])


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """Return a chunked reply of raw chunk bytes."""
    head = raw(b"HTTP/1.1 200 OK", b"Content-Type: text/html", b"Transfer-Encoding: chunked")
    return head + b"".join(chunks) + end


def chunk(data: bytes) -> bytes:
    """Return one correct chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def good_page(turn: Turn) -> bool:
    """Answer with a good page."""
    turn.send(reply(html(turn.host + turn.path)))
    return True


def no_robots(turn: Turn) -> bool:
    """Say that there is no robots.txt."""
    turn.send(reply(b"none", status=b"404 Not Found", media_type=b"text/plain"))
    return True
