from __future__ import annotations

import numpy as np
import pytest

from connectors.runs import Merge, plan_compaction
from schemas.manifest import FileEntry


def entry(number: int, level: int, rows: int) -> FileEntry:
    return FileEntry(f"r{number:06d}", "", "seen", 0, level, rows, rows * 8, "")


class TestCompaction:
    @staticmethod
    def simulate(rounds: int, partition: int, every: int = 1) -> tuple[float, int, int]:
        """Return (rows written per new row, most runs at once, most rows of one round's merge)."""
        runs: list[FileEntry] = []
        fresh = written = most_runs = most_merged = 0
        for number in range(1, rounds + 1):
            if number % every == 0:
                runs.append(entry(number, 0, 100))
                fresh += 100
                written += 100
            for merge in plan_compaction(runs, number, partition):
                rows = sum(run.rows for run in merge.runs)
                runs = [run for run in runs if run not in merge.runs] + [entry(number, merge.level, rows)]
                written += rows
                most_merged = max(most_merged, rows)
            most_runs = max(most_runs, len(runs))
            assert sum(run.rows for run in runs) == fresh
            ages = [(run.level, -int(run.path[1:])) for run in runs]
            assert len(set(ages)) == len(ages)
        return written / fresh, most_runs, most_merged

    @pytest.mark.parametrize("partition", [0, 1, 37, 63])
    @pytest.mark.parametrize("every", [1, 3, 20])
    def test_a_thousand_rounds_write_each_key_less_than_five_times(self, partition: int, every: int) -> None:
        amplification, most_runs, _ = self.simulate(1_000, partition, every)
        assert amplification < 4.01
        assert most_runs <= 31

    def test_newer_rows_never_sink_below_older_ones(self) -> None:
        """Runs sorted by age hold ascending, unbroken ranges of rounds."""
        runs: list[FileEntry] = []
        holds: dict[str, list[int]] = {}
        for number in range(1, 700):
            fresh = entry(number, 0, 1)
            runs.append(fresh)
            holds[fresh.path + "l0"] = [number]
            for merge in plan_compaction(runs, number, 5):
                into = entry(number, merge.level, 1)
                assert merge.oldest == (len(merge.runs) == len(runs))
                holds[f"{into.path}l{into.level}"] = sorted(
                    r for m in merge.runs for r in holds[f"{m.path}l{m.level}"]
                )
                runs = [run for run in runs if run not in merge.runs] + [into]
            ordered = sorted(runs, key=lambda run: (-run.level, int(run.path[1:])))
            flat = [r for run in ordered for r in holds[f"{run.path}l{run.level}"]]
            assert flat == list(range(1, number + 1))

    def test_merges_are_spread_over_rounds(self) -> None:
        sizes = np.zeros(513)
        for partition in range(64):
            runs: list[FileEntry] = []
            for number in range(1, 513):
                runs.append(entry(number, 0, 1))
                for merge in plan_compaction(runs, number, partition):
                    sizes[number] += (
                        len(merge.runs) if merge.level == 1 else sum(run.rows for run in merge.runs)
                    )
                    rows = sum(run.rows for run in merge.runs)
                    runs = [run for run in runs if run not in merge.runs] + [entry(number, merge.level, rows)]
        assert sizes[64:448].max() <= 64 * 2 + 64

    def test_few_runs_are_left_alone(self) -> None:
        runs = [entry(number, 0, 1) for number in range(1, 8)]
        assert plan_compaction(runs, 8, 0) == []
        runs.append(entry(8, 0, 1))
        assert plan_compaction(runs, 9, 0) == []
        assert plan_compaction(runs, 8, 0) == [Merge(tuple(runs), 1, True)]
        deep = entry(2, 3, 1)
        assert plan_compaction([*runs, deep], 64, 0) == [Merge(tuple(runs), 2, False)]

    def test_a_fan_out_of_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 2, got 1"):
            plan_compaction([], 1, 0, fan_out=1)
