"""CPU of parsing a page, beside the bare library calls that it cannot do without."""

from __future__ import annotations

import hashlib
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ada_url
import trafilatura
from selectolax.lexbor import LexborHTMLParser

from crawler.charset import decide, decode
from crawler.html import read_html
from crawler.parse import ParseInput, parse_page
from crawler.text import main_text

DOCS = Path("/usr/share/doc")


def corpus(count: int, min_bytes: int = 20_000, max_bytes: int = 500_000) -> list[bytes]:
    """Return ``count`` real pages of the documentation packages installed here, else generated ones."""
    found = sorted(
        path
        for path in DOCS.rglob("*.html")
        if path.is_file() and min_bytes <= path.stat().st_size <= max_bytes
    )
    if len(found) < count:
        return [generated(seed) for seed in range(count)]
    return [path.read_bytes() for path in found[:: len(found) // count][:count]]


def generated(seed: int, paragraphs: int = 60) -> bytes:
    """Return a page of about 60 KB shaped like an article between menus; the same for the same seed."""
    chosen = random.Random(seed)
    words = ["".join(chosen.choices("abcdefghilmnoprstuv", k=chosen.randint(2, 9))) for _ in range(900)]
    menu = "".join(f'<li class="item"><a href="/{word}/{seed}.html">{word}</a></li>' for word in words[:150])
    article = "".join(
        f'<p class="body">{" ".join(chosen.choices(words, k=90))}, <a href="{words[number]}">see</a>.</p>'
        for number in range(paragraphs)
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{words[0]}</title></head>'
        f"<body><nav><ul>{menu}</ul></nav><article><h1>{words[1]}</h1>{article}</article></body></html>"
    ).encode()


def bare(body: bytes) -> int:
    """Do what no parser of pages can leave out: digest, decode, one lexbor parse, resolved links, main text."""
    hashlib.sha1(body, usedforsecurity=False).digest()
    html = body.decode("utf-8", "replace")
    links = [
        (ada_url.join_url("https://docs.example/", node.attributes["href"] or ""), node.text())
        for node in LexborHTMLParser(html).css("a[href]")
    ]
    return len(links) + len(trafilatura.extract(html, fast=True, include_comments=False) or "")


def _cpu_milliseconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1000


def run(pages: int = 150, repeats: int = 3) -> dict[str, float]:
    """Return CPU milliseconds a page (median over ``repeats`` of the means, interleaved) and their ratio."""
    bodies = corpus(pages)
    stages: dict[str, list[float]] = {name: [] for name in ("bare", "parse_page", "charset", "html", "text")}
    for _ in range(repeats):
        sums = dict.fromkeys(stages, 0.0)
        for number, body in enumerate(bodies):
            page = ParseInput(f"https://docs.example/{number}.html", body, "text/html", None, "roundcrawl")
            html = decode(body, decide(body, "text/html"))
            calls: dict[str, Callable[[], object]] = {
                "bare": lambda body=body: bare(body),
                "parse_page": lambda page=page: parse_page(page),
                "charset": lambda body=body: decode(body, decide(body, "text/html")),
                "html": lambda html=html, page=page: read_html(html, page.url),
                "text": lambda html=html: main_text(html),
            }
            order = list(calls) if number % 2 else list(reversed(calls))
            for name in order:
                sums[name] += _cpu_milliseconds(calls[name])
        for name, total in sums.items():
            stages[name].append(total / len(bodies))
    means = {f"{name}_ms": round(statistics.median(values), 3) for name, values in stages.items()}
    return {
        "pages": len(bodies),
        "mean_kilobytes": round(sum(map(len, bodies)) / len(bodies) / 1000, 1),
        **means,
        "ratio": round(means["parse_page_ms"] / means["bare_ms"], 3),
    }


if __name__ == "__main__":
    print(run(int(sys.argv[1]) if len(sys.argv) > 1 else 150))
