"""ParseWarcs: pages out of WARC files that any crawler wrote, as the pages table has them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam import coders as beam_coders

from connectors import parts, tables
from connectors.body import Framing, read_body
from connectors.encoding import decode_body
from connectors.fetchfault import FetchFault
from connectors.files import open_storage
from connectors.warc_read import DamagedWarc, Payload, WarcRecord, http_payload, iter_records
from crawler.parse import is_page_type
from crawler.sniff import SNIFF_BYTES, sniff
from crawler.urls import NormalUrl, UrlKeys, host_of, normalise, registered_domain, surt_key
from schemas.flags import CrawlFlags
from schemas.page import ParseFailure, SketchRow
from schemas.round import ParsedRef, Tally
from transforms.gate.view import GateSpec, GateView, open_gate
from transforms.pages import PageResult, PageTask, agent_token, page_pool
from transforms.texts import file_sketches

ROWS_A_GROUP = 256
PAGE_SCHEMA = pa.schema(
    [
        pa.field("host_key", pa.uint64(), nullable=False),
        pa.field("url_key", pa.uint64(), nullable=False),
        *tables.arrow_schema("pages"),
    ]
)
_KEYS = UrlKeys("texts")


class WarcRef(NamedTuple):
    """The ``number``-th WARC file: its name ``path`` inside the storage ``root``."""

    number: int
    root: str
    path: str


beam_coders.registry.register_coder(WarcRef, beam_coders.RowCoder)


class ParsedWarcs(NamedTuple):
    """Parsed files, and counts of what was read and left out."""

    parsed: beam.PCollection
    tallies: beam.PCollection


class ParseWarcs(beam.PTransform):
    """PCollection[WarcRef] -> ParsedWarcs: one parsed reference a file.

    Takes the responses with status 200 that hold HTML or plain text, under http or https URLs, without
    noindex; other captures are counted by reason. Each capture is a page of its own, also when its URL occurs
    twice. A file that is damaged yields what comes before the damage, and a count ``damaged/NAME``.
    """

    def __init__(self, spec: GateSpec, flags: CrawlFlags) -> None:
        super().__init__()
        self.spec, self.flags = spec, flags

    def expand(self, files: beam.PCollection) -> ParsedWarcs:
        """Spread the files over the workers, then parse each."""
        parsed = (
            files
            | "SpreadFiles" >> beam.Reshuffle()
            | "ParseFile"
            >> beam.ParDo(_ParseFile(self.spec, self.flags)).with_outputs("tallies", main="parsed")
        )
        return ParsedWarcs(parsed.parsed, parsed.tallies)


class _ParseFile(beam.DoFn):
    def __init__(self, spec: GateSpec, flags: CrawlFlags) -> None:
        self.spec, self.flags = spec, flags

    def process(self, ref: WarcRef) -> Iterator[object]:
        parsing = WarcParsing(open_gate(self.spec), self.flags, ref)
        yield parsing.write()
        for name, count in sorted(parsing.counts.items()):
            yield beam.pvalue.TaggedOutput("tallies", Tally("counter", name, count))


class _Capture(NamedTuple):
    """One response that may hold a page."""

    url: str
    record: WarcRecord
    payload: Payload
    task: PageTask


class WarcParsing:
    """Reads one WARC file, parses its pages and files them with their sketches."""

    def __init__(self, view: GateView, flags: CrawlFlags, ref: WarcRef) -> None:
        self.view, self.flags, self.ref = view, flags, ref
        self.counts: Counter[str] = Counter({"files": 1})
        self.sketches: list[SketchRow] = []

    def write(self) -> ParsedRef:
        """Write the pages of the file and return where they lie."""
        segment = f"{self.ref.number:04d}-000001"
        path = self.view.work_path(f"pages-{segment}")
        parts.write_parts(self.view.storage, path, self._tables(), PAGE_SCHEMA)
        return file_sketches(self.view, segment, self.sketches, path)

    def _tables(self) -> Iterator[pa.Table]:
        captures = self._captures()
        while batch := list(islice(captures, ROWS_A_GROUP)):
            results = page_pool(self.flags).map([capture.task for capture in batch])
            yield self._table(zip(batch, results, strict=True))

    def _captures(self) -> Iterator[_Capture]:
        with open_storage(self.ref.root).open_read(self.ref.path) as file:
            try:
                for record in iter_records(file):
                    capture = self._capture(record)
                    if isinstance(capture, str):
                        self.counts[f"left_out/{capture}"] += 1
                    elif capture is not None:
                        yield capture
            except DamagedWarc as error:
                self.counts[f"damaged/{self.ref.path}: {error}"] += 1

    def _capture(self, record: WarcRecord) -> _Capture | str | None:
        """Return the capture in a record, why it holds no page, or None for a record of another kind."""
        self.counts["records"] += 1
        if record.kind == "revisit":
            return "revisit"
        if record.kind != "response" or not (record.get("Content-Type") or "").startswith("application/http"):
            return None
        url = normalise((record.get("WARC-Target-URI") or "").strip("<>"))
        if not isinstance(url, NormalUrl):
            return url.reason
        payload = http_payload(record)
        if payload.status != 200:
            return f"status_{payload.status or 'unknown'}"
        body = _entity(payload, self.flags.max_body_bytes)
        content_type, coding = header(payload, "content-type"), header(payload, "content-encoding")
        if not is_page_type(content_type, sniff(decode_body(body, coding, SNIFF_BYTES).data)):
            return "unsupported_type"
        task = PageTask(
            url=url.url,
            body=body,
            content_encoding=coding,
            content_type=content_type,
            robots_tag="\n".join(value for name, value in payload.headers if name.lower() == "x-robots-tag"),
            agent_token=agent_token(self.flags.user_agent),
            max_body_bytes=self.flags.max_body_bytes,
        )
        return _Capture(url.url, record, payload, task)

    def _table(self, pages: Iterable[tuple[_Capture, PageResult | ParseFailure]]) -> pa.Table:
        rows: list[dict[str, object]] = []
        for capture, result in pages:
            if isinstance(result, ParseFailure):
                self.counts[f"left_out/{result.reason}"] += 1
            elif result.page.noindex:
                self.counts["left_out/noindex"] += 1
            else:
                self.counts["pages"] += 1
                sketch = _sketch_row(capture, self.ref, result)
                self.sketches.append(sketch)
                rows.append(_page_row(capture, self.ref, result))
        own = self.sketches[len(self.sketches) - len(rows) :]
        table = tables.table_from_rows("pages", rows)
        table = table.add_column(
            0, PAGE_SCHEMA.field("url_key"), pa.array([s.url_key for s in own], pa.uint64())
        )
        table = table.add_column(
            0, PAGE_SCHEMA.field("host_key"), pa.array([s.host_key for s in own], pa.uint64())
        )
        return table.replace_schema_metadata(PAGE_SCHEMA.metadata)


def header(payload: Payload, name: str) -> str | None:
    """Return the first value of an HTTP field, by its lower-case name."""
    return next((value for field, value in payload.headers if field.lower() == name), None)


def _entity(payload: Payload, max_bytes: int) -> bytes:
    """Return the body without transfer coding: some crawlers store the chunks as sent."""
    if "chunked" not in (header(payload, "transfer-encoding") or "").lower():
        return payload.body
    try:
        body = read_body(io.BufferedReader(io.BytesIO(payload.body)), Framing(None, True, False), max_bytes)
    except FetchFault:
        return payload.body
    return body.data or payload.body


def _sketch_row(capture: _Capture, ref: WarcRef, result: PageResult) -> SketchRow:
    date = capture.record.get("WARC-Date") or ""
    host = host_of(capture.url)
    return SketchRow(
        host_key=_KEYS.host_key(host),
        url_key=_KEYS.url_key(f"{capture.url} {date} {ref.path} {capture.record.offset}"),
        url=capture.url,
        surt_key=f"{surt_key(capture.url)} {date}",
        registered_domain=registered_domain(host),
        depth=0,
        canonical_url=result.page.canonical_url,
        text_digest=result.sketch.text_digest,
        words=result.sketch.words,
        signature=result.sketch.signature,
        bands=result.sketch.bands,
    )


def _page_row(capture: _Capture, ref: WarcRef, result: PageResult) -> dict[str, object]:
    page, payload = result.page, capture.payload
    return {
        "url": capture.url,
        "final_url": capture.url,
        "url_surtkey": surt_key(capture.url),
        "host": host_of(capture.url),
        "fetched_at": _instant(capture.record.get("WARC-Date")),
        "status": payload.status,
        "content_hash": page.content_hash,
        "content_type": header(payload, "content-type"),
        "charset": page.charset,
        "title": page.title,
        "text": page.text,
        "language": page.language,
        "links": [link.target_url for link in page.links],
        "depth": 0,
        "priority": 0.0,
        "etag": header(payload, "etag"),
        "last_modified": header(payload, "last-modified"),
        "fetch_millis": 0,
        "changed": False,
        "warc_filename": ref.path,
        "warc_record_offset": capture.record.offset,
        "warc_record_length": capture.record.length,
    }


def _instant(date: str | None) -> float:
    """Return a WARC-Date as UTC epoch seconds; the epoch for one that is missing or no date."""
    try:
        instant = datetime.fromisoformat(date or "")
    except ValueError:
        return 0.0
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
