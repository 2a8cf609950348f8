"""Links a second that one core normalises, keys and judges."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from crawler.addresses import classify
from crawler.limits import LinkContext, ScopePolicy
from crawler.scope import admit
from crawler.urls import NormalUrl, UrlKeys, host_of, normalise, split, surt_key
from schemas.state import DomainRules

NOW = 1_796_000_000.0


def links(count: int) -> list[tuple[str, str]]:
    """Return (href, base) pairs as pages hold them: half relative, some with queries, some untidy."""
    forms = (
        "/news/2026/11/story-{n}.html",
        "../topic/{n}/",
        "https://www.host{h}.example/article/{n}?lang=en",
        "https://Host{h}.example:443/a%7eb/{n}#comments",
        "/search?q=term+{n}&page=2&sort=date",
        "https://www.host{h}.example/p/{n}?utm_source=x&utm_medium=y&id={n}",
    )
    return [
        (forms[n % len(forms)].format(n=n, h=n % 500), f"https://www.host{n % 500}.example/section/page.html")
        for n in range(count)
    ]


def run(count: int = 60_000) -> dict[str, float]:
    """Return calls per second of CPU for each step that a link passes."""
    pairs = links(count)
    normal = [answer.url for answer in (normalise(*pair) for pair in pairs) if isinstance(answer, NormalUrl)]
    keys, policy, rules = UrlKeys("bench"), ScopePolicy(), DomainRules()
    return {
        "normalise_per_second": _rate(lambda pair: normalise(*pair), pairs),
        "keys_per_second": _rate(lambda url: (keys.host_key(host_of(url)), keys.url_key(url)), normal),
        "admit_per_second": _rate(
            lambda url: admit(LinkContext(url, split(url), 3, None, rules, policy, NOW)), normal
        ),
        "surt_key_per_second": _rate(surt_key, normal),
        "classify_per_second": _rate(classify, [f"203.0.{n % 256}.{n // 256 % 256}" for n in range(count)]),
    }


def _rate(step: Callable[[Any], object], items: Sequence[Any]) -> float:
    began = time.process_time()
    for item in items:
        step(item)
    return round(len(items) / (time.process_time() - began))


if __name__ == "__main__":
    print(run())
