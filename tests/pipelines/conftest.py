"""One toy crawl of three rounds, made with the real commands, that many tests look at."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from pipelines import inject
from tests.fakes.crawls import DELAY_SECONDS, ToyCrawl, seeded_crawl
from tests.fakes.toy_server import serve
from tests.fakes.toy_web import Page, Reply, ToyWeb

__all__ = ["DELAY_SECONDS", "ToyCrawl"]

Make = Callable[..., ToyCrawl]


def story(name: str) -> str:
    """Return a text of 160 words that shares none with a story of another name."""
    return " ".join(f"{name}{n} {name}says {name}some{n % 7} {name}thing{n % 11}" for n in range(40))


def small_web(pages: Mapping[str, tuple[str, list[str]]], robots: Mapping[str, str] | None = None) -> ToyWeb:
    """Return a web of just these pages, URL -> (text, links), and robots.txt, host -> text."""
    web = ToyWeb(sites=3, pages=1)
    web.pages = {url: Page(url, "Title", text, links) for url, (text, links) in pages.items()}
    web.replies.clear()
    web.robots.clear()
    for host, rules in (robots or {}).items():
        web.robots[host] = Reply(200, rules.encode(), "text/plain")
    return web


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Return a function that makes a crawl of a small web and injects with these arguments."""
    with contextlib.ExitStack() as stack:

        def start(
            pages: Mapping[str, tuple[str, list[str]]],
            *arguments: str,
            robots: Mapping[str, str] | None = None,
        ) -> ToyCrawl:
            web = small_web(pages, robots)
            server = stack.enter_context(serve(web))
            crawl = ToyCrawl(tmp_path / "crawl", web, server, [])
            give(crawl, *arguments)
            return crawl

        yield start


def give(crawl: ToyCrawl, *arguments: str) -> str:
    """Run `pipelines.inject` and return what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert inject.main([f"--crawl={crawl.folder}", *arguments]) == 0
    return out.getvalue()


def outcomes(crawl: ToyCrawl, number: int) -> dict[str, tuple[str, str | None]]:
    """Return outcome and reason of each planned URL of a round."""
    rows = crawl.rows(
        f"SELECT url, outcome, reason FROM {{captures}} WHERE kind = 'planned' AND round::INT = {number}"
    )
    return {url: (outcome, reason) for url, outcome, reason in rows}


def manifest(crawl: ToyCrawl, number: int) -> dict:
    """Return the manifest of a round."""
    return json.loads((crawl.folder / f"rounds/{number:06d}/manifest.json").read_text())


def in_days(days: int) -> str:
    """Return the flag that moves "now" to so many days after the beginning of 2027."""
    return f"--as_of={2027 + days // 365}-{1 + days % 365 // 31:02d}-{1 + days % 31:02d}T00:00:00Z"


@pytest.fixture(scope="session")
def toy_crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyCrawl]:
    """Return a toy crawl after three rounds; its server still runs."""
    web = ToyWeb(sites=6, pages=6, robots_delay_seconds=0.3)
    with seeded_crawl(tmp_path_factory.mktemp("toy") / "crawl", web) as crawl:
        assert crawl.run_round("--rounds=3") == 0
        crawl.first_requests = len(crawl.server.log)
        yield crawl
