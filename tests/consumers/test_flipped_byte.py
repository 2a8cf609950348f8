"""One flipped bit of any byte that a manifest names, or of a manifest, is found by the audit."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.faults import CrawlFolderError
from connectors.rounds import CrawlFolder
from tests.fakes.crawls import ToyCrawl
from transforms.auditing import Audit

PLACES_PER_KIND = 3


@pytest.fixture(scope="module")
def folder(crawl: ToyCrawl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield Path(shutil.copytree(crawl.folder, tmp_path_factory.mktemp("flipped") / "crawl"))


def faults(folder: Path) -> list[str]:
    try:
        return Audit(CrawlFolder.at(str(folder))).run()
    except CrawlFolderError as error:
        return [str(error)]


def named_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files that count, by kind: those of the newest manifest, and tables and archives of all."""
    kinds: dict[str, list[Path]] = {}
    manifests = sorted(folder.glob("rounds/*/manifest.json"))
    for manifest in manifests:
        for entry in json.loads(manifest.read_text())["files"]:
            is_own = entry["path"].startswith(("warc/", "tables/", "index/"))
            if is_own or manifest == manifests[-1]:
                kind = entry["path"].split("/")[2] if entry["table"] == "warc" else entry["table"]
                kinds.setdefault(kind, []).append(folder / entry["path"])
    return {**kinds, "manifest": manifests}


def test_a_sound_crawl_has_no_fault(folder: Path) -> None:
    assert faults(folder) == []


def test_a_flipped_bit_is_found_and_its_file_named(folder: Path) -> None:
    chosen, tried = random.Random(3), 0
    kinds = named_files(folder)
    assert len(kinds) >= 14
    for kind, paths in sorted(kinds.items()):
        for number in range(PLACES_PER_KIND):
            path = chosen.choice(sorted(set(paths)))
            whole = path.read_bytes()
            # The first and the last byte are where a checksum is easiest to forget.
            place = (0, len(whole) - 1, chosen.randrange(len(whole)))[number % 3]
            flipped = bytearray(whole)
            flipped[place] ^= 1 << chosen.randrange(8)
            path.write_bytes(flipped)
            try:
                found = faults(folder)
            finally:
                path.write_bytes(whole)
            assert any(path.name in fault for fault in found), (kind, path, place, found[:3])
            tried += 1
    print(f"{tried} flipped bits in files of {len(kinds)} kinds, all found")
    assert faults(folder) == []
