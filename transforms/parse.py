"""ParseSegments: committed WARC segments to pages, links and sketches. Reads files, never the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam
import pyarrow as pa

from connectors import parts
from connectors.rows import row_schema, rows_to_table, table_to_rows
from crawler.parse import is_page_type
from crawler.urls import host_of, registered_domain, surt_key
from schemas.fetch import OutcomeRow
from schemas.page import ParsedRow, ParseFailure, SketchRow
from schemas.round import ParsedRef, RoundSpec, SegmentRef
from transforms import coders  # noqa: F401  (registers the row coders)
from transforms.pages import PageResult, PageTask, agent_token, page_pool
from transforms.stored import StoredBodies
from transforms.view import RoundView, open_view

ROWS_A_GROUP = 256
BYTES_A_GROUP = 16_000_000


class ParseSegments(beam.PTransform):
    """PCollection[SegmentRef] -> PCollection[ParsedRef].

    Re-reads each segment's captures from their WARC files and parses the pages among them in killable
    page processes. What comes out is a pure function of the segment: a retry writes the same rows under
    another name. A page that cannot be parsed costs its own row only (``ParsedRow.failure``).
    """

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, segments: beam.PCollection) -> beam.PCollection:
        """Spread the segments over the workers, then parse each."""
        return (
            segments
            | "SpreadSegments" >> beam.Reshuffle()
            | "Parse" >> beam.ParDo(_Parse(self.spec)).with_output_types(ParsedRef)
        )


class _Parse(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, segment: SegmentRef) -> Iterator[ParsedRef]:
        yield parse_segment(open_view(self.spec), segment)


def parse_segment(view: RoundView, segment: SegmentRef) -> ParsedRef:
    """Parse one segment's pages; file outcome rows, pages and sketches; return where they lie."""
    entry = view.journal(segment.shard).read(segment.segment)
    name = f"{segment.shard:04d}-{segment.segment:06d}"
    fetched = table_to_rows(parts.read_whole(view.storage, entry.outcomes_path), OutcomeRow)
    outcomes = [_with_type_checked(row) for row in fetched]
    pages = [row for row in outcomes if row.outcome == "fetched" and row.kind != "robots"]
    sketches: list[SketchRow] = []
    parsed_path = view.work_path(f"parsed-{name}")
    parts.write_parts(view.storage, parsed_path, _parsed_tables(view, pages, sketches), row_schema(ParsedRow))
    sketches_path = view.work_path(f"sketches-{name}")
    parts.write_table(view.storage, sketches_path, rows_to_table(sketches, SketchRow))
    outcomes_path = view.work_path(f"outcomes-{name}")
    parts.write_table(view.storage, outcomes_path, rows_to_table(outcomes, OutcomeRow))
    return ParsedRef(
        segment=name,
        outcomes_path=outcomes_path,
        parsed_path=parsed_path,
        sketches_path=sketches_path,
        sketches=len(sketches),
        hosts_path=entry.hosts_path,
        robots_path=entry.robots_path,
    )


def _with_type_checked(row: OutcomeRow) -> OutcomeRow:
    """Return the row, excluded with its reason when its body is no page."""
    if row.outcome != "fetched" or row.kind == "robots" or not row.body_bytes:
        return row
    if is_page_type(row.content_type, row.mime_detected):
        return row
    return row._replace(outcome="excluded", reason="unsupported_type", detail=row.content_type)


def _parsed_tables(
    view: RoundView, rows: Sequence[OutcomeRow], sketches: list[SketchRow]
) -> Iterator[pa.Table]:
    """Yield the parsed pages in batches of bounded size, in the order of the rows; collect their sketches."""
    batch: list[ParsedRow] = []
    size = 0
    for parsed in _parsed_rows(view, rows, sketches):
        batch.append(parsed)
        size += len(parsed.text) + sum(map(len, parsed.link_targets)) + sum(map(len, parsed.link_anchors))
        if len(batch) == ROWS_A_GROUP or size >= BYTES_A_GROUP:
            yield rows_to_table(batch, ParsedRow)
            batch, size = [], 0
    if batch:
        yield rows_to_table(batch, ParsedRow)


def _parsed_rows(
    view: RoundView, rows: Sequence[OutcomeRow], sketches: list[SketchRow]
) -> Iterator[ParsedRow]:
    results = page_pool(view.spec.flags).map(_tasks(view, rows), lambda task: len(task.body))
    for row, result in zip(rows, results, strict=True):
        if isinstance(result, ParseFailure):
            yield _failed_row(row, result)
        else:
            if not result.page.noindex:
                sketches.append(_sketch_row(row, result))
            yield _parsed_row(row, result)


def _tasks(view: RoundView, rows: Sequence[OutcomeRow]) -> Iterator[PageTask]:
    """Yield one task a row, its body read from the WARC file (a revisit's from its original's)."""
    token = agent_token(view.spec.flags.user_agent)
    with StoredBodies(view.storage) as stored:
        for number, row in enumerate(rows):
            if number % ROWS_A_GROUP == 0:
                view.raise_if_stopped()
            yield PageTask(
                url=row.url,
                body=stored.body(row),
                content_encoding=row.content_encoding,
                content_type=row.content_type,
                robots_tag=row.robots_tag,
                agent_token=token,
                max_body_bytes=view.spec.flags.max_body_bytes,
            )


def _parsed_row(row: OutcomeRow, result: PageResult) -> ParsedRow:
    page = result.page
    return ParsedRow(
        host_key=row.host_key,
        url_key=row.url_key,
        url=row.url,
        title=page.title,
        language=page.language,
        charset=page.charset,
        charset_source=page.charset_source,
        canonical_url=page.canonical_url,
        noindex=page.noindex,
        nofollow=page.nofollow,
        text=page.text,
        empty_reason=page.empty_reason,
        content_hash=page.content_hash,
        link_targets=tuple(link.target_url for link in page.links),
        link_anchors=tuple(link.anchor for link in page.links),
        link_rels=tuple(link.rel for link in page.links),
        rejected_reasons=tuple(reason for reason, _ in page.rejected_links),
        rejected_counts=tuple(count for _, count in page.rejected_links),
        refresh_url=page.refresh_url,
        failure=None,
        failure_detail=None,
    )


def _failed_row(row: OutcomeRow, failure: ParseFailure) -> ParsedRow:
    return ParsedRow(
        host_key=row.host_key,
        url_key=row.url_key,
        url=row.url,
        title=None,
        language=None,
        charset="",
        charset_source="",
        canonical_url=None,
        noindex=False,
        nofollow=False,
        text="",
        empty_reason=failure.reason,
        content_hash="",
        link_targets=(),
        link_anchors=(),
        link_rels=(),
        rejected_reasons=(),
        rejected_counts=(),
        refresh_url=None,
        failure=failure.reason,
        failure_detail=failure.detail,
    )


def _sketch_row(row: OutcomeRow, result: PageResult) -> SketchRow:
    sketch = result.sketch
    return SketchRow(
        host_key=row.host_key,
        url_key=row.url_key,
        url=row.url,
        surt_key=surt_key(row.url),
        registered_domain=registered_domain(host_of(row.url)),
        depth=row.depth,
        canonical_url=result.page.canonical_url,
        text_digest=sketch.text_digest,
        words=sketch.words,
        signature=sketch.signature,
        bands=sketch.bands,
    )
