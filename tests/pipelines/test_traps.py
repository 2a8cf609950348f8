"""A trap of each kind costs no more than its budget, and a deep site beside them is crawled to its last page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.fakes.toy_server import serve
from tests.fakes.toy_traps import DEEP, TRAPS, Limits, TrapWeb, trap_of
from tests.pipelines.conftest import ToyCrawl, give, manifest

LIMITS = Limits(max_depth=7, max_path_segments=6, max_url_length=110, max_domain_hosts=8, host_total_urls=300)
ENDLESS_URLS = 40
ROUNDS = LIMITS.max_depth + 3


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyCrawl]:
    """Return a crawl of all traps that has come to its end."""
    folder: Path = tmp_path_factory.mktemp("traps")
    policy = folder / "policy.yaml"
    policy.write_text(f"domains:\n  endless.example: {{total_urls: {ENDLESS_URLS}}}\n")
    web = TrapWeb(LIMITS)
    with serve(web) as server:  # type: ignore[arg-type]
        made = ToyCrawl(folder / "crawl", web, server, [])  # type: ignore[arg-type]
        give(made, "--salt=traps", f"--policy={policy}", *web.seeds())
        limits = [f"--{name}={value}" for name, value in asdict(LIMITS).items()]
        assert made.run_round("--min_delay_seconds=0", f"--rounds={ROUNDS}", *limits) == 0
        yield made


def wasted(crawl: ToyCrawl) -> Counter[str]:
    """Return the pages asked for, by trap."""
    return Counter(trap_of(access.host) for access in crawl.log if access.path != "/robots.txt")


def rejected(crawl: ToyCrawl) -> set[str]:
    counters = Counter()
    for path in crawl.folder.glob("rounds/*/manifest.json"):
        counters.update(manifest(crawl, int(path.parent.name))["counters"])
    return {name.removeprefix("links_rejected/") for name, count in counters.items() if count}


@pytest.mark.timeout(600)
def test_the_crawl_of_traps_ends(crawl: ToyCrawl) -> None:
    assert "next due: " in crawl.printed[0], "nothing is left to follow"
    assert {trap.rejected for trap in TRAPS.values() if trap.rejected} <= rejected(crawl)


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_costs_no_more_than_its_budget(crawl: ToyCrawl, name: str) -> None:
    limits = (
        LIMITS if name != "endless.example" else Limits(**{**asdict(LIMITS), "host_total_urls": ENDLESS_URLS})
    )
    budget = TRAPS[name].budget(limits)
    pages = wasted(crawl)[name]
    print(f"{name}: {pages} pages of {budget}")
    assert 1 < pages <= budget


def test_a_deep_site_is_no_trap(crawl: ToyCrawl) -> None:
    asked = {f"http://{access.host}{access.path}" for access in crawl.log if access.host == DEEP}
    assert asked - {f"http://{DEEP}/robots.txt"} == set(crawl.web.deep)  # type: ignore[attr-defined]
    pages = {url for (url,) in crawl.rows(f"SELECT url FROM {{pages}} WHERE host = '{DEEP}'")}
    assert pages == set(crawl.web.deep)  # type: ignore[attr-defined]
