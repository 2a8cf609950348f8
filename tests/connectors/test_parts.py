"""Work files: row groups by number, and no wrong answer from a damaged one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from connectors import layout, parts
from connectors.faults import DamagedFile
from connectors.files import StorageError, open_storage

TABLE = pa.table(
    {"key": pa.array(range(2000), pa.uint64()), "url": [f"http://h{n}.example/" for n in range(2000)]}
)
PATH = layout.work_file(1, "x.parquet")


def test_row_groups_are_read_by_number(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    groups = [TABLE.slice(0, 10), TABLE.slice(0, 0), TABLE.slice(10, 5)]
    assert parts.write_parts(storage, PATH, groups, TABLE.schema) == [10, 5]
    assert parts.read_part(storage, PATH, 1).equals(TABLE.slice(10, 5))
    assert parts.read_part(storage, PATH, 0, ["url"]).equals(TABLE.slice(0, 10).select(["url"]))
    assert parts.read_whole(storage, PATH).equals(TABLE.slice(0, 15))


def test_a_file_is_read_by_its_digest(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    digest = parts.write_digested(storage, PATH, TABLE)
    assert parts.read_digested(storage, PATH, digest).equals(TABLE)
    assert parts.read_whole(storage, PATH).equals(TABLE)
    with pytest.raises(DamagedFile, match=r"x\.parquet is damaged"):
        parts.read_digested(storage, PATH, "00" * 16)


def test_no_changed_byte_gives_another_answer(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    parts.write_table(storage, PATH, TABLE)
    file = tmp_path / PATH
    whole = file.read_bytes()
    noticed = 0
    for place in range(0, len(whole), max(1, len(whole) // 400)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            assert parts.read_whole(storage, PATH).equals(TABLE), place
        except DamagedFile as error:
            assert str(file) in str(error)
            noticed += 1
    assert noticed > 380


@pytest.mark.parametrize("length", [0, 3, 100, -1])
def test_a_truncated_file_is_named(tmp_path: Path, length: int) -> None:
    storage = open_storage(str(tmp_path))
    parts.write_table(storage, PATH, TABLE)
    file = tmp_path / PATH
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(DamagedFile, match=str(file)):
        parts.read_whole(storage, PATH)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match=r"x\.parquet is missing"):
        parts.read_part(open_storage(str(tmp_path)), PATH, 0)


def test_a_fault_of_the_storage_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(str(tmp_path))

    def refuse(self: object, path: str) -> None:
        raise StorageError(f"{path}: the store failed")

    monkeypatch.setattr(type(storage), "open_read", refuse)
    with pytest.raises(StorageError):
        parts.read_whole(storage, PATH)
