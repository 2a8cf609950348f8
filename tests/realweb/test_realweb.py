"""Thousands of real pages, in several languages and charsets, held against the files on disk."""

from __future__ import annotations

import random
import re
import subprocess

from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from tests.realweb.conftest import RealCrawl, command

LEAST_PAGES = 3000


def test_thousands_of_pages_are_fetched(real_crawl: RealCrawl) -> None:
    [(fetched,)] = real_crawl.rows(
        "SELECT count(*) FROM {captures} WHERE kind='planned' AND fetch_status=200"
    )
    [(pages,)] = real_crawl.rows("SELECT count(*) FROM {pages}")
    [(copies,)] = real_crawl.rows("SELECT count(*) FROM {duplicates}")
    print(f"{fetched} fetched, {pages} pages, {copies} duplicates in {real_crawl.seconds:.0f} s")
    assert fetched >= LEAST_PAGES
    assert pages + copies <= fetched


def test_each_url_answers_as_its_file_does(real_crawl: RealCrawl) -> None:
    rows = real_crawl.rows("SELECT url, fetch_status FROM {captures} WHERE kind='planned'")
    wrong = [
        (url, status)
        for url, status in rows
        if status in (200, 404) and (status == 200) != real_crawl.file_of(url).is_file()
    ]
    assert wrong == []


def test_the_audit_and_warcio_find_nothing(real_crawl: RealCrawl) -> None:
    assert subprocess.run(command("audit", f"--crawl={real_crawl.folder}"), check=False).returncode == 0
    for path in sorted(real_crawl.folder.glob("warc/*/*/*.warc.gz")):
        checker = Checker(type("Options", (), {"inputs": [str(path)], "verbose": False})())
        assert checker.process_all() == 0, path


def test_bodies_in_the_archive_are_the_files(real_crawl: RealCrawl) -> None:
    rows = real_crawl.rows("SELECT url, warc_filename, warc_record_offset FROM {pages} ORDER BY url_surtkey")
    for url, name, offset in random.Random(1).sample(rows, 500):
        with (real_crawl.folder / name).open("rb") as file:
            file.seek(offset)
            record = next(iter(ArchiveIterator(file)))
            assert record.rec_headers.get_header("WARC-Target-URI") == url
            assert record.content_stream().read() == real_crawl.file_of(url).read_bytes()


def test_text_comes_from_the_page(real_crawl: RealCrawl) -> None:
    rows = real_crawl.rows("SELECT url, title, text, charset FROM {pages}")
    with_text = [row for row in rows if row[2]]
    assert len(with_text) >= 0.97 * len(rows)
    assert {row[3] for row in rows} >= {"utf-8", "euc-kr", "windows-1252"}
    for url, title, text, charset in random.Random(2).sample(with_text, 300):
        source = real_crawl.file_of(url).read_bytes().decode(charset, "replace")
        visible = re.sub(r"\s+", "", re.sub(r"<[^>]*>", "", source))
        words = [word for word in re.findall(r"\w{4,}", text)[:200] if word.isascii()]
        missing = [word for word in words if word not in visible]
        assert len(missing) <= 0.05 * len(words) + 1, (url, missing[:10])
        assert title is None or "\ufffd" not in title


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def shingles(text: str) -> set[tuple[str, ...]]:
    words = words_of(text)
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


def test_duplicates_are_alike_and_exact_copies_are_found(real_crawl: RealCrawl) -> None:
    pairs = real_crawl.rows("SELECT url, kept_url, kind, similarity FROM {duplicates}")
    texts = dict(real_crawl.rows("SELECT url, text FROM {pages}"))
    assert {kind for _, _, kind, _ in pairs} >= {"exact"}
    assert all(kept in texts for _, kept, _, _ in pairs)
    bodies: dict[bytes, set[str]] = {}
    for (url,) in real_crawl.rows("SELECT url FROM {captures} WHERE kind='planned' AND fetch_status=200"):
        if url.endswith(".html"):
            bodies.setdefault(real_crawl.file_of(url).read_bytes(), set()).add(url)
    for copies in bodies.values():
        assert len(copies & texts.keys()) <= 1, copies
