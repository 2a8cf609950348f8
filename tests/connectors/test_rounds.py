"""A crawl folder: one identity, one winner a round, publication that can be interrupted anywhere."""

from __future__ import annotations

import contextlib
import json
import pickle
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import layout
from connectors.faults import CrawlFolderError, DamagedFile, LostRace
from connectors.files import StorageError
from connectors.rounds import CrawlFolder, document_of, manifest_of
from schemas.crawl import CrawlIdentity
from schemas.manifest import FORMAT_VERSION, FileEntry, Manifest
from tests.fakes.memory_store import MemoryStorage

IDENTITY = CrawlIdentity(FORMAT_VERSION, "toy", 64, "salt", "domain", "2024-01-01T00:00:00Z")


@pytest.fixture
def folder(tmp_path: Path) -> CrawlFolder:
    return CrawlFolder.at(str(tmp_path / "crawl"))


def manifest(number: int, run_id: str = "run", files: list[FileEntry] | None = None) -> Manifest:
    return Manifest(
        format_version=FORMAT_VERSION,
        round=number,
        run_id=run_id,
        parent=number - 1 or None,
        as_of="2024-01-01T00:00:00Z",
        started_at="2024-01-01T00:00:00Z",
        committed_at="2024-01-01T01:00:00Z",
        flags={"user_agent": "bot/1", "connect_to": ["a:1:b:2"]},
        planned=3,
        outcomes={"fetched": {"fetched": 2}, "gone": {"http_404": 1}},
        left_out={"host_budget": 5},
        counters={"seen": 9},
        injected=["inject/a.json"],
        files=files or [],
    )


def entry(path: str, staged: str = "") -> FileEntry:
    return FileEntry(path, staged, "pages", 3, 1, 10, 4, "ab" * 16, 1, 2**64 - 1)


def staged_entry(folder: CrawlFolder, path: str) -> FileEntry:
    staged = layout.staged(1, path)
    folder.storage.write_new(staged, b"rows")
    return entry(path, staged)


def damage(folder: CrawlFolder, path: str, **members: Any) -> None:
    file = Path(folder.root, path)
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **members}))


def test_a_crawl_has_one_identity(folder: CrawlFolder) -> None:
    assert folder.find_identity() is None
    assert folder.create(IDENTITY) == IDENTITY
    assert folder.create(IDENTITY._replace(salt="other")) == IDENTITY
    assert pickle.loads(pickle.dumps(folder)).identity() == IDENTITY


def test_a_missing_crawl_is_refused_with_the_remedy(folder: CrawlFolder) -> None:
    with pytest.raises(CrawlFolderError, match=r"no crawl at .*: crawl\.json is missing; make one with"):
        folder.identity()
    assert folder.newest_manifest() is None
    assert folder.unfinished_round() is None


def test_a_file_is_no_crawl_folder(tmp_path: Path) -> None:
    (tmp_path / "crawl").write_text("x")
    folder = CrawlFolder.at(str(tmp_path / "crawl"))
    for use in (folder.identity, lambda: folder.create(IDENTITY)):
        with pytest.raises(CrawlFolderError, match="a file stands where a folder is needed") as refused:
            use()
        assert refused.value.exit_code == 2


def test_other_format_versions_are_refused(folder: CrawlFolder) -> None:
    folder.create(IDENTITY)
    folder.commit_manifest(manifest(1))
    for path, read in ((layout.CRAWL, folder.identity), (layout.manifest_path(1), folder.newest_manifest)):
        damage(folder, path, format_version=FORMAT_VERSION + 1)
        with pytest.raises(CrawlFolderError, match=f"{path} has format version 2; .* use a newer program"):
            read()
        damage(folder, path, format_version=FORMAT_VERSION - 1)
        with pytest.raises(CrawlFolderError, match=f"{path} has format version 0; .* cannot migrate it"):
            read()
        damage(folder, path, format_version="1")
        with pytest.raises(DamagedFile, match=f"{path} is damaged: it has no format_version"):
            read()


def test_a_damaged_identity_is_named(folder: CrawlFolder) -> None:
    folder.create(IDENTITY)
    path = Path(folder.root, layout.CRAWL)
    for text in ("", "[]", "{", '{"format_version": 1}'):
        path.write_text(text)
        with pytest.raises(DamagedFile, match=r"crawl/crawl\.json is damaged"):
            folder.identity()


def test_rounds_are_committed_one_after_another(folder: CrawlFolder) -> None:
    files = [entry("tables/pages/round=000001/a.parquet"), entry("state/seen/p=0003/r000001-l0-ab.parquet")]
    for number in (1, 2, 3):
        assert folder.unfinished_round() is None
        folder.storage.write_new(layout.plan_path(number), b"{}")
        assert folder.unfinished_round() == number
        assert folder.commit_manifest(manifest(number, files=files)) == manifest(number, files=files)
        assert folder.newest_round() == number
    assert folder.newest_manifest() == manifest(3, files=files)
    assert folder.read_manifest(1) == manifest(1, files=files)
    with pytest.raises(CrawlFolderError, match=r"round 4 of .* is not committed"):
        folder.read_manifest(4)


def test_a_round_is_committed_once(folder: CrawlFolder) -> None:
    folder.commit_manifest(manifest(1, "a"))
    retried = replace(manifest(1, "a"), committed_at="later")
    assert folder.commit_manifest(retried) == manifest(1, "a")
    with pytest.raises(LostRace, match=r"round 1 of .* was committed by another run \(a\)") as lost:
        folder.commit_manifest(manifest(1, "b"))
    assert lost.value.exit_code == 3
    assert folder.newest_manifest() == manifest(1, "a")


def test_the_round_of_a_run_is_found_without_reading_every_manifest(folder: CrawlFolder) -> None:
    assert folder.round_of_run("a") is None
    for number, run_id in enumerate("abc", start=1):
        committed = folder.commit_manifest(manifest(number, run_id))
        assert folder.round_of_run(run_id) == number
        folder.remember_run(committed)
        folder.remember_run(committed)
    for number in (1, 2):
        folder.storage.delete(layout.manifest_path(number))
    assert [folder.round_of_run(run_id) for run_id in "abcd"] == [1, 2, 3, None]


def test_of_racing_commits_one_stands(folder: CrawlFolder) -> None:
    barrier = threading.Barrier(16)
    won: list[str] = []

    def commit(run_id: str) -> None:
        barrier.wait()
        with contextlib.suppress(LostRace):
            won.append(folder.commit_manifest(manifest(1, run_id)).run_id)

    threads = [threading.Thread(target=commit, args=(f"run{number}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [folder.read_manifest(1).run_id]


def test_impossible_manifests_are_refused(folder: CrawlFolder) -> None:
    for wrong in (
        replace(manifest(2), parent=None),
        replace(manifest(1), parent=0),
        manifest(1, files=[entry("tables/x", "elsewhere/x")]),
    ):
        with pytest.raises(ValueError, match=r"cannot have parent|is not in"):
            folder.commit_manifest(wrong)
    assert folder.newest_round() == 0


@given(st.data())
def test_a_changed_manifest_is_named(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = CrawlFolder.at(str(tmp_path_factory.mktemp("crawl")))
    folder.commit_manifest(manifest(1))
    path = Path(folder.root, layout.manifest_path(1))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(CrawlFolderError, match=r"rounds/000001/manifest\.json (is damaged|has format)"):
        folder.newest_manifest()


names = st.text(min_size=1, max_size=8)
counts = st.dictionaries(names, st.integers(0, 2**63), max_size=3)


@given(
    st.builds(
        replace,
        st.just(manifest(7)),
        flags=st.dictionaries(names, st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), names)),
        outcomes=st.dictionaries(names, counts, max_size=3),
        counters=counts,
        injected=st.lists(names),
        files=st.lists(st.builds(entry, names), max_size=3),
    )
)
def test_a_manifest_survives_its_json(some: Manifest) -> None:
    assert manifest_of(json.loads(json.dumps(document_of(some))), "x") == some


def test_published_files_appear_under_their_names(folder: CrawlFolder) -> None:
    paths = [f"tables/pages/round=000001/{number}.parquet" for number in range(20)]
    done = manifest(1, files=[staged_entry(folder, path) for path in paths] + [entry("warc/x.warc.gz")])
    folder.commit_manifest(done)
    assert folder.storage.list("tables/") == []
    assert folder.publish_staged(done) == 20
    assert sorted(info.path for info in folder.storage.list("tables/")) == sorted(paths)
    assert folder.storage.list(layout.staged_folder(1)) == []
    assert folder.publish_staged(done) == 0


@given(st.sets(st.integers(0, 5)))
def test_an_interrupted_publication_is_finished(moved: set[int]) -> None:
    folder = CrawlFolder(MemoryStorage())
    entries = [staged_entry(folder, f"index/000001/{number}.cdxj.gz") for number in range(6)]
    for number in moved:
        folder.storage.move(entries[number].staged_path, entries[number].path)
    assert folder.publish_staged(manifest(1, files=entries)) == 6 - len(moved)
    assert len(folder.storage.list("index/")) == 6


def test_a_lost_staged_file_is_named(folder: CrawlFolder) -> None:
    entries = [staged_entry(folder, path) for path in ("index/a", "index/b")]
    folder.storage.delete(entries[0].staged_path)
    with pytest.raises(DamagedFile, match="index/a is missing"):
        folder.publish_staged(manifest(1, files=entries))


def test_inject_files_wait_in_the_order_of_time(folder: CrawlFolder) -> None:
    later = folder.write_inject({"seeds": ["http://b.example/"]}, 1_700_000_000.5, "aa")
    earlier = folder.write_inject({"seeds": ["http://ü.example/"]}, 1_600_000_000.0, "bb")
    assert later == "inject/20231114T221320.500000Z-aa.json"
    assert folder.inject_paths() == [earlier, later]
    assert folder.inject_paths({earlier}) == [later]
    assert folder.read_inject(earlier) == {"seeds": ["http://ü.example/"]}
    Path(folder.root, later).write_text('{"seeds": []}')
    with pytest.raises(DamagedFile, match=r"-aa\.json is damaged"):
        folder.read_inject(later)


def test_a_disk_that_refuses_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "rounds").write_text("a file in the way")
    folder = CrawlFolder.at(str(tmp_path))
    with pytest.raises(StorageError, match="a file stands where a folder is needed"):
        folder.newest_round()
