"""What the tests of `pipelines.explain` ask and read."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from connectors import calendar, parts
from connectors.rounds import CrawlFolder
from connectors.rows import table_to_rows
from connectors.warc_read import read_payload
from pipelines import explain as command
from schemas.state import UrlState
from tests.pipelines.conftest import ToyCrawl

HUB = "http://hub.example/"
TROUBLE = "http://www.trouble.example/"


def asked(crawl: ToyCrawl | Path, url: str) -> dict[str, Any]:
    """Return what the command prints with --json."""
    folder = crawl.folder if isinstance(crawl, ToyCrawl) else crawl
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert command.main([f"--crawl={folder}", "--json", url]) == 0
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def told(crawl: ToyCrawl | Path, url: str) -> str:
    """Return what the command prints for people."""
    folder = crawl.folder if isinstance(crawl, ToyCrawl) else crawl
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert command.main([f"--crawl={folder}", url]) == 0
    return out.getvalue()


def known_states(folder: CrawlFolder) -> list[UrlState]:
    """Return every row of the calendar, read as a whole."""
    manifest = folder.newest_manifest()
    assert manifest is not None
    paths = [entry.path for entry in manifest.files if entry.table == calendar.TABLE]
    return [row for path in paths for row in table_to_rows(parts.read_whole(folder.storage, path), UrlState)]


def body_at(crawl: ToyCrawl, place: dict[str, Any]) -> bytes:
    """Return the payload of the record that a document points to."""
    with (crawl.folder / place["warc_filename"]).open("rb") as file:
        file.seek(place["warc_record_offset"])
        return read_payload(file.read(place["warc_record_length"])).body
