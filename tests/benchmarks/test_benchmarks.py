"""`make bench` prints what benchmarks return, whatever their shape; each can be imported."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import lines_of

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("bench_*.py")))
def test_each_benchmark_can_be_run_without_arguments(name: str) -> None:
    module = importlib.import_module(f"tests.benchmarks.{name}")
    assert len(module.run.__defaults__ or ()) == module.run.__code__.co_argcount


def test_groups_texts_and_whole_numbers_are_printed() -> None:
    lines = list(lines_of({"urls": 10, "ratio": 1.25, "kind": "warm", "median": {"seconds": 0.5}}))
    assert [line.split() for line in lines] == [
        ["urls", "10"],
        ["ratio", "1.250"],
        ["kind", "warm"],
        ["median", "seconds", "0.500"],
    ]
