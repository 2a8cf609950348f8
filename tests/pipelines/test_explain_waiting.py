"""`pipelines.explain` where something waits: budgets, injected seeds, new rules, an unfinished round; and damage."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from connectors import calendar, layout, parts
from connectors.journal import Journal
from connectors.rounds import CrawlFolder
from connectors.rows import row_schema, rows_to_table, table_to_rows
from pipelines import explain as command
from pipelines import inject
from pipelines.explanation import text_of
from pipelines.plan import plan_of
from schemas.fetch import OutcomeRow
from schemas.flags import CrawlFlags
from schemas.journal import JournalEntry
from schemas.round import RoundPlan
from schemas.state import UrlState
from tests.pipelines.conftest import ToyCrawl
from transforms import planning
from transforms.crawl_now import CrawlNow, part_name
from transforms.explaining import explain

LATER = timedelta(days=200)
TROUBLE = "http://www.trouble.example/"


@pytest.fixture(scope="module")
def later(toy_crawl: ToyCrawl, tmp_path_factory: pytest.TempPathFactory) -> ToyCrawl:
    """Return a copy of the toy crawl with a fourth round, 200 days on, whose budgets leave much waiting."""
    folder = tmp_path_factory.mktemp("later") / "crawl"
    shutil.copytree(toy_crawl.folder, folder)
    crawl = ToyCrawl(folder, toy_crawl.web, toy_crawl.server, [])
    at = (datetime.now(UTC) + LATER).isoformat()
    assert crawl.run_round(f"--as_of={at}", "--round_urls=30", "--host_round_urls=2") == 0
    return crawl


@pytest.fixture
def copied(later: ToyCrawl, tmp_path: Path) -> Path:
    """Return a folder with the same crawl that a test may change."""
    shutil.copytree(later.folder, tmp_path / "crawl")
    return tmp_path / "crawl"


def explained(folder: Path, url: str) -> dict[str, Any]:
    return explain(CrawlFolder.at(str(folder)), url, (datetime.now(UTC) + LATER).timestamp())


def run(command_main: Any, *arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert command_main(list(arguments)) == 0
    return out.getvalue()


def states(folder: Path, in_backlog: bool) -> list[UrlState]:
    """Return the rows of the calendar's backlog slots, or of all its slots."""
    crawl = CrawlFolder.at(str(folder))
    manifest = crawl.newest_manifest()
    assert manifest is not None
    return [
        row
        for entry in manifest.files
        if entry.table == calendar.TABLE and (calendar.slot_in(entry).tier or not in_backlog)
        for row in table_to_rows(parts.read_whole(crawl.storage, entry.path), UrlState)
    ]


def backlog(folder: Path) -> list[UrlState]:
    """Return the URLs that a budget has left out."""
    return states(folder, in_backlog=True)


@pytest.fixture(scope="module")
def documents(later: ToyCrawl) -> dict[str, dict[str, Any]]:
    """Return the explanation of every URL that the crawl knows."""
    return {state.url: explained(later.folder, state.url) for state in states(later.folder, in_backlog=False)}


def test_a_url_left_out_by_a_budget_says_by_which_and_how_far_its_turn_is(
    later: ToyCrawl, documents: dict[str, dict[str, Any]]
) -> None:
    manifest = CrawlFolder.at(str(later.folder)).newest_manifest()
    assert manifest is not None and set(manifest.left_out) >= {"host_budget", "round_budget"}
    reasons: Counter[str] = Counter()
    for state in backlog(later.folder):
        document = documents[state.url]
        entry = document["rounds"][-1]
        assert (entry["round"], entry["outcome"], entry["committed"]) == (4, None, True)
        assert document["next"]["left_out"] == entry["reason"]
        assert document["next"]["backlog_tier"] >= 1 and document["next"]["is_due"]
        assert f"left out by {entry['reason']}" in document["next"]["why"]
        plan = entry["plan"]
        if entry["reason"] == "host_budget":
            assert plan["host_budget"] == 2 < plan["host_urls_due"]
        elif entry["reason"] == "round_budget":
            assert plan["rank"] > plan["cut_rank"]
        else:
            assert (entry["reason"], plan["host_budget"]) == ("host_backoff", 0)
            assert document["next"]["host_not_before_at"] == plan["host_not_before_at"]
        if document["outcome"] is None:
            assert document["reason"] == entry["reason"]
        reasons[entry["reason"]] += 1
    assert reasons == manifest.left_out
    assert f"due, left out by {entry['reason']}" in text_of(document)


def test_places_count_the_urls_due_of_a_host_from_1_on(documents: dict[str, dict[str, Any]]) -> None:
    places: dict[str, list[int]] = {}
    due: dict[str, int] = {}
    for document in documents.values():
        for plan in (entry["plan"] for entry in document["rounds"] if entry["round"] == 4 and entry["plan"]):
            places.setdefault(document["keys"]["host"], []).append(plan["host_place"])
            due[document["keys"]["host"]] = plan["host_urls_due"]
    assert max(due.values()) > 5
    for host, found in places.items():
        assert sorted(found) == list(range(1, due[host] + 1))


def test_every_known_url_has_one_outcome_or_reason_here_too(
    later: ToyCrawl, documents: dict[str, dict[str, Any]]
) -> None:
    counted = Counter((document["outcome"], document["reason"]) for document in documents.values())
    assert (None, None) not in counted and all(document["known"] for document in documents.values())
    manifest = CrawlFolder.at(str(later.folder)).newest_manifest()
    assert manifest is not None
    assert counted.total() == sum(entry.rows for entry in manifest.files if entry.table == "seen")


def test_interval_and_jitter_are_those_of_the_round_that_set_the_date(
    documents: dict[str, dict[str, Any]],
) -> None:
    checked = Counter()
    for document in documents.values():
        outlook = document["next"]
        if outlook["interval_seconds"] is None or outlook["status"] == "duplicate":
            continue
        bounds = outlook["shortest_interval_seconds"], outlook["longest_interval_seconds"]
        wanted = min(max(outlook["interval_seconds"] * outlook["jitter"], bounds[0]), bounds[1])
        waited = (outlook["at"] - outlook["last_visit_at"]).total_seconds()
        assert waited == pytest.approx(wanted, abs=0.001), document["url"]
        checked[outlook["visits"]] += 1
    assert set(checked) == {1, 2}


def test_a_second_visit_shows_both_rounds_and_the_revisit_record(later: ToyCrawl) -> None:
    rows = later.rows("SELECT url FROM {captures} WHERE outcome = 'not_modified' AND round::INT = 4")
    assert rows
    document = explained(later.folder, rows[0][0])
    assert [entry["round"] for entry in document["rounds"] if entry["outcome"]][-1] == 4
    assert len(document["captures"]) == 2
    assert document["next"]["visits"] == 2
    assert document["next"]["why"].startswith("0 changes in 2 visits: an interval of")


def test_without_the_plans_files_the_manifest_still_tells_what_it_can(copied: Path) -> None:
    left = backlog(copied)[0]
    shutil.rmtree(copied / "rounds/000004/plan")
    document = explained(copied, left.url)
    assert document["next"]["left_out"] is None
    assert "left out by a budget" in document["next"]["why"]
    assert all(entry["round"] < 4 for entry in document["rounds"])


def test_an_injected_seed_is_known_and_waits(copied: Path) -> None:
    run(inject.main, f"--crawl={copied}", "http://seed.example/")
    document = explained(copied, "http://seed.example/#x")
    assert (document["known"], document["outcome"], document["reason"]) == (True, None, "injected")
    assert document["found"]["is_seed"] and document["found"]["injected_in"].startswith("inject/")
    assert document["next_fetch_at"] is None
    assert "a seed that waits for the next plan" in text_of(document)


def test_injected_rules_are_in_force_at_once(copied: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        'domains:\n  trouble.example: {exclude: true, priority: 0.1}\n  new.example: {exclude_paths: ["/x"]}\n'
    )
    run(inject.main, f"--crawl={copied}", f"--policy={policy}")
    known = explained(copied, f"{TROUBLE}gone")
    assert known["policy"] == {"exclude": True, "priority": 0.1}
    assert known["admission"] == {"admitted": False, "reason": "excluded"}
    assert "a link to it would be refused today: excluded" in text_of(known)
    assert explained(copied, "http://new.example/x/y")["reason"] == "excluded_path"
    assert explained(copied, "http://new.example/y")["admission"]["admitted"]


def unfinished(folder: Path) -> RoundPlan:
    """Plan the next round as `pipelines.round` would, and leave it there."""
    as_of = (datetime.now(UTC) + LATER).timestamp()
    view, plan = plan_of(CrawlFolder.at(str(folder)), CrawlFlags(host_round_urls=1, round_urls=10), as_of)
    assert plan is not None
    return planning.commit_plan(view, plan)


def test_an_unfinished_round_shows_what_it_planned(copied: Path) -> None:
    run(inject.main, f"--crawl={copied}", "--priority=1", "http://seed.example/")
    plan = unfinished(copied)
    documents = {state.url: explained(copied, state.url) for state in backlog(copied)}
    seed = documents["http://seed.example/"] = explained(copied, "http://seed.example/")
    assert seed["known"] and seed["outcome"] is None
    counts = Counter(
        entry["reason"]
        for document in documents.values()
        for entry in document["rounds"]
        if entry["round"] == 5
    )
    assert counts["planned"] <= plan.planned and counts["planned"] + counts["host_budget"] > 0
    assert set(counts) <= {"planned", *plan.left_out}
    planned = next(d for d in documents.values() if d["rounds"] and d["rounds"][-1]["reason"] == "planned")
    assert planned["rounds"][-1]["committed"] is False
    assert planned["rounds"][-1]["plan"]["host_budget"] == 1


def test_what_the_journal_says_of_an_unfinished_round_is_shown_as_not_committed(copied: Path) -> None:
    plan = unfinished(copied)
    crawl = CrawlNow(CrawlFolder.at(str(copied)), 0.0)
    planned = [row for due in plan.due for row in planning.planned_rows(crawl, plan, due).to_pylist()]
    state = table_to_rows(pa.Table.from_pylist(planned[:1], row_schema(UrlState)), UrlState)[0]
    row = OutcomeRow(
        *(state.url, state.host_key, state.url_key, "planned", "deferred", "round_deadline", None, state.url),
        *(state.depth, state.priority, state.discovered_from, 0),
    )
    path = layout.work_file(plan.round, "outcomes.parquet")
    parts.write_table(crawl.storage, path, rows_to_table([row], OutcomeRow))
    shard = plan.shard_of_group[str(state.host_key >> 48)]
    entry = JournalEntry(shard, 1, "a", 0.0, 1.0, (), {}, path, planned_done=1)
    Journal(crawl.folder, plan.round, shard).append(entry)
    document = explained(copied, state.url)
    entries = [entry for entry in document["rounds"] if entry["round"] == plan.round]
    assert [(e["outcome"], e["reason"], e["committed"]) for e in entries] == [
        ("deferred", "round_deadline", False)
    ]
    assert "not committed yet" in text_of(document)
    assert document["reason"] != "round_deadline"


def test_files_that_were_committed_and_not_yet_published_are_found(copied: Path) -> None:
    manifest = CrawlFolder.at(str(copied)).newest_manifest()
    assert manifest is not None
    url = f"{TROUBLE}gone"
    before = {state.url: explained(copied, state.url) for state in backlog(copied)[:5]} | {
        url: explained(copied, url)
    }
    for entry in manifest.files:
        if entry.staged_path:
            (copied / entry.staged_path).parent.mkdir(parents=True, exist_ok=True)
            (copied / entry.path).rename(copied / entry.staged_path)
    for url, document in before.items():
        assert explained(copied, url)["rounds"] == document["rounds"]


def test_the_files_of_a_partition_are_named_after_it(later: ToyCrawl) -> None:
    crawl = CrawlFolder.at(str(later.folder))
    checked = 0
    for number in range(1, crawl.newest_round() + 1):
        for entry in crawl.read_manifest(number).files:
            if entry.table in ("captures", "removed") and f"round={number:06d}" in entry.path:
                assert Path(entry.path).name.startswith(part_name(entry.partition))
                checked += 1
    assert checked > 20


def test_a_damaged_file_is_named_with_exit_1(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crawl = CrawlNow(CrawlFolder.at(str(copied)), 0.0)
    (file,) = (copied / "tables/captures/round=000003").glob(f"{part_name(crawl.partition(TROUBLE))}*")
    file.write_bytes(file.read_bytes()[:100])
    assert command.main([f"--crawl={copied}", f"{TROUBLE}gone"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("explain: ") and file.name in error and error.count("\n") == 1


def test_a_crawl_without_a_round_knows_its_seeds_and_its_scope(tmp_path: Path) -> None:
    run(inject.main, f"--crawl={tmp_path}/c", "--scope=host", "http://a.example/")
    assert explained(tmp_path / "c", "http://a.example/")["reason"] == "injected"
    assert explained(tmp_path / "c", "http://a.example/b")["admission"]["admitted"]
    assert explained(tmp_path / "c", "http://b.example/")["reason"] == "out_of_scope"
