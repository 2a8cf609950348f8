"""Every misbehaviour and a thousand healthy pages in one round, next to a round of the healthy pages alone."""

from __future__ import annotations

import pytest

from tests.fakes.healthy_web import HealthyWeb
from tests.fakes.hostile_round import HostileRound, run_round
from tests.fakes.rogue_web import catalogue

HEALTHY = HealthyWeb(hosts=100, pages=10)
ROUND_MINUTES = 5.0
MORE_BYTES = 200_000_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileRound:
    return run_round(tmp_path_factory.mktemp("hostile"), catalogue(), HEALTHY, ROUND_MINUTES)


@pytest.mark.timeout(1200)
def test_each_misbehaviour_becomes_what_the_table_says(hostile: HostileRound) -> None:
    assert hostile.exit_code == 0, hostile.printed
    assert len(catalogue()) >= 80
    assert hostile.wrong(catalogue()) == {}


def test_every_healthy_page_is_fetched_and_kept(hostile: HostileRound) -> None:
    assert hostile.healthy_pages() == len(HEALTHY.urls()) == 1000


def test_the_round_ends_on_time_and_in_good_order(hostile: HostileRound) -> None:
    print(f"\n{len(catalogue())} misbehaviours, {hostile.seconds:.0f} s")
    assert hostile.seconds < ROUND_MINUTES * 60
    assert hostile.audit() == 0
    assert hostile.silent_connections == 0


def test_no_control_character_gets_anywhere(hostile: HostileRound) -> None:
    assert hostile.control_characters() == []


def test_hosts_of_a_wildcard_domain_are_bounded(hostile: HostileRound) -> None:
    assert hostile.manifest()["counters"]["links_rejected/domain_hosts"] == 3000 - 100


@pytest.mark.timeout(1200)
def test_memory_stays_near_that_of_a_healthy_round(
    hostile: HostileRound, tmp_path_factory: pytest.TempPathFactory
) -> None:
    calm = run_round(tmp_path_factory.mktemp("calm"), [], HEALTHY, ROUND_MINUTES)
    assert calm.healthy_pages() == 1000
    print(f"\npeak {hostile.peak_bytes / 1e6:.0f} MB, healthy pages alone {calm.peak_bytes / 1e6:.0f} MB")
    assert hostile.peak_bytes < calm.peak_bytes + MORE_BYTES
