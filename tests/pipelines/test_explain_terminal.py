"""`pipelines.explain` as a command: what it refuses, and that nothing strangers wrote steers a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from connectors.rounds import CrawlFolder
from pipelines import explain as command
from pipelines.explanation import text_of
from runners.options import UsageError
from tests.pipelines.conftest import ToyCrawl
from tests.pipelines.explaining import TROUBLE, told
from transforms.explaining import explain

HOSTILE = "\x1b]0;x\x07\x1b[2J\x00\x7f\x9b\r\u202e\u2028\ud800é"


def poisoned(value: Any) -> Any:
    """Return a document with hostile characters at the end of every text in it."""
    if isinstance(value, dict):
        return {name: poisoned(member) for name, member in value.items()}
    if isinstance(value, list):
        return [poisoned(member) for member in value]
    return value + HOSTILE if isinstance(value, str) else value


def test_control_characters_never_reach_the_terminal(toy_crawl: ToyCrawl) -> None:
    folder = CrawlFolder.at(str(toy_crawl.folder))
    urls = [f"{TROUBLE}gone", "http://www.robots-private.example/private", "http://www.moved.example/old"]
    urls += [url for (url,) in toy_crawl.rows("SELECT url FROM {duplicates} LIMIT 2")]
    for url in [*urls, "http://new.example/", "none"]:
        document = poisoned(explain(folder, url, 0.0))
        text = text_of(document)
        assert "\\x1b]0;x" in text
        assert all(c.isprintable() for line in text.split("\n") for c in line)
        written = command.json_of(document)
        assert written.isascii() and written.isprintable()
        assert json.loads(written)["given"] == document["given"]


def test_a_hostile_argument_is_shown_as_escapes(toy_crawl: ToyCrawl) -> None:
    for given in ("http://new.example/\x1b[31mred", "\x1b[2J", "http://new.example/\udc80\u202e"):
        assert told(toy_crawl, given).replace("\n", "").isprintable()


def test_a_folder_without_a_crawl_and_a_missing_url_are_usage_errors(tmp_path: Path) -> None:
    for arguments in (
        [f"--crawl={tmp_path}", "http://a.example/"],
        [f"--crawl={tmp_path}"],
        ["http://a.example/"],
    ):
        with pytest.raises(UsageError):
            command.main(arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_command_answers_without_beam(toy_crawl: ToyCrawl) -> None:
    code = "import sys; from pipelines.explain import main; main(sys.argv[1:]); assert 'apache_beam' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code, f"--crawl={toy_crawl.folder}", f"{TROUBLE}gone"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"URL       {TROUBLE}gone\n")
