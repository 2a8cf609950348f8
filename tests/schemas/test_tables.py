"""The public columns do not change unannounced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schemas.tables import COMMON_CRAWL_COLUMNS, SCHEMA_VERSION, TABLES

ROOT = Path(__file__).parent.parent.parent
GOLDEN = json.loads((ROOT / "tests" / "data" / "table_columns.json").read_text(encoding="utf-8"))


def current_columns() -> dict[str, Any]:
    return {
        table.name: [[column.name, column.type, column.nullable] for column in table.columns]
        for table in TABLES.values()
    }


def unannounced(golden: dict[str, Any], columns: dict[str, Any], version: int, changelog: str) -> list[str]:
    """Return what keeps these columns from being released, given those of all versions so far."""
    faults = []
    if golden.get(str(version)) != columns:
        faults.append(f"the columns are not those recorded for schema version {version}")
    if version != max(map(int, golden)):
        faults.append(f"schema version {version} is not the latest one recorded")
    faults += [
        f"CHANGELOG.md does not mention schema version {number}"
        for number in range(2, version + 1)
        if f"schema version {number}" not in changelog
    ]
    return faults


def test_the_columns_are_those_of_the_announced_version() -> None:
    changelog = ROOT / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8") if changelog.exists() else ""
    assert unannounced(GOLDEN, current_columns(), SCHEMA_VERSION, text) == []


def test_a_changed_column_fails_until_the_changelog_says_so() -> None:
    golden = {"1": {"removed": [["url", "string", False]]}}
    changed = {"removed": [["url", "string", True]]}
    assert unannounced(golden, golden["1"], 1, "") == []
    assert unannounced(golden, changed, 1, "schema version 1")
    assert unannounced(golden, changed, 2, "")
    both = {**golden, "2": changed}
    assert unannounced(both, changed, 2, "") == ["CHANGELOG.md does not mention schema version 2"]
    assert unannounced(both, changed, 2, "schema version 2: url may be null") == []
    assert unannounced(both, golden["1"], 1, "schema version 2") != []


def test_common_crawls_columns_come_first_by_name_and_type() -> None:
    assert TABLES["captures"].columns[:32] == COMMON_CRAWL_COLUMNS
    types = {column.name: column.type for column in COMMON_CRAWL_COLUMNS}
    assert len(types) == 32
    assert {name for name, kind in types.items() if kind != "string"} == {
        *("url_port", "fetch_time", "fetch_status", "warc_record_offset", "warc_record_length")
    }


def test_names_are_unique_and_every_column_is_explained() -> None:
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert set(table.sort_by) <= set(names)
        assert all(column.doc for column in table.columns)
