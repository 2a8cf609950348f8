from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.files import Storage, open_storage
from connectors.runs import MULTI, DamagedRun, KeyProbe, RunTable, contains_one, probe_new, verify, write_run
from connectors.runs import reading as run_reading
from connectors.runs import writing as run_writing
from connectors.runs.keys import pair_bounds, sort_order
from schemas.manifest import FileEntry

SEEN = RunTable("seen")
TOP = 2**64 - 1
# Few values of k1, at the ends and in the middle: hosts repeat, span row groups and sit at the bounds.
KEY = st.tuples(
    st.sampled_from([0, 1, 2, 2**63, TOP - 1, TOP]), st.one_of(st.integers(0, 9), st.integers(0, TOP))
)


def write_keys(storage: Storage, keys: list[tuple[int, int]], number: int = 1, level: int = 0) -> FileEntry:
    columns = {
        "k1": np.array([k for k, _ in keys], np.uint64),
        "k2": np.array([k for _, k in keys], np.uint64),
    }
    return write_run(storage, SEEN, 3, number, columns, level=level, token=f"{number:04d}")


def uint64(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def random_keys(seed: int, rows: int, hosts: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    names = rng.integers(0, TOP, hosts, dtype=np.uint64, endpoint=True)
    return names[rng.integers(0, hosts, rows)], rng.integers(0, TOP, rows, dtype=np.uint64, endpoint=True)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writing, "ROW_GROUP_ROWS", 16)


class TestProbe:
    @settings(max_examples=40)
    @given(
        runs=st.lists(st.lists(KEY, min_size=1, max_size=80), max_size=4), asked=st.lists(KEY, max_size=60)
    )
    def test_answers_as_a_set_does(
        self, runs: list[list[tuple[int, int]]], asked: list[tuple[int, int]]
    ) -> None:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_writing, "ROW_GROUP_ROWS", 7)
            patch.setattr(run_reading, "BLOCK_GROUPS", 2)
            storage = open_storage(folder)
            entries = [write_keys(storage, keys, number) for number, keys in enumerate(runs)]
            known = {key for keys in runs for key in keys}
            asked = asked + [key for keys in runs for key in keys[:5]]
            fresh = probe_new(storage, entries, uint64([k for k, _ in asked]), uint64([k for _, k in asked]))
            assert fresh.tolist() == [key not in known for key in asked]
            with KeyProbe(storage, entries, cached_groups=2) as probe:
                assert [probe.contains(*key) for key in asked] == [key in known for key in asked]
            for key in asked[:2]:
                assert contains_one(storage, entries, *key) == (key in known)

    def test_no_runs_and_no_candidates(self, storage: Storage) -> None:
        entry = write_keys(storage, [(1, 1)])
        assert probe_new(storage, [], uint64([5, 6]), uint64([1, 1])).tolist() == [True, True]
        assert probe_new(storage, [entry], uint64([]), uint64([])).tolist() == []

    def test_agrees_with_a_database(self, storage: Storage, tmp_path: Path) -> None:
        known1, known2 = random_keys(1, 400_000, 900)
        entries = [
            write_run(storage, SEEN, 0, n, {"k1": known1[n::3], "k2": known2[n::3]}, token="t")
            for n in range(3)
        ]
        fresh1, fresh2 = random_keys(2, 3_000, 50)
        ask1 = np.concatenate([known1[::40], fresh1, known1[:3_000]])
        ask2 = np.concatenate([known2[::40], fresh2, fresh2])
        mask = probe_new(storage, entries, ask1, ask2)
        ours = sorted(zip(ask1[mask].tolist(), ask2[mask].tolist(), strict=True))
        database = duckdb.connect()
        database.register("asked", {"k1": ask1, "k2": ask2})
        theirs = database.execute(
            "SELECT k1, k2 FROM asked ANTI JOIN read_parquet(?) AS seen USING (k1, k2) ORDER BY k1, k2",
            [f"{tmp_path}/state/seen/p=0000/*.parquet"],
        ).fetchall()
        assert ours == theirs
        assert len(ours) == 6_000

    def test_few_hosts_read_few_row_groups_and_many_stream(
        self, storage: Storage, small_groups: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keys = [(host, page) for host in range(0, 200, 2) for page in range(16)]
        entry = write_keys(storage, keys)
        read: list[int] = []
        original = pq.ParquetFile.read_row_groups

        def spy(self: pq.ParquetFile, groups: list[int], **options: object) -> object:
            read.extend(groups)
            return original(self, groups, **options)

        monkeypatch.setattr(pq.ParquetFile, "read_row_groups", spy)
        assert probe_new(storage, [entry], uint64([20, 20, 98]), uint64([3, 99, 1])).tolist() == [
            False, True, False,
        ]  # fmt: skip
        assert read == [10, 49]
        read.clear()
        hosts = uint64(list(range(0, 200, 6)))
        assert not probe_new(storage, [entry], hosts, np.full(34, 5, np.uint64)).any()
        assert read == list(range(100))
        read.clear()
        assert probe_new(storage, [entry], uint64([21, 500]), uint64([3, 3])).all()
        assert read == []

    def test_a_host_over_many_blocks_is_known_throughout(self, storage: Storage, small_groups: None) -> None:
        keys = [(7, page) for page in range(0, 1_000, 2)]
        entry = write_keys(storage, [(6, 1), *keys, (8, 1)])
        fresh = probe_new(storage, [entry], np.full(1_000, 7, np.uint64), np.arange(1_000, dtype=np.uint64))
        assert fresh.tolist() == [page % 2 == 1 for page in range(1_000)]

    def test_what_one_run_knows_is_not_asked_of_the_next(self, storage: Storage) -> None:
        large = write_keys(storage, [(1, page) for page in range(100)], 1, level=1)
        small = write_keys(storage, [(1, 500)], 2)
        (Path(storage.root) / small.path).unlink()
        assert not probe_new(storage, [small, large], uint64([1, 1]), uint64([5, 6])).any()
        with pytest.raises(DamagedRun, match=r"r000002-l0-0002.parquet is damaged: the file is missing"):
            probe_new(storage, [small, large], uint64([1]), uint64([400]))


class TestKeyProbe:
    def test_keeps_few_row_groups(self, storage: Storage, small_groups: None) -> None:
        entry = write_keys(storage, [(host, 0) for host in range(160)])
        with KeyProbe(storage, [entry], cached_groups=3) as probe:
            assert all(probe.contains(host, 0) for host in range(160))
            assert not probe.contains(160, 0)
            assert len(probe._cache) == 3
        assert probe._cache == {}


class TestWriteRun:
    def test_entry_describes_the_file(self, storage: Storage, tmp_path: Path) -> None:
        entry = write_keys(storage, [(7, 1), (3, 2), (3, 1), (7, 1)], 412)
        assert entry.path == "state/seen/p=0003/r000412-l0-0412.parquet"
        assert (entry.rows, entry.min_key, entry.max_key, entry.partition, entry.table) == (
            3,
            3,
            7,
            3,
            "seen",
        )
        assert entry.bytes == (tmp_path / entry.path).stat().st_size
        verify(storage, entry)
        assert pq.read_table(tmp_path / entry.path).to_pylist() == [
            {"k1": 3, "k2": 1}, {"k1": 3, "k2": 2}, {"k1": 7, "k2": 1},
        ]  # fmt: skip

    def test_same_rows_give_the_same_bytes(self, storage: Storage) -> None:
        keys = [(host * 7 % 11, page) for host in range(30) for page in range(9)]
        assert write_keys(storage, keys, 1).digest == write_keys(storage, keys[::-1], 2).digest

    def test_a_key_costs_about_eight_bytes(self, storage: Storage) -> None:
        k1, k2 = random_keys(5, 300_000, 3_000)
        entry = write_run(storage, SEEN, 0, 1, {"k1": k1, "k2": k2}, token="t")
        assert entry.bytes / entry.rows < 8.3

    def test_nothing_is_left_behind_by_a_refused_run(self, storage: Storage, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="has no rows"):
            write_keys(storage, [])
        write_keys(storage, [(1, 1)])
        with pytest.raises(FileExistsError):
            write_keys(storage, [(2, 2)])
        files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
        assert files == ["state/seen/p=0003/r000001-l0-0001.parquet"]

    def test_a_multi_table_keeps_repeated_keys(self, storage: Storage) -> None:
        entry = write_run(
            storage, RunTable("bands", MULTI), 0, 1, {"k1": [2, 2, 1], "k2": [5, 5, 5]}, token="t"
        )
        assert entry.rows == 3

    def test_rows_out_of_order_are_refused(self, storage: Storage) -> None:
        rows = SEEN.schema.empty_table()
        with run_writing.RunWriter(storage, SEEN, 0, 1, token="t") as writer:
            writer.append(rows)
            writer.append(pq.read_table(Path(storage.root) / write_keys(storage, [(4, 4)]).path))
            with pytest.raises(ValueError, match="not in the order of their keys"):
                writer.append(pq.read_table(Path(storage.root) / write_keys(storage, [(4, 4)], 2).path))


class TestDamage:
    def test_every_flipped_byte_is_named_or_harmless(self, storage: Storage, small_groups: None) -> None:
        """A wrong answer would be a page fetched twice or never: no flipped byte may cause one."""
        keys = [(host, page * page) for host in (3, 9, 2**40) for page in range(15)]
        entry = write_keys(storage, keys)
        path = Path(storage.root) / entry.path
        good = path.read_bytes()
        asked = [*keys, (3, 2), (9, 10_000), (2**40, 5), (4, 4)]
        ask1, ask2 = uint64([k for k, _ in asked]), uint64([k for _, k in asked])
        right = [key not in set(keys) for key in asked]
        named = 0
        for position in range(len(good)):
            bad = bytearray(good)
            bad[position] ^= 1 << (position % 8)
            path.write_bytes(bad)
            try:
                assert probe_new(storage, [entry], ask1, ask2).tolist() == right, position
            except DamagedRun as error:
                assert error.path == entry.path
                named += 1
        with pytest.raises(DamagedRun, match="digest"):
            verify(storage, entry)
        assert named > len(good) / 2

    @pytest.mark.parametrize("kept", [0, 4, 100, -1, -9])
    def test_a_truncated_file_is_named(self, storage: Storage, kept: int) -> None:
        entry = write_keys(storage, [(1, page) for page in range(50)])
        path = Path(storage.root) / entry.path
        path.write_bytes(path.read_bytes()[:kept])
        for use in (verify, lambda *run: probe_new(storage, [entry], uint64([1]), uint64([1]))):
            with pytest.raises(DamagedRun, match=entry.path):
                use(storage, entry)

    def test_another_files_content_is_named(self, storage: Storage) -> None:
        entry = write_keys(storage, [(1, page) for page in range(50)])
        other = write_keys(storage, [(1, page) for page in range(49)], 2)
        (Path(storage.root) / entry.path).write_bytes((Path(storage.root) / other.path).read_bytes())
        with pytest.raises(DamagedRun, match="49 rows, its manifest says 50"):
            contains_one(storage, [entry], 1, 1)

    def test_a_fault_of_the_storage_is_not_called_damage(
        self, storage: Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = write_keys(storage, [(1, 1)])

        def refuse(*_: object, **__: object) -> None:
            raise TimeoutError("no answer")

        monkeypatch.setattr(pq.ParquetFile, "read_row_groups", refuse)
        with pytest.raises(TimeoutError, match="no answer") as caught:
            contains_one(storage, [entry], 1, 1)
        assert caught.value.__notes__ == [f"while reading {entry.path}"]


class TestRunTable:
    def test_refuses_a_kind_it_does_not_know(self) -> None:
        with pytest.raises(ValueError, match="must be set, newest_wins or multi, got bag"):
            RunTable("seen", "bag")


class TestPairBounds:
    @settings(max_examples=80)
    @given(hay=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=60))
    def test_ranges_hold_exactly_the_equal_pairs(self, hay: list[tuple[int, int]]) -> None:
        hay = sorted(hay)
        wanted = [(a, b) for a in range(5) for b in range(8)]
        columns = [uint64([pair[side] for pair in pairs]) for pairs in (hay, wanted) for side in (0, 1)]
        first, last = pair_bounds(*columns)
        counts = [hay.count(pair) for pair in wanted]
        assert (last - first).tolist() == counts
        assert [hay[f] for f, n in zip(first, counts, strict=True) if n] == [
            pair for pair, n in zip(wanted, counts, strict=True) if n
        ]

    @settings(max_examples=80)
    @given(
        pairs=st.lists(
            st.tuples(st.sampled_from([0, 5, TOP]), st.sampled_from([0, 1, 2, 2**40, 2**63, TOP - 1, TOP])),
            max_size=30,
        )
    )
    def test_sort_keeps_equal_pairs_in_order(self, pairs: list[tuple[int, int]]) -> None:
        order = sort_order(uint64([k for k, _ in pairs]), uint64([k for _, k in pairs]))
        assert order.tolist() == sorted(range(len(pairs)), key=lambda n: pairs[n])
