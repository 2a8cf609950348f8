"""What a round's command makes of a job that ends without its manifest, or beside somebody else's."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pytest

from connectors import layout
from connectors.rounds import CrawlFolder
from pipelines import inject
from pipelines.driver import run_rounds
from pipelines.round import build
from runners.round_options import RoundCommand, parse_round
from schemas.manifest import FORMAT_VERSION, Manifest
from schemas.round import RoundPlan, RoundSpec


@pytest.fixture
def folder(tmp_path: Path) -> CrawlFolder:
    assert inject.main([f"--crawl={tmp_path}/crawl", "http://127.0.0.1:9/"]) == 0
    return CrawlFolder.at(f"{tmp_path}/crawl")


def command(folder: CrawlFolder, *more: str) -> RoundCommand:
    return parse_round([f"--crawl={folder.root}", "--runner=FnApiRunner", *more])


def nothing(pipeline: beam.Pipeline, spec: RoundSpec, plan: RoundPlan | None) -> None:
    _ = pipeline | beam.Create([1])


def commit(folder: CrawlFolder, run_id: str) -> None:
    folder.commit_manifest(Manifest(FORMAT_VERSION, 1, run_id, None, "", "", "", {}, 0, {}, {}, {}, []))


def test_a_job_that_ends_without_a_manifest_has_failed(
    folder: CrawlFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_rounds(command(folder), nothing) == 1
    assert "round 1 ended without a manifest and is not committed; to resume:" in capsys.readouterr().err
    assert folder.newest_round() == 0


def test_a_round_that_another_run_commits_is_lost(
    folder: CrawlFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    def overtaken(pipeline: beam.Pipeline, spec: RoundSpec, plan: RoundPlan | None) -> None:
        commit(folder, "another")
        build(pipeline, spec, plan)

    assert run_rounds(command(folder, "--run_id=mine", "--allow_private_addresses"), overtaken) == 3
    assert "was committed by another run (another)" in capsys.readouterr().err
    assert folder.read_manifest(1).run_id == "another"


def test_a_job_that_fails_after_its_commit_is_done(folder: CrawlFolder) -> None:
    def lost_at_the_end(pipeline: beam.Pipeline, spec: RoundSpec, plan: RoundPlan | None) -> None:
        commit(folder, spec.run_id)
        _ = pipeline | beam.Create([1]) | beam.Map(lambda _: 1 // 0)

    assert run_rounds(command(folder, "--run_id=mine"), lost_at_the_end) == 0


def test_a_retry_of_a_committed_run_does_nothing(
    folder: CrawlFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(folder, "mine")
    assert run_rounds(command(folder, "--run_id=mine"), nothing) == 0
    assert capsys.readouterr().out == "already done: mine\n"
    assert folder.storage.exists(layout.run_path("mine"))


def test_a_round_without_anything_due_is_told_by_its_job(
    folder: CrawlFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--allow_private_addresses", "--max_retries=0"]
    assert run_rounds(command(folder, *flags), build) == 0
    assert inject.main([f"--crawl={folder.root}", "http://127.0.0.1:9/"]) == 0
    capsys.readouterr()
    assert run_rounds(command(folder, *flags), build) == 0
    assert capsys.readouterr().out.startswith("next due: ")
    assert folder.newest_round() == 1
