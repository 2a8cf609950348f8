"""A skewed frontier through the whole session: how near the lower bound it ends, and at what cost."""

from __future__ import annotations

import time

from crawler.simulate import simulate, steady
from tests.fakes.sessions import NOW
from tests.fakes.skew import skewed


def run(urls: int = 100_000, hosts: int = 5_000) -> dict[str, float]:
    """Return the worst ratio to the bound over several shapes, and requests decided a second of CPU."""
    worst, asked, seconds = 0.0, 0, 0.0
    for workers, delay, cap in (
        (128, 5.0, None),
        (128, 5.0, 600),
        (64, 5.0, 200),
        (16, 5.0, 380),
        (128, 0.0, 600),
    ):
        skew = skewed(urls, hosts, workers, delay, seed=3, cap=cap)
        began = time.process_time()
        result = simulate(skew.session, NOW, workers, steady(skew.latencies.__getitem__), keep_rows=False)
        seconds += time.process_time() - began
        asked += result.asked
        worst = max(worst, (result.finished_at - NOW) / skew.bound_seconds)
    return {
        "worst_ratio_to_bound": round(worst, 4),
        "requests_per_second": round(asked / seconds),
        "asked": asked,
    }


if __name__ == "__main__":
    print(run())
