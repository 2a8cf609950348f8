"""Any bytes, everywhere: no exception that nobody expects, and no input over its time.

`make test` tries a few inputs of each kind; `make fuzz` tries FUZZ_INPUTS of each, from FUZZ_SEED on.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.fuzz.targets import TARGETS, Target

INPUTS = int(os.environ.get("FUZZ_INPUTS", "60"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
ran: Counter[str] = Counter()
slowest: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[None]:
    yield
    for name, count in ran.items():
        print(f"\nfuzz: {name}: {count} inputs, the slowest took {slowest[name] / 1000:.0f} ms", end="")
    print(f"\nfuzz: {sum(ran.values())} inputs in all, seed {SEED}")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_any_input_is_taken_in_time(target: Target) -> None:
    @seed(SEED)
    @settings(
        max_examples=INPUTS,
        derandomize=False,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def takes(given_input: object) -> None:
        began = time.process_time()
        target.run(given_input)
        spent = time.process_time() - began
        ran[target.name] += 1
        slowest[target.name] = max(slowest[target.name], round(spent * 1e6))
        assert spent < target.seconds

    takes()
    assert ran[target.name] >= INPUTS // 2
