"""WriteUnique: the tables of pages that stay and of copies, for pages that no crawl fetched."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import apache_beam as beam
import pyarrow as pa

from connectors import layout, parts, tables
from connectors.rows import table_to_rows
from schemas.page import DuplicateVerdict
from schemas.round import ParsedRef, Tally, VerdictRef
from transforms.gate.parts import numbers
from transforms.gate.view import GateSpec, GateView, open_gate

SUMMARY = "dedup.json"


class WriteUnique(beam.PTransform):
    """(PCollection[ParsedRef], PCollection[VerdictRef], PCollection[Tally]) -> PCollection[str].

    Writes ``tables/pages/round=000001`` and ``tables/duplicates/round=000001``, and last, create-only, the
    counts as ``dedup.json``, whose name it yields: a folder with that file is complete.
    """

    def __init__(self, spec: GateSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, inputs: tuple[beam.PCollection, beam.PCollection, beam.PCollection]) -> beam.PCollection:
        """Bring the verdicts to their pages, write the tables, then the counts."""
        parsed, verdicts, tallies = inputs
        keyed = {
            "parsed": parsed | "KeyParsed" >> beam.Map(lambda ref: (ref.segment, ref)),
            "verdicts": verdicts | "KeyVerdicts" >> beam.Map(lambda ref: (ref.segment, ref)),
        }
        written = keyed | "BySegment" >> beam.CoGroupByKey() | "Write" >> beam.ParDo(_Write(self.spec))
        return (
            (written, tallies)
            | "AllTallies" >> beam.Flatten()
            | "KeyTallies" >> beam.Map(lambda tally: (tally.name, tally.value))
            | "SumTallies" >> beam.CombinePerKey(sum)
            | "ToOnePlace" >> beam.Map(lambda count: (0, count))
            | "Gather" >> beam.GroupByKey()
            | "WriteSummary" >> beam.ParDo(_WriteSummary(self.spec))
        )


class _Write(beam.DoFn):
    def __init__(self, spec: GateSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[str, dict[str, Iterable]]) -> Iterator[Tally]:
        segment, groups = element
        for parsed in groups["parsed"]:
            yield from write_segment(open_gate(self.spec), segment, parsed, groups["verdicts"])


def write_segment(
    view: GateView, segment: str, parsed: ParsedRef, verdicts: Iterable[VerdictRef]
) -> Iterator[Tally]:
    """Write one segment's pages that stay and its copies, and yield how many of each."""
    pages = parts.read_whole(view.storage, parsed.parsed_path)
    lost = [
        row
        for ref in verdicts
        for row in table_to_rows(parts.read_whole(view.storage, ref.path), DuplicateVerdict)
    ]
    keys = {(row.host_key, row.url_key) for row in lost}
    pairs = zip(numbers(pages, "host_key").tolist(), numbers(pages, "url_key").tolist(), strict=True)
    unique = pages.filter(pa.array([pair not in keys for pair in pairs], pa.bool_()))
    copies = tables.table_from_rows("duplicates", [_duplicate(row) for row in lost])
    unique = unique.select(tables.arrow_schema("pages").names)
    for table, rows in (("pages", unique), ("duplicates", copies)):
        if rows.num_rows:
            with view.storage.creating(layout.table_path(table, 1, f"part-{segment}.parquet")) as local:
                tables.write_table(Path(local), table, rows)
        yield Tally("counter", f"rows/{table}", rows.num_rows)


def _duplicate(row: DuplicateVerdict) -> dict[str, object]:
    return {"url": row.url, "kept_url": row.kept_url, "kind": row.kind, "similarity": row.similarity}


class _WriteSummary(beam.DoFn):
    def __init__(self, spec: GateSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[int, Iterable[tuple[str, int]]]) -> Iterator[str]:
        document = json.dumps(dict(sorted(element[1])), indent=1, ensure_ascii=False)
        open_gate(self.spec).storage.write_new(SUMMARY, f"{document}\n".encode())
        yield SUMMARY
