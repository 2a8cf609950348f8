"""What a crawl holds, without what no two crawls share: times, file names, offsets. For comparing engines."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PUBLIC = ("captures", "pages", "links", "duplicates", "hosts", "removed")
STATE = {"calendar": "frontier", "seen": "seen"}
MEASURED = frozenset(
    {
        "fetch_millis",
        "latency_seconds",
        "warc_record_offset",
        "warc_record_length",
        "original_offset",
        "original_length",
        "original_record_id",
        "original_date",
        "original_url",
    }
)
FILES = frozenset({"warc_filename", "original_filename"})

Rows = Counter[tuple[Any, ...]]


def normalised(crawl: Path) -> dict[str, Rows]:
    """Return each table's rows, counted: all rounds of the public tables and the index, the newest state.

    Of a time, a duration, an offset and a record id only remains whether it is there, of a WARC file its subset. Of
    two equal payloads the first to arrive is stored and the other refers to it: which is which does not remain.
    """
    tables = {table: _rows_of(sorted(crawl.glob(f"tables/{table}/*/*.parquet"))) for table in PUBLIC}
    manifests = [json.loads(path.read_text()) for path in sorted(crawl.glob("rounds/*/manifest.json"))]
    for table, name in STATE.items():
        paths = [crawl / entry["path"] for entry in manifests[-1]["files"] if entry["table"] == table]
        tables[name] = _rows_of(paths)
    tables["index"] = Counter(row for path in sorted(crawl.glob("index/*/*.gz")) for row in _index_rows(path))
    tables["manifest"] = Counter(row for manifest in manifests for row in _counts(manifest))
    return tables


def table_of_equality(crawls: dict[str, dict[str, Rows]]) -> str:
    """Return the number of rows of each table on each engine, and how many differ from the first one's."""
    names = list(crawls)
    width = max(len(name) for name in names) + 2
    lines = ["table".ljust(12) + "".join(name.rjust(width) for name in names) + "  different rows"]
    for table, rows in crawls[names[0]].items():
        counts = "".join(str(crawls[name][table].total()).rjust(width) for name in names)
        different = [sum(different_rows(rows, crawls[name][table]).values()) for name in names[1:]]
        lines.append(f"{table.ljust(12)}{counts}  {different}")
    return "\n".join(lines)


def different_rows(left: Rows, right: Rows) -> Rows:
    """Return the rows that only one of the two has, counted."""
    return (left - right) + (right - left)


def _rows_of(paths: list[Path]) -> Rows:
    rows: Rows = Counter()
    for path in paths:
        table = pq.ParquetFile(path).read()
        part = next((part for part in path.parts if part.startswith("round=")), "")
        names = table.schema.names
        for row in table.to_pylist():
            rows[(part, *(_plain(table.schema.field(name), row[name]) for name in names))] += 1
    return rows


def _plain(column: pa.Field, value: Any) -> Any:
    is_instant = pa.types.is_timestamp(column.type) or column.name.endswith("_at")
    if is_instant or column.name in MEASURED:
        return value is not None
    if column.name in FILES and value is not None:
        return Path(value).parts[2]
    return repr(value)


def _index_rows(path: Path) -> Iterator[tuple[Any, ...]]:
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines():
        key, _, document = line.split(" ", 2)
        members = json.loads(document)
        kept = {k: v for k, v in members.items() if k not in ("offset", "length", "filename", "mime")}
        yield path.parent.name, path.name, key, json.dumps(kept, sort_keys=True)


def _counts(manifest: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for name in ("planned", "outcomes", "left_out", "counters"):
        yield manifest["round"], name, json.dumps(manifest[name], sort_keys=True)
