"""`pipelines.audit` on a sound toy crawl, and on one whose files were changed behind its back."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from pipelines import audit
from tests.pipelines.conftest import ToyCrawl


@pytest.fixture(scope="module")
def folder(toy_crawl: ToyCrawl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the toy crawl that tests may damage, and must restore."""
    return Path(shutil.copytree(toy_crawl.folder, tmp_path_factory.mktemp("audit") / "crawl"))


def faults(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what the audit lists; its exit code says whether there is anything."""
    code = audit.main([f"--crawl={folder}", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (code == 0) == document["ok"] == (document["faults"] == [])
    return document["faults"]


def test_a_sound_crawl_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert faults(folder, capsys) == []


@pytest.mark.parametrize("place", [0, 1, -1, 40])
def test_an_index_that_does_not_decompress_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], place: int
) -> None:
    path = folder / "index/000003/warc.cdxj.gz"
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[place] ^= 0x40
    path.write_bytes(changed)
    try:
        found = faults(folder, capsys)
    finally:
        path.write_bytes(whole)
    assert any(fault.startswith("index/000003/warc.cdxj.gz: ") for fault in found)


def test_an_index_row_of_another_url_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "index/000003/warc.cdxj.gz"
    whole = path.read_bytes()
    lines = gzip.decompress(whole).replace(b'/page-3.html"', b'/page-4.html"', 1)
    path.write_bytes(gzip.compress(lines))
    try:
        found = faults(folder, capsys)
    finally:
        path.write_bytes(whole)
    assert any("an index row does not agree with its record" in fault for fault in found)


def test_an_index_row_under_another_key_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "index/000003/warc.cdxj.gz"
    whole = path.read_bytes()
    first, rest = gzip.decompress(whole).split(b" ", 1)
    path.write_bytes(gzip.compress(first + b"x " + rest))
    try:
        found = faults(folder, capsys)
    finally:
        path.write_bytes(whole)
    assert any(f"the key {first.decode()}x is not that of http" in fault for fault in found)
