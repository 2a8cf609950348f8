"""`pipelines.export --wet` on a toy crawl: the texts of the pages table, as WARC tools read them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.archiveiterator import WARCIterator
from warcio.checker import Checker

from connectors.warc_read import iter_records
from pipelines import export
from runners.options import UsageError
from tests.pipelines.conftest import ToyCrawl


@pytest.fixture(scope="module")
def folder(toy_crawl: ToyCrawl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the toy crawl with the WET files of all its rounds."""
    copy = Path(shutil.copytree(toy_crawl.folder, tmp_path_factory.mktemp("export") / "crawl"))
    for number in (1, 2, 3):
        assert export.main([f"--crawl={copy}", "--wet", f"--round={number}"]) == 0
    return copy


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("wet/*/*"))


def test_there_is_one_wet_file_for_each_warc_file_of_pages(folder: Path) -> None:
    warcs = sorted(folder.glob("warc/*/warc/*.warc.gz"))
    assert [path.relative_to(folder).as_posix() for path in files(folder)] == [
        f"wet/{path.parts[-3]}/{path.name.removesuffix('.gz')}.wet.gz" for path in warcs
    ]


def test_the_records_are_the_texts_of_the_pages(folder: Path, toy_crawl: ToyCrawl) -> None:
    wanted = dict(toy_crawl.rows("SELECT url, text FROM {pages}"))
    found = {}
    for path in files(folder):
        with path.open("rb") as file:
            for record in WARCIterator(file):
                if record.rec_type == "conversion":
                    found[record.rec_headers["WARC-Target-URI"]] = record.content_stream().read().decode()
    assert found == wanted


def test_each_record_refers_to_the_response_that_holds_its_payload(folder: Path, toy_crawl: ToyCrawl) -> None:
    captures = {
        (path.relative_to(folder).as_posix(), record.offset): record
        for path in folder.glob("warc/*/*/*.gz")
        for record in iter_records(path)
        if record.kind in ("response", "revisit")
    }
    places = {
        url: (name, offset)
        for url, name, offset in toy_crawl.rows("SELECT url, warc_filename, warc_record_offset FROM {pages}")
    }
    responses = {r.get("WARC-Record-ID") for r in captures.values() if r.kind == "response"}
    records = [r for path in files(folder) for r in iter_records(path) if r.kind == "conversion"]
    assert len(records) == len(places)
    for record in records:
        url = record.get("WARC-Target-URI") or ""
        own = captures[places[url]]
        assert (own.get("WARC-Target-URI"), own.get("WARC-Date")) == (url, record.get("WARC-Date"))
        wanted = own.get("WARC-Record-ID" if own.kind == "response" else "WARC-Refers-To")
        assert record.get("WARC-Refers-To") == wanted and wanted in responses
    names = [record.get("WARC-Record-ID") for record in records]
    assert len(set(names)) == len(names) and not set(names) & responses


def test_warcio_and_fastwarc_find_no_fault(folder: Path) -> None:
    for path in files(folder):
        options = type("Options", (), {"inputs": [str(path)], "verbose": False})()
        assert Checker(options).process_all() == 0
        for record in ArchiveIterator(str(path), record_types=WarcRecordType.conversion):
            assert record.verify_block_digest()


def test_a_second_export_changes_nothing_and_a_cut_one_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files(folder)}
    assert export.main([f"--crawl={folder}", "--wet"]) == 0
    assert re.match(
        rf"wet: 0 records in 0 new files, \d+ already there: {folder}/wet/000003/\n", capsys.readouterr().out
    )
    victim = files(folder)[-1]
    victim.unlink()
    assert export.main([f"--crawl={folder}", "--wet"]) == 0
    assert re.match(r"wet: \d+ records in 1 new files, ", capsys.readouterr().out)
    assert files(folder) == list(before)
    for path, (data, written_at) in before.items():
        assert path.read_bytes() == data
        assert path == victim or path.stat().st_mtime_ns == written_at


def test_a_table_that_names_another_record_is_damage(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wet = next(iter((folder / "wet/000001").iterdir()))
    wet.unlink()
    (warc,) = folder.glob("warc/000001/warc/*")
    whole = warc.read_bytes()
    warc.write_bytes(b"\0" * len(whole))
    try:
        assert export.main([f"--crawl={folder}", "--wet", "--round=1"]) == 1
    finally:
        warc.write_bytes(whole)
    assert f"{warc.name} is damaged: offset" in capsys.readouterr().err
    assert not wet.exists()
    assert export.main([f"--crawl={folder}", "--wet", "--round=1"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to export: give --wet"),
        (["--wet", "--round=99"], "round 99 .* is not committed"),
        (["--wat"], "unknown flag --wat; did you mean --wet"),
        (["--wet=yes"], "ignored explicit argument"),
    ],
)
def test_bad_usage_is_one_line(folder: Path, arguments: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        export.main([f"--crawl={folder}", *arguments])


def test_a_folder_without_a_round_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no crawl at"):
        export.main([f"--crawl={tmp_path}", "--wet"])
