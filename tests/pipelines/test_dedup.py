"""`pipelines.dedup` on WARC files that another library wrote."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import duckdb
import numpy as np
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from pipelines import dedup
from runners.options import UsageError
from tests.fakes.texts import edited_pairs, make_words


def html(text: str, head: str = "") -> bytes:
    return f"<html><head><title>t</title>{head}</head><body><p>{text}</p></body></html>".encode()


def text(seed: int) -> str:
    return " ".join(make_words(np.random.default_rng(seed), 300))


def write_warc(path: Path, responses: Sequence[tuple[str, bytes, dict[str, str]]]) -> None:
    """Write responses with warcio; a header ``status`` stands for the status line."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "test"}))
        for url, body, headers in responses:
            sent = {"Content-Type": "text/html; charset=utf-8", **headers}
            status = sent.pop("status", "200 OK")
            http = StatusAndHeaders(status, list(sent.items()), protocol="HTTP/1.1")
            writer.write_record(
                writer.create_warc_record(
                    url,
                    "response",
                    payload=BytesIO(body),
                    http_headers=http,
                    warc_headers_dict={"WARC-Date": "2026-01-02T03:04:05Z"},
                )
            )


def rows(folder: Path, query: str) -> list[tuple]:
    tables = {name: f"read_parquet('{folder}/tables/{name}/*/*.parquet')" for name in ("pages", "duplicates")}
    return duckdb.sql(query.format(**tables)).fetchall()


@pytest.fixture
def warcs(tmp_path: Path) -> Path:
    folder = tmp_path / "warcs" / "deep"
    folder.mkdir(parents=True)
    (near,) = edited_pairs(0.97, 1, seed=3)
    chunked = html(text(1))
    write_warc(
        folder / "a.warc.gz",
        [
            ("http://b.example/1", html(text(1)), {}),
            ("http://c.example/near", html(near.one), {}),
            ("http://c.example/gone", html("x"), {"status": "404 Not Found"}),
            ("http://c.example/hidden", html(text(2), '<meta name="robots" content="noindex">'), {}),
            ("http://c.example/picture", b"\x89PNG\r\n\x1a\n", {"Content-Type": "image/png"}),
            ("ftp://c.example/file", html(text(3)), {}),
        ],
    )
    write_warc(
        folder / "b.warc.gz",
        [
            ("http://a.example/1", gzip.compress(html(text(1))), {"Content-Encoding": "gzip"}),
            ("http://d.example/near", html(near.other), {}),
            (
                "http://e.example/1",
                b"%x\r\n%s\r\n0\r\n\r\n" % (len(chunked), chunked),
                {"Transfer-Encoding": "chunked"},
            ),
            ("http://f.example/", html(text(4)), {}),
            ("http://f.example/", html(text(5)), {}),
        ],
    )
    return folder.parent


def test_tables_hold_each_text_once(warcs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert dedup.main([f"--warc={warcs}/**/*.warc.gz", f"--out={out}", "--page_processes=1"]) == 0
    kept = rows(out, "SELECT url, warc_filename FROM {pages} ORDER BY 1, 2")
    assert kept == [
        ("http://a.example/1", "b.warc.gz"),
        ("http://c.example/near", "a.warc.gz"),
        ("http://f.example/", "b.warc.gz"),
        ("http://f.example/", "b.warc.gz"),
    ]
    lost = rows(out, "SELECT url, kept_url, kind FROM {duplicates} ORDER BY 1")
    assert lost == [
        ("http://b.example/1", "http://a.example/1", "exact"),
        ("http://d.example/near", "http://c.example/near", "near"),
        ("http://e.example/1", "http://a.example/1", "exact"),
    ]
    (fetched_at,) = rows(out, "SELECT DISTINCT epoch(fetched_at)::BIGINT FROM {pages}")[0]
    assert fetched_at == 1767323045
    printed = capsys.readouterr().out
    assert "unique: 4, exact: 2, near: 1" in printed
    assert "left out: " in printed and "noindex 1" in printed and "status_404 1" in printed
    left = {path.relative_to(out).parts[0] for path in out.rglob("*") if path.is_file()}
    assert left == {"dedup.json", "tables"}


def test_a_damaged_file_keeps_what_comes_before(
    warcs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = warcs / "deep" / "a.warc.gz"
    path.write_bytes(path.read_bytes()[:-200])
    out = tmp_path / "out"
    assert dedup.main([f"--warc={path}", f"--out={out}", "--page_processes=1"]) == 0
    assert "damaged: a.warc.gz: offset" in capsys.readouterr().err
    assert rows(out, "SELECT count(*) FROM {pages}") == [(2,)]
    assert json.loads((out / "dedup.json").read_text())["pages"] == 2


def test_what_cannot_be_run_is_said_and_writes_nothing(warcs: Path, tmp_path: Path) -> None:
    pattern, out = f"--warc={warcs}/*/a.warc.gz", tmp_path / "out"
    for arguments, message in (
        ([f"--warc={warcs}/*.none", f"--out={out}"], "matches no file"),
        ([pattern, f"--out={out}", "--near_dup_threshold=2"], "near_dup_threshold must be from 0.5 to 1"),
        ([pattern, f"--out={out}", "--near_dup_treshold=0.9"], "did you mean --near_dup_threshold"),
        ([pattern], "--out"),
    ):
        with pytest.raises(UsageError, match=message):
            dedup.main(arguments)
    assert not out.exists()
    (out / "tables").mkdir(parents=True)
    (out / "dedup.json").write_text("{}")
    with pytest.raises(UsageError, match="holds results already"):
        dedup.main([pattern, f"--out={out}"])
