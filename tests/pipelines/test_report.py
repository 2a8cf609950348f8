"""`pipelines.report` on a toy crawl: the file, what it says, and what the command says when it cannot."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from connectors.rounds import CrawlFolder
from pipelines import report
from runners.options import UsageError
from tests.fakes.memory_store import MemoryStorage
from tests.pipelines.conftest import ToyCrawl
from transforms.report.reporting import write_report


class Tables(HTMLParser):
    """The tables of a page: caption -> rows of cell texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._caption = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("caption", "th", "td"):
            self._inside = tag
            if tag == "caption":
                self._caption = ""
            else:
                self.tables[self._caption][-1].append("")
        elif tag == "tr":
            self.tables.setdefault(self._caption, []).append([])

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "caption":
            self._caption += data
        elif self._inside:
            self.tables[self._caption][-1][-1] += data


@pytest.fixture(scope="module")
def folder(toy_crawl: ToyCrawl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the toy crawl to write into."""
    return Path(shutil.copytree(toy_crawl.folder, tmp_path_factory.mktemp("report") / "crawl"))


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, list[list[str]]]:
    assert report.main([f"--crawl={folder}"]) == 0
    return Tables((folder / "reports/000003.html").read_text(encoding="utf-8")).tables


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_the_newest_round_is_reported_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "reports/000003.html").unlink(missing_ok=True)
    assert report.main([f"--crawl={folder}"]) == 0
    assert capsys.readouterr().out == f"report: {folder}/reports/000003.html\n"
    first = (folder / "reports/000003.html").read_bytes()
    assert report.main([f"--crawl={folder}", "--round=3"]) == 0
    assert capsys.readouterr().out == f"report: {folder}/reports/000003.html (already there, unchanged)\n"
    assert (folder / "reports/000003.html").read_bytes() == first
    assert report.main([f"--crawl={folder}", "--round=2"]) == 0
    assert sorted(path.name for path in (folder / "reports").iterdir()) == ["000002.html", "000003.html"]


def test_outcomes_are_those_of_the_manifest(folder: Path, tables: dict[str, list[list[str]]]) -> None:
    manifest = json.loads((folder / "rounds/000003/manifest.json").read_text())
    rows = tables["Planned URLs by outcome and reason"][1:]
    found = {(row[0], row[0] if row[1] == "–" else row[1]): number(row[2]) for row in rows}
    wanted = {(o, why): n for o, reasons in manifest["outcomes"].items() for why, n in reasons.items()}
    assert found == wanted
    assert sum(found.values()) == manifest["planned"]


def test_figures_are_those_of_the_tables(toy_crawl: ToyCrawl, tables: dict[str, list[list[str]]]) -> None:
    asked = toy_crawl.rows("SELECT count(*) FROM {captures} WHERE round=3 AND started_at IS NOT NULL")
    facts = {row[0]: row[1] for row in tables["The round in numbers"]}
    assert number(facts["requests, robots.txt and redirects too"]) == asked[0][0]
    hosts = "SELECT count(DISTINCT url_host_name) FROM {captures} WHERE round=3 AND started_at IS NOT NULL"
    assert number(facts["hosts asked"]) == toy_crawl.rows(hosts)[0][0]
    kinds = toy_crawl.rows("SELECT kind, count(*) FROM {duplicates} WHERE round=3 GROUP BY 1 ORDER BY 1")
    assert [(row[0], number(row[1])) for row in tables["Duplicates by kind"][1:]] == kinds
    depths = toy_crawl.rows(
        "SELECT depth, count(*) FROM {captures} WHERE round=3 AND kind='planned' GROUP BY 1 ORDER BY 1"
    )
    shown = [(number(row[0]), number(row[1])) for row in tables["Planned URLs by depth"][1:]]
    assert [row for row in shown if row[1]] == depths
    slowest = toy_crawl.rows(
        "SELECT url_host_name FROM {captures} WHERE round=3 AND started_at IS NOT NULL GROUP BY 1 "
        "ORDER BY max(finished_at) - min(started_at) DESC LIMIT 1"
    )
    assert tables["Ten slowest hosts"][1][0] == slowest[0][0]


def test_the_frontier_holds_every_known_url(folder: Path, tables: dict[str, list[list[str]]]) -> None:
    manifest = json.loads((folder / "rounds/000003/manifest.json").read_text())
    known = sum(entry["rows"] for entry in manifest["files"] if entry["table"] == "seen")
    assert number(tables["Known URLs by priority and due date"][-1][-1]) == known
    assert sum(number(row[1]) for row in tables["Known URLs by status"][1:]) == known


def test_a_crawl_on_an_object_store_is_reported_there(folder: Path) -> None:
    (folder / "reports/000003.html").unlink(missing_ok=True)
    store = MemoryStorage()
    for path in folder.rglob("*"):
        if path.is_file():
            store.publish(str(shutil.copy(path, folder.parent / "copy")), str(path.relative_to(folder)))
    assert write_report(CrawlFolder(store), 3) is True
    page = store.read_bytes("reports/000003.html").decode()
    assert f"{store.root}/tables/" in page
    local = CrawlFolder.at(str(folder))
    assert write_report(local, 3) is True
    there = local.storage.read_bytes("reports/000003.html").decode()
    assert page == there.replace(local.root, store.root)


def test_a_damaged_table_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "reports/000001.html").unlink(missing_ok=True)
    victim = next((folder / "tables/captures/round=000001").iterdir())
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-9])
    try:
        assert report.main([f"--crawl={folder}", "--round=1"]) == 1
    finally:
        victim.write_bytes(whole)
    assert victim.name in capsys.readouterr().err
    assert not (folder / "reports/000001.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--round=99"], "round 99 .* is not committed"),
        (["--round=0"], "must be greater than 0"),
        (["--rounds=3"], "unknown flag --rounds; did you mean --round"),
        (["3"], "unknown argument 3"),
    ],
)
def test_bad_usage_is_one_line(folder: Path, arguments: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        report.main([f"--crawl={folder}", *arguments])


def test_a_folder_without_a_round_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no crawl at"):
        report.main([f"--crawl={tmp_path}"])
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_remedy_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "reports/000003.html").unlink(missing_ok=True)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'matplotlib>=3.8'")):
        report.main([f"--crawl={folder}"])
    assert not (folder / "reports/000003.html").exists()


def test_the_command_imports_no_beam_and_no_matplotlib_before_it_draws() -> None:
    code = (
        "import sys; from pipelines import report; "
        "print([name for name in ('apache_beam', 'matplotlib') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
