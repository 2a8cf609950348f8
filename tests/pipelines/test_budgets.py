"""Budgets of hosts, domains and the round, from the flags and from the policy file, through whole rounds."""

from __future__ import annotations

import contextlib
import io
import json
from collections import Counter
from collections.abc import Iterator

import pytest

from pipelines import plan as plan_command
from tests.fakes.toy_server import serve
from tests.pipelines.conftest import ToyCrawl, give, manifest, small_web, story

LINKS = 9
LIMITS = ("--host_total_urls=8", "--max_domain_hosts=3", "--domain_round_urls=5")
POLICY = """
domains:
  few.example:   {total_urls: 3}
  slow.example:  {round_urls: 2}
  flat.example:  {max_depth: 1}
  first.example: {priority: 1.0}
  last.example:  {priority: 0.0}
"""


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyCrawl]:
    """Return a crawl of two rounds: home pages, then what they link to."""
    hosts = ("total", "few", "slow", "first", "last", "wild", "pair")
    pages = {}
    for name in hosts:
        links = [f"http://{name}.example/{n}" for n in range(LINKS)]
        if name == "wild":
            links = [f"http://w{n}.wild.example/" for n in range(LINKS)]
        if name == "pair":
            links = [f"http://{'www.' * (n % 2)}pair.example/{n}" for n in range(LINKS)]
        pages[f"http://{name}.example/"] = (story(name), links)
        pages |= {link: (story(f"{name}{n}of"), []) for n, link in enumerate(links)}
    chain = [f"http://flat.example/{name}" for name in ("", "one", "two")]
    pages |= {url: (story(f"chain{n}x"), chain[n + 1 : n + 2]) for n, url in enumerate(chain)}
    folder = tmp_path_factory.mktemp("budgets")
    (folder / "policy.yaml").write_text(POLICY)
    with serve(small_web(pages)) as server:
        made = ToyCrawl(folder / "crawl", server.web, server, [])
        seeds = [*(f"http://{name}.example/" for name in hosts), chain[0]]
        give(made, "--salt=budgets", f"--policy={folder}/policy.yaml", *seeds)
        assert made.run_round(*LIMITS) == 0
        yield made


@pytest.fixture(scope="module")
def second(crawl: ToyCrawl) -> ToyCrawl:
    assert crawl.run_round(*LIMITS) == 0
    return crawl


def asked(crawl: ToyCrawl, name: str) -> int:
    """Return how many pages were asked for on a domain."""
    return sum(
        access.host.endswith(f"{name}.example") and access.path != "/robots.txt" for access in crawl.log
    )


def test_priority_of_the_policy_decides_who_comes_first(crawl: ToyCrawl) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        flags = [f"--crawl={crawl.folder}", "--json", "--round_urls=12", "--min_delay_seconds=0"]
        assert plan_command.main(flags) == 0
    urls = {host["host"]: host["urls"] for host in json.loads(out.getvalue())["slowest_hosts"]}
    assert urls["first.example"] > 2 * urls.get("last.example", 0)


def test_totals_bound_what_a_host_and_a_domain_may_put_into_the_frontier(crawl: ToyCrawl) -> None:
    rejected = {
        name.removeprefix("links_rejected/"): count
        for name, count in manifest(crawl, 1)["counters"].items()
        if name.startswith("links_rejected/")
    }
    # Home pages count: of nine links each, 8 - 1 and 3 - 1 are admitted, and 3 - 1 new hosts of one domain.
    by_totals = 3 * (LINKS - 7) + (LINKS - 7) + (LINKS - 2)
    assert rejected == {"host_total": by_totals, "domain_hosts": LINKS - 2}


def test_what_does_not_fit_the_round_is_left_for_the_next(second: ToyCrawl) -> None:
    left = Counter(manifest(second, 2)["left_out"])
    assert left["host_budget"] == 7 - 2
    assert left["domain_budget"] == 2 * 2 + 2 + 4
    assert asked(second, "slow") == 1 + 2
    assert asked(second, "pair") == 1 + 5
    assert asked(second, "few") == 3
    assert asked(second, "wild") == 1 + 2


def test_the_depth_of_a_domain_ends_its_chain(second: ToyCrawl) -> None:
    assert asked(second, "flat") == 2
    assert manifest(second, 2)["counters"]["links_rejected/trap_depth"] == 1
