"""Whole rounds on object stores: the same as on a local disk, counted, raced, and killed at every phase."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import secrets
import threading
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from connectors import layout
from connectors.files import Storage, digest_of, open_storage
from pipelines import driver
from pipelines.round import build
from runners.round_options import parse_round
from tests.fakes.emulators import gcs_emulator, s3_emulator
from tests.fakes.faulty_proxy import FaultyProxy, Hold, faulty_proxy
from tests.fakes.remote_crawl import RemoteCrawl, differences, download
from tests.stores.conftest import SECRET

ADDRESS = {"gs": "STORAGE_EMULATOR_HOST", "s3": "AWS_ENDPOINT_URL"}
REQUESTS_A_FILE = 3.5
FIXED_REQUESTS = 60
WRITES = ("PUT", "POST")

# Where a round is killed, in this order: (methods, text in the request, a copy inside the store).
PHASES = {
    "planning": Hold("PUT|POST", "rounds/000002/plan/due-"),
    "plan": Hold("PUT|POST", "rounds/000002/plan.json"),
    "warc": Hold("PUT|POST", "warc/000002/"),
    "journal": Hold("PUT|POST", "journal/shard-0000/000001.json"),
    "parse": Hold("PUT|POST", layout.work_file(2, "parsed-")),
    "settle": Hold("PUT|POST", "rounds/000002/staged/tables/pages/"),
    "seen": Hold("PUT|POST", "state/seen/"),
    "update": Hold("PUT|POST", "state/calendar/"),
    "commit": Hold("PUT|POST", "rounds/000002/manifest.json"),
    "publish": Hold("PUT|POST", "tables/captures/", copies=True),
}
FETCHED_BY = "parse"


# What a running shard and its command ask again and again: by time, not by work.
BY_TIME = ("leases/", "/stop-", "inject/")


def requests(proxy: FaultyProxy, *methods: str) -> int:
    """Return how many requests of these methods (all: none named) there were, those by time left out."""
    return sum(
        (not methods or seen.method in methods) and not any(path in seen.about for path in BY_TIME)
        for seen in proxy.log
    )


def created(proxy: FaultyProxy) -> int:
    return requests(proxy, *WRITES)


@pytest.mark.timeout(600)
def test_three_rounds_are_those_of_a_local_disk(
    crawl: RemoteCrawl, proxy: FaultyProxy, local_tables: dict[str, list[tuple]], tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        proxy.log.clear()
        code, out = crawl.round()
        assert code == 0
        assert f"{crawl.root}/warc/{number:06d}/" in out
        print(f"round {number}: {requests(proxy)} requests, {created(proxy)} writes")
        assert requests(proxy) <= REQUESTS_A_FILE * created(proxy) + FIXED_REQUESTS
    assert differences(crawl.tables(tmp_path), local_tables) == {}
    assert_every_command_reads_it(crawl)
    assert_stored_as_written(crawl, tmp_path)
    assert_no_secret_is_kept(crawl, tmp_path / "all")


def assert_every_command_reads_it(crawl: RemoteCrawl) -> None:
    at = f"--crawl={crawl.root}"
    url = crawl.web.seeds()[0]
    for command in (["status"], ["plan"], ["audit"], ["explain", url]):
        code, out = crawl.run(command[0], at, "--json", *command[1:])
        assert (code, type(json.loads(out))) == (0, dict), command
    assert json.loads(crawl.run("status", at, "--json")[1])["phase"] == "idle"
    assert json.loads(crawl.run("audit", at, "--json")[1]) == {"ok": True, "faults": []}
    assert json.loads(crawl.run("explain", at, "--json", url)[1])["known"] is True
    assert crawl.run("report", at)[0] == 0
    assert b"<html" in crawl.folder.storage.read_bytes("reports/000003.html").lower()


def assert_no_secret_is_kept(crawl: RemoteCrawl, into: Path) -> None:
    """Neither a file of the crawl, nor what commands say, even where they fail, holds the store's secret."""
    for path in download(crawl.folder.storage, "", into):
        held = path.read_bytes()
        assert SECRET.encode() not in (gzip.decompress(held) if path.suffix == ".gz" else held), path
    nowhere = "s3://no-such-bucket/crawl" if crawl.root.startswith("s3") else "gs://no-such-bucket/crawl"
    for root in (crawl.root, nowhere):
        process = crawl.start("plan", f"--crawl={root}")
        said, _ = process.communicate(timeout=300)
        assert SECRET not in said and (process.returncode == 0) == (root == crawl.root), said


def assert_stored_as_written(crawl: RemoteCrawl, into: Path) -> None:
    """Every file has the digest of its manifest, and a .gz holds its text under one compression."""
    files = {e.path: e for number in (1, 2, 3) for e in crawl.folder.read_manifest(number).files}
    copies = [*download(crawl.folder.storage, "warc/", into), *download(crawl.folder.storage, "index/", into)]
    assert len([path for path in copies if path.suffix == ".gz"]) == len(copies) > 6
    for path in copies:
        with path.open("rb") as file:
            assert digest_of(file) == files[str(path.relative_to(into))].digest
        inside = gzip.decompress(path.read_bytes())
        assert inside[:2] != b"\x1f\x8b"
        assert inside.startswith(b"WARC/1.1\r\n") or inside.count(b'"url"') == inside.count(b"\n") > 0


@pytest.mark.timeout(600)
def test_requests_follow_files_not_urls(crawl: RemoteCrawl, proxy: FaultyProxy) -> None:
    counts = {}
    for pages in (6, 60):
        with_pages = crawl if pages == 6 else _larger(crawl, pages)
        assert with_pages.round("--rounds=2")[0] == 0
        proxy.log.clear()
        assert with_pages.round()[0] == 0
        planned = with_pages.folder.read_manifest(3).planned
        counts[pages] = (planned, requests(proxy), created(proxy))
        print(f"{planned} URLs: {requests(proxy)} requests, {created(proxy)} writes")
    few, many = counts[6], counts[60]
    assert many[0] > 5 * few[0]
    assert many[1] <= REQUESTS_A_FILE * many[2] + FIXED_REQUESTS
    assert many[1] <= 1.3 * few[1]


def _larger(crawl: RemoteCrawl, pages: int) -> RemoteCrawl:
    web = type(crawl.web)(sites=6, pages=pages, robots_delay_seconds=0.3)
    crawl.server.web = web
    larger = RemoteCrawl(f"{crawl.root}-{pages}", web, crawl.server)
    larger.inject()
    return larger


@pytest.mark.timeout(900)
def test_a_round_killed_at_every_phase_is_resumed(
    crawl: RemoteCrawl, proxy: FaultyProxy, local_tables: dict[str, list[tuple]], tmp_path: Path
) -> None:
    crawl.dies = True
    assert crawl.round()[0] == 0
    fetched = 0
    for name, hold in PHASES.items():
        hold.held.clear()
        proxy.hold = hold
        process = crawl.start("round", *crawl.flags("--run_id=two"), TMPDIR=str(tmp_path))
        assert hold.held.wait(400), (name, process.communicate(timeout=200))
        if name == FETCHED_BY:
            fetched = len(crawl.server.log)
        process.kill()
        process.communicate()
        assert crawl.folder.newest_round() == (2 if name == "publish" else 1)
    proxy.hold = None
    assert crawl.round("--run_id=two")[1] == "already done: two\n"
    assert len(crawl.server.log) == fetched
    assert crawl.start("round", *crawl.flags(), TMPDIR=str(tmp_path)).wait(300) == 0
    assert crawl.run("audit", f"--crawl={crawl.root}")[0] == 0
    assert differences(crawl.tables(tmp_path / "copy"), local_tables) == {}
    left = [path.name for path in (tmp_path / f"roundcrawl-{os.getuid()}").iterdir()]
    assert left == [".lock"]


@pytest.mark.timeout(300)
def test_of_two_rounds_at_once_one_is_refused(crawl: RemoteCrawl) -> None:
    # A short lease is soon seen to be renewed, and pauses keep whichever is first running until then.
    crawl.dies = True
    flags = {name: crawl.flags(f"--run_id={name}", "--min_delay_seconds=15") for name in ("one", "two")}
    both = {name: crawl.start("round", *flags[name]) for name in flags}
    ends = {name: (process.communicate(timeout=240)[0], process.returncode) for name, process in both.items()}
    assert sorted(code for _, code in ends.values()) == [0, 3], ends
    (loser,) = [out for out, code in ends.values() if code == 3]
    assert f"round: {crawl.root} is held by process" in loser
    (winner,) = [name for name, (_, code) in ends.items() if code == 0]
    assert crawl.folder.read_manifest(1).run_id == winner
    assert max(Counter(crawl.asked()).values()) == 1


@pytest.mark.timeout(300)
def test_of_two_rounds_without_a_lease_one_commits(
    crawl: RemoteCrawl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lease may fail; the create-only manifest does not."""
    monkeypatch.setattr(
        driver, "crawl_lease", lambda folder, clock, term: _free_lease(folder.storage, clock, term)
    )
    codes = []

    def overtaken(pipeline: object, spec: object, plan: object) -> None:
        codes.append(driver.run_rounds(parse_round(crawl.flags("--run_id=fast")), build))
        build(pipeline, spec, plan)

    codes.append(driver.run_rounds(parse_round(crawl.flags("--run_id=slow")), overtaken))
    assert codes == [0, 3]
    assert crawl.folder.read_manifest(1).run_id == "fast"
    assert "round 1 was committed by another run (fast)" in capsys.readouterr().err
    assert crawl.run("audit", f"--crawl={crawl.root}")[0] == 0


def _free_lease(storage: Storage, clock: object, term: float) -> object:
    from connectors.lease_object import ObjectLease

    return ObjectLease(storage, f"leases/{secrets.token_hex(4)}", clock, secrets.token_hex(8), term)


@pytest.mark.timeout(900)
def test_ten_thousand_files_are_listed(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"state/p={number % 64:04d}/{number:06d}" for number in range(10_000)]
    if scheme == "gs":
        for name in names:
            path = tmp_path / "crawls/many" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
    with gcs_emulator(tmp_path) if scheme == "gs" else s3_emulator() as address:
        if scheme == "s3":
            _fill(urlsplit(address).netloc, [f"/crawls/many/{name}" for name in names])
        with faulty_proxy(address, every=0) as proxy:
            monkeypatch.setenv(ADDRESS[scheme], proxy.address)
            storage = open_storage(f"{scheme}://crawls/many")
            assert [info.path for info in storage.list("state/")] == sorted(names)
            print(f"10,000 files: listed with {len(proxy.log)} requests")
            assert len(proxy.log) <= 12
            assert len(storage.list_folders("state/")) == 64
            assert len(storage.list("state/p=0001/")) == 157


def _fill(address: str, paths: list[str]) -> None:
    """Put files into the store past the client library, which would take minutes."""
    connection = http.client.HTTPConnection(address)
    for path in paths:
        connection.request("PUT", path, b"x")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    connection.close()


@pytest.mark.timeout(300)
def test_a_stop_on_an_object_store_keeps_what_was_fetched(crawl: RemoteCrawl) -> None:
    assert crawl.round("--rounds=2")[0] == 0
    before = len(crawl.server.log)
    process = crawl.start("round", *crawl.flags())
    clock = threading.Event()
    while len(crawl.server.log) < before + 20 and process.poll() is None:
        clock.wait(0.05)
    process.terminate()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "round 3 was stopped and is not committed; to resume: python -m pipelines.round" in out
    assert json.loads(crawl.run("status", f"--crawl={crawl.root}", "--json")[1])["phase"] == "unfinished"
    assert crawl.round()[0] == 0
    assert max(Counter(crawl.asked()[before:]).values()) == 1
