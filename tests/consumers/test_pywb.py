"""pywb replays a crawl from its own WARC files and its own index, over HTTP."""

from __future__ import annotations

import gzip
import http.client
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import pytest

from connectors.cdxj import CdxjRow, format_row
from connectors.warc_read import WarcRecord, iter_records
from tests.consumers.conftest import ETAG_URLS, free_port, tool, wait_for
from tests.fakes.crawls import ToyCrawl

CONFIG = """
collections:
  toy:
    index_paths: {index}
    archive_paths: {archive}/
"""


class Replayed(NamedTuple):
    """An answer of pywb, unmodified by it (`id_`)."""

    status: int
    headers: dict[str, str]
    body: bytes


class Replay:
    """Asks pywb for captures."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, url: str, timestamp: str, modifier: str = "id_") -> Replayed:
        """Return the capture of a URL nearest to a 14-digit time; no redirect is followed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", f"/toy/{timestamp}{modifier}/{url}")
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        found = Replayed(answer.status, headers, answer.read())
        connection.close()
        return found


@pytest.fixture(scope="module")
def replay(
    crawl: ToyCrawl, index_rows: list[CdxjRow], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replay]:
    folder, port = tmp_path_factory.mktemp("pywb"), free_port()
    index = folder / "index.cdxj"
    index.write_text("".join(f"{line}\n" for line in sorted(map(format_row, index_rows))))
    (folder / "config.yaml").write_text(CONFIG.format(index=index, archive=crawl.folder))
    with (folder / "log.txt").open("wb") as log:
        command = [tool("pywb", "wayback"), "-d", str(folder), "-b", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for(port, process)
            yield Replay(port)
        finally:
            process.terminate()
            process.wait(timeout=10)


def rows_of(rows: list[CdxjRow], url: str) -> list[CdxjRow]:
    return sorted((row for row in rows if row.fields["url"] == url), key=lambda row: row.timestamp)


def record_of(folder: Path, row: CdxjRow) -> WarcRecord:
    wanted = int(row.fields["offset"])
    return next(r for r in iter_records(folder / row.fields["filename"]) if r.offset == wanted)


def server_body(crawl: ToyCrawl, url: str) -> bytes:
    """Return what the server sends, with its gzip coding undone, as pywb does for a client that takes none."""
    host, _, path = url.removeprefix("http://").partition("/")
    reply = crawl.web.respond(host, f"/{path}")
    return gzip.decompress(reply.body) if ("Content-Encoding", "gzip") in reply.headers else reply.body


def test_a_page_is_what_the_server_sent(replay: Replay, crawl: ToyCrawl, index_rows: list[CdxjRow]) -> None:
    url = "http://www.site01.example/page-0.html"
    row = rows_of(index_rows, url)[0]
    found = replay.get(url, row.timestamp)
    assert (found.status, found.body) == (200, server_body(crawl, url))
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert found.headers["content-location"].endswith(f"/toy/{row.timestamp}id_/{url}")


def test_every_page_of_the_table_replays(replay: Replay, crawl: ToyCrawl) -> None:
    pages = crawl.rows("SELECT url, strftime(fetched_at, '%Y%m%d%H%M%S') FROM {pages} ORDER BY 1")
    assert len(pages) > 60
    for url, timestamp in pages:
        found = replay.get(url, timestamp)
        assert found.status == 200, url
        whole = server_body(crawl, url)
        assert found.body == whole or (url.endswith("/big") and whole.startswith(found.body)), url


def test_a_rewritten_page_links_into_the_archive(replay: Replay, index_rows: list[CdxjRow]) -> None:
    url = "http://www.site01.example/"
    row = rows_of(index_rows, url)[0]
    found = replay.get(url, row.timestamp, "mp_")
    assert found.status == 200
    assert f"/toy/{row.timestamp}mp_/http://www.site01.example/missing.html".encode() in found.body or (
        b'href="/page-0.html"' not in found.body
    )


def test_a_redirect_leads_to_a_page_that_replays(replay: Replay, index_rows: list[CdxjRow]) -> None:
    url = "http://www.moved.example/old"
    row = rows_of(index_rows, url)[0]
    moved = replay.get(url, row.timestamp)
    assert (moved.status, moved.headers["location"], moved.body) == (301, "/new", b"")
    target = urljoin(url, moved.headers["location"])
    assert replay.get(target, row.timestamp).status == 200


def test_a_304_replays_as_304_and_its_original_as_the_page(
    replay: Replay, crawl: ToyCrawl, index_rows: list[CdxjRow]
) -> None:
    for url in ETAG_URLS:
        original, revisit = rows_of(index_rows, url)
        assert (original.fields["status"], revisit.fields["status"]) == ("200", "304")
        assert revisit.fields["mime"] == "warc/revisit"
        record = record_of(crawl.folder, revisit)
        assert record.get("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
        assert record.get("WARC-Refers-To") == record_of(crawl.folder, original).get("WARC-Record-ID")
        # pywb shows the 304 itself, without a body; a browser that has the page shows that one.
        found = replay.get(url, revisit.timestamp)
        assert (found.status, found.body) == (304, b"")
        page = replay.get(url, original.timestamp)
        assert (page.status, page.body) == (200, server_body(crawl, url))


def test_an_identical_payload_replays_with_the_body_of_its_original(
    replay: Replay, crawl: ToyCrawl, index_rows: list[CdxjRow]
) -> None:
    kinds = set()
    for row in index_rows:
        if row.fields["mime"] != "warc/revisit" or row.fields["status"] != "200":
            continue
        record = record_of(crawl.folder, row)
        url, original = row.fields["url"], record.get("WARC-Refers-To-Target-URI")
        kinds.add("same URL" if original == url else "other URL")
        found = replay.get(url, row.timestamp)
        assert (found.status, found.body) == (200, server_body(crawl, url)), url
        assert found.headers["content-location"].endswith(f"{row.timestamp}id_/{url}")
    assert kinds == {"same URL", "other URL"}
