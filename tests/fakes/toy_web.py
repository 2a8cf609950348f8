"""A seeded, deterministic web of many hosts, and its truth: which pages exist, which are copies of which."""

from __future__ import annotations

import gzip
import random
import zlib
from dataclasses import dataclass, field, replace

VOWELS, CONSONANTS = "aeiou", "bcdfghklmnprstvz"
HUB = "hub.example"
LAST_MODIFIED = "Mon, 02 Mar 2026 10:00:00 GMT"


@dataclass(frozen=True)
class Reply:
    """What the server sends: a whole reply, and how fast and in which framing."""

    status: int
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = False
    seconds: float = 0.0


@dataclass
class Page:
    """One HTML page of the toy web. ``links`` are absolute or relative hrefs."""

    url: str
    title: str
    text: str
    links: list[str] = field(default_factory=list)
    charset: str = "utf-8"
    copy_of: str | None = None
    similar_to: str | None = None
    head: str = ""


class ToyWeb:
    """Sites of every kind a crawler meets. The same arguments give the same web, byte for byte.

    Args:
        seed: chooses words, links and which page copies which.
        sites: plain content sites, besides the special ones.
        pages: pages of each site.
        robots_delay_seconds: Crawl-delay that one site asks for.
        slow_seconds: how long a slow body takes.
        cap_bytes: size of the body that is over the crawler's cap.
    """

    def __init__(
        self,
        seed: int = 1,
        sites: int = 12,
        pages: int = 8,
        robots_delay_seconds: float = 1.0,
        slow_seconds: float = 0.3,
        cap_bytes: int = 300_000,
    ) -> None:
        self.random = random.Random(seed)
        self.robots_delay_seconds = robots_delay_seconds
        self.slow_seconds = slow_seconds
        self.cap_bytes = cap_bytes
        self.words = self._vocabulary(3000)
        self.pages: dict[str, Page] = {}
        self.replies: dict[str, Reply] = {}
        self.robots: dict[str, Reply] = {}
        self.sites = [f"www.site{n:02d}.example" for n in range(sites)]
        for host in self.sites:
            self._content_site(host, pages)
        self._mirror_site("www.mirror.example", self.sites[0])
        self._near_site("www.near.example", self.sites[1])
        self._robots_sites()
        self._redirect_site("www.moved.example")
        self._trouble_site("www.trouble.example")
        self._charset_site("www.charsets.example")
        self._session_site("www.session.example")
        self._add("http://www.calendar.example/", "Calendar", links=["/calendar/2026/12"])
        hosts = sorted({url.split("/")[2] for url in self.pages} - {HUB, "www.robots-deny.example"})
        self._add(f"http://{HUB}/", "Hub", links=[f"http://{host}/" for host in hosts])

    def seeds(self) -> list[str]:
        """Return the seed URLs: the hub, and one site that no robots.txt lets in."""
        return [f"http://{HUB}/", "http://www.robots-deny.example/"]

    def hosts(self) -> list[str]:
        """Return every host name, sorted."""
        return sorted({url.split("/")[2] for url in [*self.pages, *self.replies]} | set(self.robots))

    def respond(self, host: str, target: str, etag: str | None = None, since: str | None = None) -> Reply:
        """Return the reply to GET ``target`` on ``host``; a pure function of the web.

        Hosts named etag.* send validators and answer 304 to a request whose If-None-Match is ``etag``; those
        named dated.* do so with Last-Modified and ``since``, If-Modified-Since.
        """
        reply = self._answer(host, target)
        if host.startswith("dated.") and reply.status == 200:
            dated = (("Last-Modified", LAST_MODIFIED),)
            if since == LAST_MODIFIED:
                return Reply(304, headers=dated)
            return replace(reply, headers=(*reply.headers, *dated))
        if not host.startswith("etag.") or reply.status != 200:
            return reply
        tag = f'"{zlib.crc32(reply.body):08x}"'
        if etag == tag:
            return Reply(304, headers=(("ETag", tag),))
        return replace(reply, headers=(*reply.headers, ("ETag", tag)))

    def _answer(self, host: str, target: str) -> Reply:
        if target == "/robots.txt":
            return self.robots.get(host, Reply(404, b"no robots here", "text/plain"))
        url = f"http://{host}{target}"
        if url in self.replies:
            return self.replies[url]
        if url in self.pages:
            return self._render(self.pages[url])
        if host == "www.calendar.example" and target.startswith("/calendar/"):
            return self._calendar(target)
        if host == "www.session.example" and "?" in target:
            plain = url.split("?", 1)[0]
            if plain in self.pages:
                return self._render(self.pages[plain])
        return Reply(404, b"<html><title>404</title><body><p>Not here.</p></body></html>")

    def clusters(self) -> list[set[str]]:
        """Return the groups of URLs that hold copies or near copies of one text."""
        groups: dict[str, set[str]] = {}
        for page in self.pages.values():
            origin = page.copy_of or page.similar_to
            if origin:
                groups.setdefault(origin, {origin}).add(page.url)
        return list(groups.values())

    def denied(self) -> set[str]:
        """Return the URLs that robots.txt forbids, as far as pages or replies exist for them."""
        return {
            url
            for url in [*self.pages, *self.replies]
            if url.startswith(("http://www.robots-deny.example/", "http://www.robots-503.example/"))
            or ".example/private" in url
        }

    def _vocabulary(self, count: int) -> list[str]:
        words: set[str] = set()
        while len(words) < count:
            words.add(
                "".join(
                    self.random.choice(CONSONANTS) + self.random.choice(VOWELS)
                    for _ in range(self.random.randint(2, 4))
                )
            )
        return sorted(words)

    def _text(self, words: int) -> str:
        chosen = self.random.choices(self.words, k=words)
        sentences = [" ".join(chosen[i : i + 12]).capitalize() + "." for i in range(0, words, 12)]
        return "\n".join(" ".join(sentences[i : i + 4]) for i in range(0, len(sentences), 4))

    def _add(self, url: str, title: str, links: list[str] | None = None, text: str | None = None) -> Page:
        page = Page(url, title, text or self._text(self.random.randint(120, 320)), links or [])
        self.pages[url] = page
        return page

    def _content_site(self, host: str, count: int) -> None:
        paths = [f"/page-{n}.html" for n in range(count)]
        for n, path in enumerate(paths):
            friend = self.random.choice(self.sites)
            links = [paths[(n + 1) % count], "/", f"http://{friend}/page-{self.random.randrange(count)}.html"]
            self._add(f"http://{host}{path}", f"{host} page {n}", links)
        self._add(f"http://{host}/", f"Home of {host}", [*paths, "/missing.html", "mailto:me@site.example"])

    def _mirror_site(self, host: str, origin: str) -> None:
        self._add(f"http://{host}/", "Mirror", ["/about.html"])
        self._add(f"http://{host}/about.html", "About the mirror")
        for url in [u for u in self.pages if u.startswith(f"http://{origin}/page-")]:
            copy = f"http://{host}/{url.rsplit('/', 1)[1]}"
            source = self.pages[url]
            self.pages[copy] = Page(copy, source.title, source.text, list(source.links), copy_of=url)
            self.pages[f"http://{host}/"].links.append(copy)

    def _near_site(self, host: str, origin: str) -> None:
        self._add(f"http://{host}/", "Almost the same")
        for url in [u for u in self.pages if u.startswith(f"http://{origin}/page-")]:
            near = f"http://{host}/{url.rsplit('/', 1)[1]}"
            source = self.pages[url]
            text = source.text + " " + " ".join(self.random.choices(self.words, k=3)) + "."
            self.pages[near] = Page(near, source.title + " again", text, [], similar_to=url)
            self.pages[f"http://{host}/"].links.append(near)

    def _robots_sites(self) -> None:
        plain = "text/plain"
        rules = {
            "www.robots-private.example": (
                f"User-agent: *\nDisallow: /private\nCrawl-delay: {self.robots_delay_seconds}\n"
            ),
            "www.robots-deny.example": "\ufeffUser-Agent: *\r\nDisallow: /\r\n",
            "www.robots-named.example": "User-agent: roundcrawl\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n",
            "www.robots-wild.example": "User-agent: *\nDisallow: /*private$\nAllow: /public\n",
        }
        for host, text in rules.items():
            self.robots[host] = Reply(200, text.encode(), plain)
            self._add(f"http://{host}/", f"Rules of {host}", ["/public.html", "/private"])
            self._add(f"http://{host}/public.html", f"Public of {host}")
            self._add(f"http://{host}/private", f"Private of {host}")
        self.robots["www.robots-503.example"] = Reply(503, b"later", plain)
        self._add("http://www.robots-503.example/", "Behind a broken robots.txt")
        self.robots["www.robots-moved.example"] = Reply(
            301, headers=(("Location", "http://robots-moved.example/robots.txt"),)
        )
        self.robots["robots-moved.example"] = Reply(200, b"User-agent: *\nDisallow: /private\n", plain)
        self._add("http://www.robots-moved.example/", "Rules elsewhere", ["/private", "/open.html"])
        self._add("http://www.robots-moved.example/open.html", "Open")
        self._add("http://www.robots-moved.example/private", "Closed")

    def _redirect_site(self, host: str) -> None:
        root = f"http://{host}/"
        hrefs = ["/old", "/chain-1", "/loop-1", "/away", "http://moved.example/bare"]
        self._add(root, "Moved", hrefs)
        self._add(f"http://{host}/new", "The new place")
        self._add(f"http://{host}/bare", "With www")
        for source, target in (
            (f"http://{host}/old", "/new"),
            (f"http://{host}/chain-1", "/chain-2"),
            (f"http://{host}/chain-2", "/chain-end"),
            (f"http://{host}/loop-1", "/loop-2"),
            (f"http://{host}/loop-2", "/loop-1"),
            (f"http://{host}/away", f"http://{self.sites[2]}/page-0.html"),
            ("http://moved.example/bare", f"http://{host}/bare"),
        ):
            self.replies[source] = Reply(301, headers=(("Location", target),))
        self._add(f"http://{host}/chain-end", "End of the chain")

    def _trouble_site(self, host: str) -> None:
        root = f"http://{host}/"
        names = ["gone", "error", "busy", "slow", "big", "gzip", "chunked"]
        names += ["empty", "binary", "noindex", "nofollow"]
        self._add(root, "Trouble", [f"/{name}" for name in names])
        text = self._text(200).encode()
        page = b"<html><head><title>T</title></head><body><article><p>%s</p></article></body></html>"
        self.replies[root + "gone"] = Reply(410, b"gone")
        self.replies[root + "error"] = Reply(500, b"oops")
        self.replies["http://www.busy.example/"] = Reply(503, b"busy", headers=(("Retry-After", "3600"),))
        self.pages[root].links.append("http://www.busy.example/")
        self.replies[root + "busy"] = Reply(408, b"try again")
        self.replies[root + "slow"] = Reply(200, page % (b"slow " + text), seconds=self.slow_seconds)
        self.replies[root + "big"] = Reply(200, page % (b"big " + text * (self.cap_bytes // len(text) + 1)))
        zipped = gzip.compress(page % (b"zipped " + text[::-1]), mtime=0)
        self.replies[root + "gzip"] = Reply(200, zipped, headers=(("Content-Encoding", "gzip"),))
        self.replies[root + "chunked"] = Reply(200, page % b" ".join(text.split()[::-1]), chunked=True)
        self.replies[root + "empty"] = Reply(200, b"")
        self.replies[root + "binary"] = Reply(200, b"%PDF-1.4 nothing", "application/pdf")
        self._add(root + "noindex", "Hidden").head = '<meta name="robots" content="noindex">'
        self._add(root + "nofollow", "Dead end", ["/never"]).head = '<meta name="robots" content="nofollow">'

    def _charset_site(self, host: str) -> None:
        self._add(f"http://{host}/", "Charsets", ["/latin.html", "/wrong.html", "/greek.html"])
        latin = self._add(f"http://{host}/latin.html", "Café", text=self._text(150) + " é è ü.")
        latin.charset = "iso-8859-1"
        greek = self._add(f"http://{host}/greek.html", "Ελληνικά", text="Αυτό είναι ένα κείμενο. " * 30)
        greek.charset = "iso-8859-7"
        body = self._render(self._add(f"http://{host}/wrong.html", "Wrong label")).body
        self.replies[f"http://{host}/wrong.html"] = Reply(200, body, "text/html; charset=no-such-charset")

    def _session_site(self, host: str) -> None:
        ids = [f"{self.random.getrandbits(128):032x}" for _ in range(4)]
        links = [f"/item.html?PHPSESSID={value}" for value in ids]
        self._add(f"http://{host}/", "Sessions", [*links, f"/other.html;jsessionid={ids[0].upper()}"])
        self._add(f"http://{host}/item.html", "Item", [f"/?PHPSESSID={ids[1]}"])
        self._add(f"http://{host}/other.html", "Other")

    def _calendar(self, target: str) -> Reply:
        try:
            year, month = (int(part) for part in target.split("/")[2:4])
        except ValueError:
            return Reply(404, b"no such month")
        later = f"/calendar/{year + month // 12}/{month % 12 + 1}"
        body = f"<html><title>{year}-{month}</title><body><p>{year} {month}</p><a href='{later}'>next</a></body></html>"
        return Reply(200, body.encode())

    def _render(self, page: Page) -> Reply:
        anchors = "".join(f'<li><a href="{href}">{href[:40]}</a></li>' for href in page.links)
        paragraphs = "".join(f"<p>{line}</p>" for line in page.text.split("\n"))
        html = (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="{page.charset}">'
            f"<title>{page.title}</title>{page.head}"
            f"</head><body><main><article><h1>{page.title}</h1>{paragraphs}</article></main>"
            f"<nav><ul>{anchors}</ul></nav></body></html>"
        )
        return Reply(200, html.encode(page.charset, "replace"), f"text/html; charset={page.charset}")
