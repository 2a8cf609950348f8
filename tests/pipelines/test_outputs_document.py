"""docs/outputs.md says what the program does: columns, examples, and the members of explain."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connectors import cdxj
from connectors.rounds import CrawlFolder
from schemas.tables import TABLES
from tests.pipelines.conftest import ToyCrawl
from transforms.explaining import explain

TEXT = (Path(__file__).parent.parent.parent / "docs" / "outputs.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text under a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,3}} |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[2]


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_listed_in_order_with_its_type(table: str) -> None:
    listed = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", section(table), re.MULTILINE)
    columns = TABLES[table].columns
    assert [name for name, _, _ in listed] == [column.name for column in columns]
    assert [kind for _, kind, _ in listed] == [
        column.type + (", may be null" if column.nullable else "") for column in columns
    ]


def test_every_table_and_no_other_has_a_section() -> None:
    assert set(re.findall(r"^### (\w+)$", section_of_tables(), re.MULTILINE)) == set(TABLES)


def section_of_tables() -> str:
    return TEXT[TEXT.index("## Tables") : TEXT.index("## Common Crawl's queries")]


def test_the_examples_run_on_the_toy_crawl(toy_crawl: ToyCrawl) -> None:
    (block,) = re.findall(r"```sql\n(.*?)```", section_of_tables(), re.DOTALL)
    removed = toy_crawl.folder / "tables/removed"
    for statement in block.replace("DIR", str(toy_crawl.folder)).split(";"):
        if statement.strip() and ("tables/removed" not in statement or removed.exists()):
            assert duckdb.sql(statement).fetchall()


def test_a_record_is_where_the_shell_line_cuts(toy_crawl: ToyCrawl) -> None:
    found = re.search(r"^tail .*$", section("Index"), re.MULTILINE)
    assert found is not None
    with (toy_crawl.folder / "index/000003/warc.cdxj.gz").open("rb") as file:
        row = cdxj.parse_row(list(cdxj.read_lines(file))[5])
    line = found[0].replace("DIR", str(toy_crawl.folder))
    for name in ("OFFSET", "FILENAME", "LENGTH"):
        line = line.replace(name, row.fields[name.lower()])
    record = subprocess.run(["/bin/sh", "-c", line], check=True, capture_output=True).stdout
    assert record.startswith(b"WARC/1.1\r\n") and row.fields["url"].encode() in record


def members(value: Any) -> set[str]:
    """Return the names of all members of a document, at any depth."""
    if isinstance(value, dict):
        return set(value).union(*map(members, value.values()))
    return set().union(*map(members, value)) if isinstance(value, list) else set()


def test_every_member_of_an_explanation_is_described(toy_crawl: ToyCrawl) -> None:
    described = set(re.findall(r"`(\w+)`", section("explain")))
    folder = CrawlFolder.at(str(toy_crawl.folder))
    urls = [url for (url,) in toy_crawl.rows("SELECT DISTINCT url FROM {captures}")]
    now = datetime.now(UTC).timestamp()
    documents = [explain(folder, url, now) for url in [*urls, "http://new.example/", "none"]]
    policies = {name for document in documents for name in document["policy"]}
    assert members(documents) - policies <= described
    top = re.findall(r"^\| `(\w+)` \|", section("explain"), re.MULTILINE)
    assert set(top) == documents[0].keys()
