"""Content codings that swell, break off or lie, and cookies."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable
from functools import cache

import brotli
import zstandard

from tests.fakes.rogues.model import Catalogue, Turn, html, reply

MB = 1_000_000
BOMB_MB = 100
BOMBS = {
    "bomb-gzip": ("100 MB in 100 KB of gzip", b"gzip"),
    "bomb-deflate": ("100 MB in 100 KB of deflate", b"deflate"),
    "bomb-br": ("100 MB in 100 bytes of brotli, unasked", b"br"),
    "bomb-zstd": ("100 MB in 10 KB of zstd, unasked", b"zstd"),
    "bomb-nested": ("gzip in gzip in gzip: 100 MB in 1 KB", b"gzip, gzip, gzip"),
}


def add_codings(web: Catalogue) -> None:
    kind = "content coding"
    for name, (what, coding) in BOMBS.items():
        web.act(kind, name, what, "fetched", truncated="length", quick=name == "bomb-nested")(
            _bombing(coding)
        )
    body = html("coding")
    lies = {
        "coding-lie": ("plain text under gzip", b"gzip", html("coding-lie")),
        "coding-unknown": ("a coding that nobody knows", b"x-made-up", html("coding-unknown")),
        "coding-many": ("ten codings at once", b", ".join([b"gzip"] * 10), html("coding-many")),
        "coding-cut": ("gzip that breaks off", b"gzip", gzip.compress(html("coding-cut"), mtime=0)[:-20]),
        "coding-crc": (
            "gzip with a wrong checksum",
            b"gzip",
            gzip.compress(html("coding-crc"), mtime=0)[:-8] + b"x" * 8,
        ),
        "coding-raw": ("bare deflate under deflate", b"deflate", _bare_deflate(html("coding-raw"))),
        "coding-members": ("50,000 members of gzip", b"gzip", gzip.compress(b"", mtime=0) * 50_000 + body),
    }
    for name, (what, coding, data) in lies.items():
        web.sends(kind, name, what, reply(data, b"Content-Encoding: " + coding), "fetched")


def add_cookies(web: Catalogue) -> None:
    kind = "cookies"
    flood = [b"Set-Cookie: c%d=%s" % (n, b"x" * 200) for n in range(240)]
    web.sends(
        kind, "cookie-flood", "240 cookies of 200 bytes", reply(html("cookie-flood"), *flood), "fetched"
    )

    @web.act(
        kind,
        "cookie-gate",
        "a page only for who returns a cookie",
        "redirected",
        "redirect_followed",
        end=("fetched", None),
    )
    def _(turn: Turn) -> None:
        if b"Cookie: pass=1\r\n" in turn.head:
            turn.send(reply(html("cookie-gate")))
        else:
            turn.send(reply(b"", b"Location: /in", b"Set-Cookie: pass=1; Path=/", status=b"302 Go"))

    @web.act(
        kind,
        "cookie-injects",
        "a cookie that would add header fields",
        "redirected",
        "redirect_followed",
        end=("fetched", None),
        quick=True,
    )
    def _(turn: Turn) -> None:
        if turn.path == "/in":
            clean = b"\nX-Evil" not in turn.head and b"\x1b" not in turn.head
            turn.send(
                reply(
                    html("cookie-injects") if clean else b"", status=b"200 OK" if clean else b"500 Injected"
                )
            )
        else:
            turn.send(reply(b"", b"Location: /in", b"Set-Cookie: a=1\x1b\x0bX-Evil: 1", status=b"302 Go"))

    @web.act(kind, "cookie-later", "a cookie that must not come back on another visit", "fetched")
    def _(turn: Turn) -> None:
        turn.send(reply(html("cookie-later"), b"Set-Cookie: track=1", b"Link: </robots.txt>; rel=next"))


def prepare(names: Iterable[str]) -> None:
    """Pack the bombs among these misbehaviours: it takes longer than a crawler waits for a reply."""
    for name in set(names) & set(BOMBS):
        bomb(BOMBS[name][1])


@cache
def bomb(coding: bytes) -> bytes:
    """Return a page with 100 MB of white space, packed."""
    data = html(coding.decode()) + b" " * (BOMB_MB * MB)
    if coding == b"deflate":
        return zlib.compress(data, 9)
    if coding == b"br":
        return brotli.compress(data, quality=3)
    if coding == b"zstd":
        return zstandard.compress(data, 3)
    for _ in range(coding.count(b"gzip")):
        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
            file.write(data)
        data = packed.getvalue()
    return data


def _bombing(coding: bytes):
    def act(turn: Turn) -> bool:
        turn.send(reply(bomb(coding), b"Content-Encoding: " + coding))
        return True

    return act


def _bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()
