from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.files import Storage, open_storage
from connectors.runs import (
    MULTI,
    NEWEST_WINS,
    SET,
    DamagedRun,
    RunTable,
    lookup,
    merge_runs,
    scan,
    write_run,
)
from connectors.runs import writing as run_writing
from schemas.manifest import FileEntry

VALUES = pa.schema([pa.field("text", pa.string()), pa.field("removed", pa.bool_(), nullable=False)])
HOSTS = RunTable("hosts", NEWEST_WINS, VALUES)
BANDS = RunTable("bands", MULTI, pa.schema([pa.field("text", pa.string())]))
SEEN = RunTable("seen", SET)

TOP = 2**64 - 1
KEY = st.tuples(st.sampled_from([0, 3, TOP]), st.integers(0, 6))
ROW = st.tuples(KEY, st.integers(0, 99), st.booleans())
ROUNDS = st.lists(st.lists(ROW, min_size=1, max_size=40), min_size=1, max_size=6)

Row = tuple[tuple[int, int], int, bool]


def columns_of(table: RunTable, rows: list[Row]) -> dict[str, object]:
    every = {
        "k1": np.array([key[0] for key, _, _ in rows], np.uint64),
        "k2": np.array([key[1] for key, _, _ in rows], np.uint64),
        "text": [str(value) for _, value, _ in rows],
        "removed": [removed for _, _, removed in rows],
    }
    return {name: every[name] for name in table.schema.names}


def put(storage: Storage, table: RunTable, number: int, rows: list[Row]) -> FileEntry:
    return write_run(storage, table, 0, number, columns_of(table, rows), token="t")


def pairs(rows: pa.Table) -> list[tuple[int, int]]:
    return list(zip(rows.column("k1").to_pylist(), rows.column("k2").to_pylist(), strict=True))


def whole(storage: Storage, table: RunTable, runs: list[FileEntry]) -> pa.Table:
    return pa.concat_tables([table.schema.empty_table(), *scan(storage, table, runs)])


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


class TestAgainstADictionary:
    @settings(max_examples=40)
    @given(rounds=ROUNDS, asked=st.lists(KEY, max_size=12), split=st.integers(0, 6))
    def test_newest_wins(self, rounds: list[list[Row]], asked: list[tuple[int, int]], split: int) -> None:
        newest = {key: (str(value), removed) for rows in rounds for key, value, removed in rows}
        alive = {key: text for key, (text, removed) in newest.items() if not removed}
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_writing, "ROW_GROUP_ROWS", 3)
            storage = open_storage(folder)
            runs = [put(storage, HOSTS, number, rows) for number, rows in enumerate(rounds, 1)]
            first, last = runs[:split], runs[split:]
            merged = (
                merge_runs(storage, HOSTS, first, 0, 9, level=1, token="m", oldest=True) if first else None
            )
            for state in (runs, [*last, *([merged] if merged else [])]):
                rows = whole(storage, HOSTS, state)
                assert pairs(rows) == sorted(alive)
                assert rows.column("text").to_pylist() == [alive[key] for key in sorted(alive)]
                found = lookup(storage, HOSTS, state, *self.columns(asked))
                expected = [(n, alive[key]) for n, key in enumerate(asked) if key in alive]
                assert self.answers(found) == expected
                found = lookup(storage, HOSTS, state, np.array([3, 4], np.uint64))
                assert sorted(pairs(found.rows)) == sorted(key for key in alive if key[0] == 3)
                assert set(found.candidate.tolist()) <= {0}

    @settings(max_examples=40)
    @given(rounds=ROUNDS, asked=st.lists(KEY, max_size=12))
    def test_multi(self, rounds: list[list[Row]], asked: list[tuple[int, int]]) -> None:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_writing, "ROW_GROUP_ROWS", 3)
            storage = open_storage(folder)
            runs = [put(storage, BANDS, number, rows) for number, rows in enumerate(rounds, 1)]
            merged = merge_runs(storage, BANDS, runs, 0, 9, level=1, token="m")
            assert merged is not None
            texts = [(key, str(value)) for rows in rounds for key, value, _ in rows]
            for state in (runs, [merged]):
                rows = whole(storage, BANDS, state)
                keys = pairs(rows)
                assert keys == sorted(key for key, _ in texts)
                assert sorted(zip(keys, rows.column("text").to_pylist(), strict=True)) == sorted(texts)
                answers = self.answers(lookup(storage, BANDS, state, *self.columns(asked)))
                assert sorted(answers) == sorted(
                    (n, t) for n, ask in enumerate(asked) for k, t in texts if k == ask
                )
                assert [n for n, _ in answers] == sorted(n for n, _ in answers)

    @settings(max_examples=30)
    @given(rounds=ROUNDS)
    def test_set(self, rounds: list[list[Row]]) -> None:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_writing, "ROW_GROUP_ROWS", 3)
            storage = open_storage(folder)
            runs = [put(storage, SEEN, number, rows) for number, rows in enumerate(rounds, 1)]
            merged = merge_runs(storage, SEEN, runs, 0, 9, level=1, token="m")
            known = sorted({key for rows in rounds for key, _, _ in rows})
            assert merged is not None
            assert (merged.rows, merged.min_key, merged.max_key) == (len(known), known[0][0], known[-1][0])
            assert pairs(whole(storage, SEEN, [merged])) == pairs(whole(storage, SEEN, runs)) == known
            found = lookup(storage, SEEN, runs, *self.columns([*known, (1, 1)]))
            assert found.candidate.tolist() == list(range(len(known)))

    @staticmethod
    def columns(keys: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        return np.array([k for k, _ in keys], np.uint64), np.array([k for _, k in keys], np.uint64)

    @staticmethod
    def answers(found: object) -> list[tuple[int, str]]:
        return list(zip(found.candidate.tolist(), found.rows.column("text").to_pylist(), strict=True))


class TestAgainstADatabase:
    def test_merge_is_the_distinct_union(self, storage: Storage, tmp_path: Path) -> None:
        rng = np.random.default_rng(3)
        hosts = rng.integers(0, TOP, 200, dtype=np.uint64)
        runs = []
        for number in range(5):
            keys = {
                "k1": hosts[rng.integers(0, 200, 60_000)],
                "k2": rng.integers(0, 2_000, 60_000, dtype=np.uint64),
            }
            runs.append(write_run(storage, SEEN, 0, number, keys, token="t"))
        files = f"{tmp_path}/state/seen/p=0000/*.parquet"
        theirs = duckdb.sql(f"SELECT DISTINCT k1, k2 FROM read_parquet('{files}') ORDER BY k1, k2").fetchall()
        merged = merge_runs(storage, SEEN, runs, 0, 5, level=1, token="m")
        assert merged is not None
        assert pairs(pq.read_table(tmp_path / merged.path)) == theirs


class TestMergeRuns:
    def test_tombstones_stay_while_an_older_run_is_left(self, storage: Storage) -> None:
        old = put(storage, HOSTS, 1, [((1, 1), 5, False), ((2, 2), 6, False)])
        new = [put(storage, HOSTS, 2, [((1, 1), 0, True)]), put(storage, HOSTS, 3, [((2, 2), 7, False)])]
        kept = merge_runs(storage, HOSTS, new, 0, 3, level=1, token="m")
        deepest = old._replace(level=2)
        assert kept is not None
        assert kept.rows == 2
        assert pairs(whole(storage, HOSTS, [kept, deepest])) == [(2, 2)]
        assert lookup(storage, HOSTS, [kept, deepest], np.array([1, 2], np.uint64)).candidate.tolist() == [1]

    def test_nothing_left_is_no_run(self, storage: Storage, tmp_path: Path) -> None:
        runs = [put(storage, HOSTS, 1, [((1, 1), 5, False)]), put(storage, HOSTS, 2, [((1, 1), 5, True)])]
        assert merge_runs(storage, HOSTS, runs, 0, 2, level=1, token="m", oldest=True) is None
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2

    def test_a_higher_level_is_older_whatever_its_round(self, storage: Storage) -> None:
        younger = put(storage, HOSTS, 4, [((1, 1), 44, False)])
        older = put(storage, HOSTS, 9, [((1, 1), 99, False)])._replace(level=1)
        assert whole(storage, HOSTS, [younger, older]).column("text").to_pylist() == ["44"]

    def test_two_runs_of_one_age_are_refused(self, storage: Storage) -> None:
        run = put(storage, HOSTS, 4, [((1, 1), 44, False)])
        with pytest.raises(ValueError, match="two runs of hosts are of one level and round"):
            lookup(storage, HOSTS, [run, run], np.array([1], np.uint64))

    def test_damage_is_not_merged_on(self, storage: Storage) -> None:
        runs = [put(storage, HOSTS, n, [((n, k), n, False) for k in range(200)]) for n in (1, 2)]
        path = Path(storage.root) / runs[1].path
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 16
        path.write_bytes(content)
        with pytest.raises(DamagedRun, match=runs[1].path):
            merge_runs(storage, HOSTS, runs, 0, 2, level=1, token="m")

    def test_large_values_make_small_row_groups(self, storage: Storage, tmp_path: Path) -> None:
        robots = RunTable("robots", NEWEST_WINS, pa.schema([pa.field("body", pa.binary())]))
        bodies = [bytes([n]) * 400_000 for n in range(40)]
        entry = write_run(
            storage,
            robots,
            0,
            1,
            {"k1": np.arange(40, dtype=np.uint64), "k2": [0] * 40, "body": bodies},
            token="t",
        )
        footer = pq.read_metadata(tmp_path / entry.path)
        assert max(footer.row_group(n).num_rows for n in range(footer.num_row_groups)) == 10
        found = lookup(storage, robots, [entry], np.array([39, 0, 17], np.uint64), np.zeros(3, np.uint64))
        assert [body[:1] for body in found.rows.column("body").to_pylist()] == [b"\x27", b"\x00", b"\x11"]


class TestEvolution:
    def test_a_run_from_before_a_column_reads_as_null(self, storage: Storage) -> None:
        before = RunTable("hosts", NEWEST_WINS, pa.schema([VALUES.field("removed")]))
        old = put(storage, before, 1, [((1, 1), 5, False)])
        new = put(storage, HOSTS, 2, [((2, 2), 6, False)])
        assert whole(storage, HOSTS, [old, new]).column("text").to_pylist() == [None, "6"]
        assert lookup(storage, HOSTS, [old], np.array([1], np.uint64)).rows.column("text").to_pylist() == [
            None
        ]

    def test_a_missing_column_that_cannot_be_null_is_refused(self, storage: Storage) -> None:
        with pytest.raises(ValueError, match="column removed is missing"):
            write_run(storage, HOSTS, 0, 1, {"k1": [1], "k2": [1]}, token="t")
        with pytest.raises(ValueError, match="column removed holds 1 nulls"):
            write_run(
                storage,
                HOSTS,
                0,
                1,
                {"k1": [1], "k2": [1], "removed": pa.array([None], pa.bool_())},
                token="t",
            )


class TestRunTable:
    def test_refuses_what_contradicts_itself(self) -> None:
        with pytest.raises(ValueError, match="is a set and can have no values"):
            RunTable("seen", SET, VALUES)
        with pytest.raises(
            ValueError, match="removed in table bands must be a boolean of a newest_wins table"
        ):
            RunTable("bands", MULTI, VALUES)
        with pytest.raises(ValueError, match="named k1 or k2"):
            RunTable("hosts", NEWEST_WINS, pa.schema([pa.field("k1", pa.string())]))
