"""Redirects and robots.txt as weapons."""

from __future__ import annotations

import gzip

from tests.fakes.rogues.model import Act, Catalogue, Turn, html, no_robots, raw, reply

FOLLOWED = ("redirected", "redirect_followed")
QUEUED = ("redirected", "redirect_queued")
INVALID = ("redirected", "redirect_invalid")
UNREACHABLE = ("deferred", "robots_unreachable")


def moved(location: bytes, *headers: bytes) -> bytes:
    """Return a redirect."""
    return reply(b"", b"Location: " + location, *headers, status=b"301 Moved")


def add_redirects(web: Catalogue) -> None:
    kind = "redirects"
    to = {
        "to-file": (b"file:///etc/passwd", "to a file", INVALID),
        "to-script": (b"javascript:alert(1)", "to a script", INVALID),
        "to-data": (b"data:text/html,<p>x", "to a data: URL", INVALID),
        "to-gopher": (b"gopher://127.0.0.1:6379/_FLUSHALL", "to gopher, as to a database", INVALID),
        "to-nothing": (b"", "to an empty Location", INVALID),
        "to-bad-host": (b"http://[::1/", "to a host that is none", INVALID),
        "to-controls": (
            b"http://to-controls.example/\x1b[2Ja\x00b",
            "to a URL with control characters",
            FOLLOWED,
        ),
        "to-metadata": (b"http://169.254.169.254/latest/meta-data/", "to the cloud's metadata", QUEUED),
        "to-decimal": (b"http://2130706433/", "to loopback, spelled as one number", QUEUED),
        "to-hex": (b"http://0x7f.0.0.0x1/", "to loopback, spelled in hex", QUEUED),
        "to-user": (b"http://to-user.example@10.0.0.1/", "to a private address behind a user name", QUEUED),
        "to-ssh": (b"http://to-ssh.example:22/", "to port 22 of its own host", QUEUED),
        "to-long": (b"/" + b"a" * 60_000, "to a URL of 60 KB", QUEUED),
    }
    for name, (location, what, outcome) in to.items():
        end = {"end": ("fetched", None)} if outcome == FOLLOWED else {}
        web.act(kind, name, what, *outcome, quick=name in ("to-metadata", "to-ssh"), **end)(_once(location))

    web.sends(kind, "to-nowhere", "without a Location", reply(b"", status=b"301 Moved"), *INVALID)
    web.sends(
        kind,
        "to-two",
        "with two Locations",
        moved(b"/x\r\nLocation: http://10.0.0.1/"),
        *FOLLOWED,
        end=("gone", "redirect_loop"),
    )

    @web.act(kind, "to-silent", "to a listener on loopback that must stay silent", *QUEUED, quick=True)
    def _(turn: Turn) -> bool:
        turn.send(moved(b"http://127.0.0.1:%d/" % turn.ports["silent"]))
        return True

    @web.act(kind, "loop-self", "to itself", "gone", "redirect_loop", quick=True)
    def _(turn: Turn) -> bool:
        turn.send(moved(b"/"))
        return True

    @web.act(kind, "loop-two", "in a circle of two", *FOLLOWED, end=("gone", "redirect_loop"))
    def _(turn: Turn) -> bool:
        turn.send(moved(b"/b" if turn.path == "/" else b"/"))
        return True

    @web.act(kind, "chain-endless", "without end on one host", *FOLLOWED, end=("gone", "too_many_redirects"))
    def _(turn: Turn) -> bool:
        turn.send(moved(b"/%d" % (int(turn.path[1:] or 0) + 1)))
        return True

    hosts = tuple(f"h{n}.chain-hosts.example" for n in range(1, 8))

    @web.act(
        kind,
        "chain-hosts",
        "from host to host without end",
        *FOLLOWED,
        end=("gone", "too_many_redirects"),
        hosts=hosts,
    )
    def _(turn: Turn) -> bool:
        number = int(turn.host[1:].partition(".")[0]) if turn.host[0] == "h" else 0
        turn.send(moved(b"http://h%d.chain-hosts.example/" % (number + 1)))
        return True

    @web.act(
        kind,
        "redirect-flood",
        "with a body without end",
        *FOLLOWED,
        truncated="length",
        end=("fetched", None),
    )
    def _(turn: Turn) -> None:
        if turn.path == "/end":
            turn.send(reply(html("redirect-flood")))
        else:
            turn.send(raw(b"HTTP/1.1 302 Go", b"Location: /end"))
            turn.peer.flood(b"moved " * 10_000, 1 << 34)


def add_robots(web: Catalogue) -> None:
    big = b"User-agent: *\n" + b"Disallow: /*a*a*a*a*a*a*a*a*b$\n" * 16_000
    distinct = b"User-agent: *\n" + b"".join(b"Disallow: /*%x*\n" % n for n in range(1, 33_000))
    last_word = b"User-agent: *\nDisallow: /x\n" + b"#" * 600_000 + b"\nDisallow: /\n"
    web.robots("robots-binary", "random bytes", _text(bytes(range(256)) * 500), "fetched")
    web.robots("robots-html", "a page instead of rules", _text(html("rules")), "fetched")
    web.robots("robots-wildcards", "500 KB of patterns full of wildcards", _text(big), "fetched", quick=True)
    web.robots("robots-rules", "33,000 patterns", _text(distinct), "fetched")
    web.robots("robots-late", "a rule behind the 500 KiB that are read", _text(last_word), "fetched")
    web.robots(
        "robots-stars",
        "one pattern of 500,000 stars",
        _text(b"User-agent: *\nDisallow: /" + b"*" * 500_000),
        "robots_denied",
        "robots_rule",
    )
    web.robots(
        "robots-nul",
        "rules between NULs and broken UTF-8",
        _text(b"\xef\xbb\xbf\0\0\r\nUser-agent: *\r\nDisallow: /\0\xff\r\rDisallow: /"),
        "robots_denied",
        "robots_rule",
    )
    web.robots(
        "robots-ages",
        "a Crawl-delay of 30 years",
        _text(b"User-agent: *\nCrawl-delay: 999999999\n"),
        "deferred",
        "round_deadline",
    )
    web.robots(
        "robots-nan",
        "delays that are no numbers",
        _text(b"User-agent: *\nCrawl-delay: nan\nCrawl-delay: -5\nRequest-rate: 0/0\nRequest-rate: 1/0s\n"),
        "fetched",
    )
    bomb = gzip.compress(b"User-agent: *\nDisallow: /x\n" + b"#" * 50_000_000, mtime=0)
    web.robots("robots-bomb", "rules that swell to 50 MB", _text(bomb, b"Content-Encoding: gzip"), "fetched")
    web.robots(
        "robots-loop", "a redirect to itself", lambda turn: turn.send(moved(b"/robots.txt")), "fetched"
    )
    web.robots(
        "robots-chain",
        "redirects without end",
        lambda turn: turn.send(moved(b"/robots.txt?" + b"x" * (len(turn.path) % 50))),
        "fetched",
    )
    web.robots(
        "robots-away",
        "a redirect to another domain",
        lambda turn: turn.send(moved(b"http://elsewhere.example/robots.txt")),
        "deferred",
        "robots_redirect",
    )
    web.robots(
        "robots-private",
        "a redirect to a private address",
        lambda turn: turn.send(moved(b"http://10.99.0.1/robots.txt")),
        "deferred",
        "robots_redirect",
    )
    web.robots(
        "robots-lost",
        "a redirect to a host that is not there",
        lambda turn: turn.send(moved(b"http://lost.robots-lost.example/robots.txt")),
        *UNREACHABLE,
    )
    web.robots(
        "robots-garbage", "an answer that is not HTTP", lambda turn: turn.send(b"go away\r\n"), *UNREACHABLE
    )
    web.robots("robots-silent", "silence", lambda turn: turn.peer.hold(), *UNREACHABLE)
    web.robots(
        "robots-503",
        "503, come back in a year",
        lambda turn: turn.send(reply(b"busy", b"Retry-After: 31536000", status=b"503 Busy")),
        *UNREACHABLE,
    )

    def endless(turn: Turn) -> None:
        turn.send(raw(b"HTTP/1.1 200 OK", b"Content-Type: text/plain"))
        turn.peer.flood(b"User-agent: *\nDisallow: /x\n" * 1000, 1 << 34)

    def slow(turn: Turn) -> None:
        turn.send(raw(b"HTTP/1.1 200 OK", b"Content-Type: text/plain", body=b"User-agent: *\n"))
        turn.peer.drip(b"Disallow: /x\n" * 1000, 0.05)

    web.robots("robots-endless", "rules without end", endless, "fetched", quick=True)
    web.robots("robots-slow", "rules of one byte every 50 ms", slow, *UNREACHABLE)


def _once(location: bytes) -> Act:
    """Redirect from the root; whatever else is asked for is a page."""

    def act(turn: Turn) -> bool:
        turn.send(moved(location) if turn.path == "/" else reply(html(turn.host)))
        return True

    return act


def _text(body: bytes, *headers: bytes) -> Act:
    def act(turn: Turn) -> bool:
        if turn.path == "/robots.txt":
            turn.send(reply(body, *headers, media_type=b"text/plain"))
            return True
        return no_robots(turn)

    return act
