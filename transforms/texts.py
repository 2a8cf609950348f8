"""DeduplicateTexts: the content gate for texts that no crawl fetched."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import NamedTuple

import apache_beam as beam
from apache_beam import coders as beam_coders
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from connectors import parts
from connectors.rows import rows_to_table, table_to_rows
from crawler.neardup import sketch_of
from crawler.urls import UrlKeys
from schemas.page import DuplicateVerdict, SketchRow
from schemas.round import ParsedRef, VerdictRef
from transforms.dedup import CompareSketches
from transforms.gate.view import GateSpec, GateView, open_gate

TEXTS_A_FILE = 4_096
_KEYS = UrlKeys("texts")


class TextVerdict(NamedTuple):
    """The text ``text_id`` is a copy of ``kept_id``. ``kind`` is exact or near."""

    text_id: str
    kept_id: str
    kind: str
    similarity: float


beam_coders.registry.register_coder(TextVerdict, beam_coders.RowCoder)


class DeduplicateTexts(beam.PTransform):
    """PCollection[tuple[str, str]] (id, text) -> PCollection[TextVerdict]: one for each text that is a copy.

    The rules of the gate in a crawl: the same normalised words, or an estimated Jaccard similarity of word
    5-grams of at least ``near_dup_threshold``, from 50 words on. Of each set of copies the text with the
    least id stays, and has no verdict. Ids must be unique: of two texts with one id, one is ignored. The
    order and the bundles of the input change nothing.

    Sketches pass through files in ``folder`` (local, gs:// or s3://), which every worker must see; what is
    left under ``work/`` there can be deleted when the pipeline has ended.
    """

    def __init__(self, folder: str, near_dup_threshold: float = 0.8) -> None:
        super().__init__()
        self.spec = GateSpec.of_texts(folder, near_dup_threshold)

    def expand(self, texts: beam.PCollection) -> beam.PCollection:
        """Sketch the texts, compare the sketches, read the verdicts."""
        sketched = texts | "SketchTexts" >> beam.ParDo(_SketchTexts(self.spec))
        gate = sketched | "CompareTexts" >> CompareSketches(self.spec)
        return gate.verdicts | "ReadVerdicts" >> beam.ParDo(_ReadVerdicts(self.spec)).with_output_types(
            TextVerdict
        )


def segment_name() -> str:
    """Return a name that no other segment has; its first part spreads the segments over tasks."""
    return f"{secrets.randbelow(10_000):04d}-{secrets.token_hex(4)}"


def file_sketches(view: GateView, segment: str, rows: list[SketchRow], parsed_path: str = "") -> ParsedRef:
    """Write the sketches of a segment that no crawl knows and return where they lie."""
    path = view.work_path(f"sketches-{segment}")
    parts.write_table(view.storage, path, rows_to_table(rows, SketchRow))
    return ParsedRef(segment, "", parsed_path, path, len(rows), "", "")


class _SketchTexts(beam.DoFn):
    def __init__(self, spec: GateSpec) -> None:
        self.spec = spec

    def start_bundle(self) -> None:
        self.rows: list[SketchRow] = []

    def process(self, element: tuple[str, str]) -> Iterator[ParsedRef]:
        self.rows.append(_sketch_row(*element))
        if len(self.rows) >= TEXTS_A_FILE:
            yield self._flushed()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self.rows:
            window = GlobalWindow()
            yield WindowedValue(self._flushed(), window.max_timestamp(), [window])

    def _flushed(self) -> ParsedRef:
        rows, self.rows = self.rows, []
        return file_sketches(open_gate(self.spec), segment_name(), rows)


def _sketch_row(text_id: str, text: str) -> SketchRow:
    sketch = sketch_of(text)
    key = _KEYS.url_key(text_id)
    return SketchRow(
        host_key=key,
        url_key=key,
        url=text_id,
        surt_key=text_id,
        registered_domain=text_id,
        depth=0,
        canonical_url=None,
        text_digest=sketch.text_digest,
        words=sketch.words,
        signature=sketch.signature,
        bands=sketch.bands,
    )


class _ReadVerdicts(beam.DoFn):
    def __init__(self, spec: GateSpec) -> None:
        self.spec = spec

    def process(self, ref: VerdictRef) -> Iterator[TextVerdict]:
        storage = open_gate(self.spec).storage
        for row in table_to_rows(parts.read_whole(storage, ref.path), DuplicateVerdict):
            yield TextVerdict(row.url, row.kept_url, row.kind, row.similarity)
