"""A round over some misbehaviours and fifty healthy pages, and the table of all misbehaviours in the docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.healthy_web import HealthyWeb
from tests.fakes.hostile_round import HostileRound, run_round
from tests.fakes.rogue_web import catalogue, table

QUICK = [rogue for rogue in catalogue() if rogue.quick]
HEALTHY = HealthyWeb(hosts=10, pages=5)
TABLE = Path(__file__).parents[2] / "docs" / "hostile.md"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileRound:
    return run_round(tmp_path_factory.mktemp("rogue"), QUICK, HEALTHY, 1.0)


def test_each_misbehaviour_becomes_what_the_table_says(hostile: HostileRound) -> None:
    assert hostile.exit_code == 0, hostile.printed
    assert len(QUICK) >= 12
    assert hostile.wrong(QUICK) == {}


def test_every_healthy_page_is_fetched_and_kept(hostile: HostileRound) -> None:
    assert hostile.healthy_pages() == len(HEALTHY.urls()) == 50


def test_the_round_is_in_good_order_and_nothing_private_was_asked(hostile: HostileRound) -> None:
    assert hostile.audit() == 0
    assert hostile.silent_connections == 0
    assert hostile.control_characters() == []


def test_the_docs_list_every_misbehaviour_with_its_outcome() -> None:
    assert len(catalogue()) >= 80
    assert table(catalogue()) in TABLE.read_text(encoding="utf-8"), "run: python -m tests.fakes.rogue_web"
