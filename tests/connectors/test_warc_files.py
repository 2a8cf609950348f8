"""Files by pattern, local and in a store."""

from __future__ import annotations

import pytest

from connectors import warc_files
from connectors.warc_files import find_files
from tests.fakes.memory_store import MemoryStorage

NAMES = ["a/1.warc.gz", "a/2.warc", "a/b/3.warc.gz", "c/4.warc.gz"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a/*.warc.gz", ["1.warc.gz"]),
        ("a/*", ["1.warc.gz", "2.warc"]),
        ("**/*.warc.gz", ["1.warc.gz", "3.warc.gz", "4.warc.gz"]),
        ("a/?.warc", ["2.warc"]),
        ("a/2.warc", ["2.warc"]),
        ("x*", []),
    ],
)
def test_patterns(tmp_path, monkeypatch, pattern, found) -> None:
    for name in NAMES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    local = find_files(f"{tmp_path}/{pattern}")
    assert [file.path for file in local] == found
    store = MemoryStorage(root="mem://bucket", objects=dict.fromkeys(NAMES, (b"x", "1")))
    monkeypatch.setattr(warc_files, "open_storage", lambda root: store)
    there = find_files(f"gs://bucket/{pattern}")
    assert [file.path.rpartition("/")[2] for file in there] == found
    assert {file.root for file in there} <= {"gs://bucket"}
