from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import calendar
from connectors.files import Storage, open_storage
from connectors.rows import rows_to_table, table_to_rows
from connectors.runs import DamagedRun, round_of
from connectors.slots import Slot, deal_tiers
from schemas.manifest import FileEntry
from schemas.state import UrlState

HOUR = 3600.0
NOW = 480_000 * HOUR


def url(number: int, next_fetch_at: float, host: int = 1) -> UrlState:
    return UrlState(
        url=f"https://h{host}.example/{number}",
        host_key=host,
        url_key=number,
        status="unfetched",
        next_fetch_at=next_fetch_at,
        depth=1,
        priority=0.5,
        discovered_from=None,
        discovered_round=1,
        discovered_at=NOW,
    )


def names(rows: object) -> list[str]:
    return [row.url for row in table_to_rows(rows, UrlState)]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path))


class TestWriteAndRead:
    def test_one_file_a_slot_named_by_hour(self, storage: Storage) -> None:
        rows = [
            url(1, NOW + 10),
            url(2, NOW + HOUR),
            url(3, NOW + 100 * HOUR),
            url(4, NOW + 20),
            url(5, NOW + 9e3 * HOUR),
        ]
        entries = calendar.write_slots(storage, 12, 3, rows, NOW, "abc", pack_rows=1)
        assert [(entry.path, entry.rows) for entry in entries] == [
            ("state/calendar/p=0012/t00480000-00480001/r000003-abc.parquet", 2),
            ("state/calendar/p=0012/t00480001-00480002/r000003-abc.parquet", 1),
            ("state/calendar/p=0012/t00480064-00480128/r000003-abc.parquet", 1),
            ("state/calendar/p=0012/t00487424-00491520/r000003-abc.parquet", 1),
        ]
        assert calendar.due_entries(entries, NOW) == entries[:1]
        opened = calendar.read(storage, entries, NOW + 15)
        assert table_to_rows(opened.due, UrlState) == rows[:1]
        assert table_to_rows(opened.later, UrlState) == rows[1:]

    @settings(max_examples=25)
    @given(
        instants=st.lists(st.floats(0, 2 * NOW), min_size=1, max_size=40),
        as_of=st.floats(0, 2 * NOW),
        pack_rows=st.sampled_from([1, 5, 4096]),
    )
    def test_each_url_is_in_one_slot_and_no_due_one_is_missed(
        self, instants: list[float], as_of: float, pack_rows: int
    ) -> None:
        rows = [url(number, at) for number, at in enumerate(instants)]
        with tempfile.TemporaryDirectory() as folder:
            storage = open_storage(folder)
            entries = calendar.write_slots(storage, 0, 1, rows, NOW, "t", pack_rows=pack_rows)
            assert sorted(names(calendar.read(storage, entries, as_of).due)) == sorted(
                row.url for row in rows if row.next_fetch_at <= as_of
            )
            opened = calendar.entries_to_open(entries, as_of, 10.0, pack_rows=pack_rows)
            due = calendar.read(storage, opened, as_of).due
            assert sorted(names(due)) == sorted(row.url for row in rows if row.next_fetch_at <= as_of)
            seen: Counter[str] = Counter()
            for entry in entries:
                slot = calendar.slot_in(entry)
                parts = calendar.read(storage, [entry], as_of)
                for part in parts:
                    seen.update(names(part))
                    for at in part.column("next_fetch_at").to_pylist():
                        assert slot.start * HOUR <= at < slot.end * HOUR
            assert seen == Counter(row.url for row in rows)

    def test_the_order_of_rows_leaves_no_trace(self, storage: Storage) -> None:
        rows = [url(number, NOW + number * 700, host=number % 3) for number in range(50)]
        one = calendar.write_slots(storage, 0, 1, rows, NOW, "a", pack_rows=7)
        two = calendar.write_slots(storage, 0, 1, rows_to_table(rows[::-1], UrlState), NOW, "b", pack_rows=7)
        assert [entry.digest for entry in one] == [entry.digest for entry in two]

    def test_a_url_twice_is_refused(self, storage: Storage) -> None:
        with pytest.raises(ValueError, match="would stand twice in the calendar of partition 4"):
            calendar.write_slots(storage, 4, 1, [url(1, NOW), url(1, NOW + 5)], NOW, "t")

    def test_no_rows_are_no_files(self, storage: Storage) -> None:
        assert calendar.write_slots(storage, 4, 1, [], NOW, "t") == []
        assert names(calendar.read(storage, [], NOW).due) == []

    def test_a_damaged_file_is_named(self, storage: Storage) -> None:
        (entry,) = calendar.write_slots(storage, 0, 1, [url(n, NOW) for n in range(50)], NOW, "t")
        path = Path(storage.root) / entry.path
        content = bytearray(path.read_bytes())
        content[90] ^= 4
        path.write_bytes(content)
        with pytest.raises(DamagedRun, match=entry.path):
            calendar.read(storage, [entry], NOW)

    def test_a_column_that_an_older_file_lacks_takes_its_default(
        self, storage: Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        schema = calendar.row_schema(UrlState)
        older = [name for name in schema.names if name not in ("visits", "etag", "in_pages")]
        with monkeypatch.context() as patch:
            patch.setattr(
                calendar, "row_schema", lambda _: calendar.pa.schema([schema.field(n) for n in older])
            )
            entries = calendar.write_slots(storage, 0, 1, [url(1, NOW)], NOW, "t")
        assert "visits" not in pq.read_schema(Path(storage.root) / entries[0].path).names
        assert table_to_rows(calendar.read(storage, entries, NOW).due, UrlState) == [url(1, NOW)]


class TestBacklog:
    def deal(self, storage: Storage, tiers: list[int]) -> list[FileEntry]:
        rows = [url(number, NOW - 5) for number in range(len(tiers))]
        return calendar.write_slots(storage, 0, 1, rows, NOW, "t", tiers=np.array(tiers), pack_rows=1)

    def opened(self, entries: list[FileEntry], share: float, turn: int = 0) -> list[str]:
        chosen = calendar.entries_to_open(entries, NOW, share, turn, pack_rows=1)
        return [calendar.slot_in(entry).name.lstrip("b0") for entry in chosen]

    def test_tiers_open_in_order_until_the_share_is_met(self, storage: Storage) -> None:
        entries = self.deal(storage, [1] * 10 + [2] * 20 + [16] * 40)
        assert self.opened(entries, 0) == []
        assert self.opened(entries, 10) == ["1"]
        assert self.opened(entries, 11) == ["1", "2"]
        assert self.opened(entries, 1000) == ["1", "2", "16"]

    def test_due_time_slots_count_towards_the_share(self, storage: Storage) -> None:
        entries = self.deal(storage, [0] * 10 + [1] * 10)
        assert [slot[:5] for slot in self.opened(entries, 10)] == ["t0047"]
        assert len(self.opened(entries, 11)) == 2

    def test_a_tier_opens_when_its_turn_comes(self, storage: Storage) -> None:
        entries = self.deal(storage, [1] * 10 + [2] * 20 + [16] * 40)
        assert self.opened(entries, 10, turn=5) == ["1"]
        assert self.opened(entries, 10, turn=48) == ["1", "2", "16"]
        assert self.opened(entries, 10, turn=6) == ["1", "2"]

    def test_a_deep_tier_hands_up_its_oldest_files(self, storage: Storage) -> None:
        entries = [
            FileEntry(
                f"state/calendar/p=0000/{Slot(0, 0, tier).name}/r{n:06d}-t.parquet", "", "", 0, 0, 100, 1, ""
            )
            for tier in (1, 64, 256)
            for n in (9, 8, 7)
        ]

        def opened(turn: int, share: float = 3.0) -> list[tuple[int, int]]:
            chosen = calendar.entries_to_open(entries, NOW, share, turn, pack_rows=1)
            return [(calendar.slot_in(entry).tier, round_of(entry)) for entry in chosen]

        shallow = [(1, 7), (1, 8), (1, 9)]
        assert opened(63) == shallow
        assert opened(64) == [*shallow, (256, 7), (256, 8)]
        assert opened(128) == [*shallow, (64, 7), (64, 8)]
        assert opened(0, share=301.0) == [(tier, n) for tier in (1, 64, 256) for n in (7, 8, 9)]

    def test_a_large_slot_takes_several_files(
        self, storage: Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(calendar, "MOST_FILE_ROWS", 10)
        rows = [url(number, NOW, host=number % 3) for number in range(35)]
        entries = calendar.write_slots(storage, 0, 1, rows, NOW, "t")
        assert [(entry.path.rpartition("/")[2], entry.rows) for entry in entries] == [
            ("r000001-t-0.parquet", 9), ("r000001-t-1.parquet", 9),
            ("r000001-t-2.parquet", 9), ("r000001-t-3.parquet", 8),
        ]  # fmt: skip
        assert sorted(names(calendar.read(storage, entries, NOW).due)) == sorted(row.url for row in rows)

    def test_rows_that_are_not_yet_due_at_an_earlier_as_of_wait(self, storage: Storage) -> None:
        entries = self.deal(storage, [1] * 3)
        opened = calendar.read(storage, entries, NOW - 6)
        assert (opened.due.num_rows, opened.later.num_rows) == (0, 3)


class TestGrowth:
    def test_files_and_rewritten_rows_stay_bounded_over_many_rounds(self, storage: Storage) -> None:
        """Revisits in 1 h to 90 days, hourly rounds: files follow the rows, not the rounds."""
        rng = random.Random(7)
        pack_rows = 64
        entries: list[FileEntry] = []
        fresh, known, rewritten = 40, 0, []
        for number in range(1, 81):
            now = NOW + number * HOUR
            opened = calendar.entries_to_open(entries, now, 10, number, pack_rows=pack_rows)
            due, later = calendar.read(storage, opened, now)
            rewritten.append(later.num_rows)
            rows = table_to_rows(due, UrlState) + [url(known + n, now) for n in range(fresh)]
            known += fresh
            dealt = [
                row._replace(next_fetch_at=now + rng.choice([1, 30, 300, 2000]) * HOUR * rng.random())
                for row in rows
            ]
            written = calendar.write_slots(
                storage, 0, number, dealt + table_to_rows(later, UrlState), now, "t", pack_rows=pack_rows
            )
            entries = [entry for entry in entries if entry not in opened] + written
            assert sum(entry.rows for entry in entries) == known
            assert len(entries) <= known / pack_rows + 2 * calendar.SMALL_FILES
        assert sum(rewritten[-40:]) / 40 < 6 * pack_rows

    def test_small_files_of_far_slots_are_gathered(self, storage: Storage) -> None:
        entries: list[FileEntry] = []
        for number in range(1, 31):
            now = NOW + number * HOUR
            opened = calendar.entries_to_open(entries, now, 10, number, pack_rows=20)
            due, later = calendar.read(storage, opened, now)
            rows = [*table_to_rows(later, UrlState), url(number, now + 2_000 * HOUR)]
            entries = [entry for entry in entries if entry not in opened]
            entries += calendar.write_slots(storage, 0, number, rows, now, "t", pack_rows=20)
            assert due.num_rows == 0
            assert sum(entry.rows for entry in entries) == number
            assert len(entries) <= calendar.SMALL_FILES + number // 20

    def work_off(
        self, storage: Storage, backlog: int, share: int, rounds: int
    ) -> tuple[list[int], list[int], set[int]]:
        """Fetch a share a round, best url_key first; return what was fetched, rows read and URLs met."""
        rows = [url(number, NOW, host=number % 50) for number in range(backlog)]
        tiers = deal_tiers(np.zeros(backlog, np.uint64), np.full(backlog, 1e9), share)
        entries = calendar.write_slots(storage, 0, 1, rows, NOW, "t", tiers=tiers, pack_rows=16)
        done: list[int] = []
        read: list[int] = []
        met: set[int] = set()
        for number in range(2, rounds + 2):
            opened = calendar.entries_to_open(entries, NOW, share, number, pack_rows=16)
            due, _ = calendar.read(storage, opened, NOW)
            due = due.sort_by("url_key")
            keys = due.column("url_key").to_pylist()
            read.append(len(keys))
            met.update(keys)
            done += keys[:share]
            left = due.slice(share)
            tiers = deal_tiers(left.column("host_key").to_numpy(), np.full(left.num_rows, 1e9), share)
            written = calendar.write_slots(storage, 0, number, left, NOW, "t", tiers=tiers, pack_rows=16)
            entries = [entry for entry in entries if entry not in opened] + written
            assert sum(entry.rows for entry in entries) == backlog - len(done)
        return done, read, met

    def test_a_backlog_is_worked_off_by_rank_and_mostly_unread(self, storage: Storage) -> None:
        done, read, _ = self.work_off(storage, 1_200, 30, 40)
        assert done == list(range(1_200))
        assert sum(read) / len(read) < 10 * 30

    def test_a_deep_backlog_is_read_in_bounded_bites_and_every_part_comes_up(
        self, storage: Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(calendar, "MOST_FILE_ROWS", 100)
        share = 3
        done, read, met = self.work_off(storage, 600, share, 130)
        assert len(done) == share * 130
        assert max(read) < 140 * share
        assert sum(read) / len(read) < 16 * share
        assert met == set(range(600))


def test_slot_of_an_entry() -> None:
    path = "state/calendar/p=0012/b0000000004/r000003-abc.parquet"
    assert calendar.slot_in(FileEntry(path, "", "calendar", 12, 0, 1, 1, "")) == Slot(0, 0, 4)
