"""SettleSegments: after the content gate, what each page of a segment became, and which URLs it names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa

from connectors import parts
from connectors.rows import row_schema, rows_to_table, table_to_rows
from crawler.urls import host_of, partition_of, registered_domain, surt_key
from schemas.fetch import OutcomeRow
from schemas.manifest import FileEntry
from schemas.page import CandidateRow, DuplicateVerdict, ParsedRow
from schemas.round import FileRow, ParsedRef, PartitionPart, RoundSpec, Tally, VerdictRef
from schemas.state import HostState, RobotsState
from transforms import coders
from transforms.grouping import GroupKinds, Kinds, Tagged
from transforms.pieces import Piece, has_page, pieces_of
from transforms.records import fetch_millis
from transforms.view import RoundView, open_view

KINDS = Kinds(parsed=ParsedRef, verdicts=VerdictRef)


class Settled(NamedTuple):
    """What settling yields, by kind of element."""

    parts: beam.PCollection
    files: beam.PCollection
    tallies: beam.PCollection


class SettleSegments(beam.PTransform):
    """(PCollection[ParsedRef], PCollection[VerdictRef]) -> Settled.

    Writes the pages, links and duplicates tables of each segment (unique pages only), and hands on, one
    row group a partition, the final outcome rows and the candidate URLs. Links of a duplicate, of a page
    that says nofollow and links that say so themselves are not candidates.
    """

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, inputs: tuple[beam.PCollection, beam.PCollection]) -> Settled:
        """Bring the verdicts to their segment, then settle it."""
        parsed, verdicts = inputs
        keyed = {
            "parsed": parsed
            | "KeyParsed"
            >> beam.Map(lambda ref: (ref.segment, ref)).with_output_types(tuple[str, ParsedRef]),
            "verdicts": verdicts
            | "KeyVerdicts"
            >> beam.Map(lambda ref: (ref.segment, ref)).with_output_types(tuple[str, VerdictRef]),
        }
        settled = (
            keyed
            | "BySegment" >> GroupKinds(KINDS, str)
            | "Settle"
            >> beam.ParDo(_Settle(self.spec))
            .with_output_types(PartitionPart, files=FileRow, tallies=Tally)
            .with_outputs("files", "tallies", main="parts")
        )
        return Settled(settled.parts, settled.files, settled.tallies)


class _Settle(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[str, Iterable[Tagged]]) -> Iterator[object]:
        groups = KINDS.opened(element[1])
        view = open_view(self.spec)
        verdicts = {
            (verdict.host_key, verdict.url_key): verdict
            for ref in groups["verdicts"]
            for verdict in table_to_rows(parts.read_whole(view.storage, ref.path), DuplicateVerdict)
        }
        for parsed in groups["parsed"]:
            for piece in pieces_of(view, parsed):
                settling = SegmentSettling(view, parsed, piece, verdicts)
                yield from settling.write_parts()
                for entry in settling.write_tables():
                    yield beam.pvalue.TaggedOutput("files", coders.file_row(entry))
                for tally in settling.tallies():
                    yield beam.pvalue.TaggedOutput("tallies", tally)


class SegmentSettling:
    """A piece of a segment with its verdicts: decides each row's last outcome and writes what follows from it."""

    def __init__(
        self,
        view: RoundView,
        parsed: ParsedRef,
        piece: Piece,
        verdicts: Mapping[tuple[int, int], DuplicateVerdict],
    ) -> None:
        self.view = view
        self.parsed = parsed
        self.is_first = piece.number == 0
        self.segment = parsed.segment if self.is_first else f"{parsed.segment}-{piece.number}"
        self.pages = {(page.host_key, page.url_key): page for page in piece.pages}
        self.verdicts = verdicts
        self.rows = [self._settled(row) for row in piece.rows]
        self.rejected: Counter[str] = Counter()

    def _settled(self, row: OutcomeRow) -> OutcomeRow:
        key = (row.host_key, row.url_key)
        page = self.pages.get(key) if has_page(row) else None
        if page is None:
            return row
        if page.failure is not None:
            return row._replace(reason=page.failure, detail=page.failure_detail)
        row = row._replace(content_hash=page.content_hash, charset=page.charset, language=page.language)
        row = row._replace(changed=row.visits > 0 and row.previous_content_hash != page.content_hash)
        if page.noindex:
            return row._replace(outcome="excluded", reason="noindex")
        verdict = self.verdicts.get(key)
        if verdict is None:
            return row._replace(in_pages=True, detail=page.empty_reason)
        if verdict.kind == "same":
            return row._replace(outcome="not_modified", reason="same_text", changed=False)
        return row._replace(
            outcome="duplicate",
            reason=f"{verdict.kind}_duplicate",
            duplicate_of=verdict.kept_url,
            duplicate_kind=verdict.kind,
            similarity=verdict.similarity,
        )

    def write_parts(self) -> Iterator[PartitionPart]:
        """Write outcomes and candidates, and once a segment host clocks and robots.txt, by partition."""
        outcomes = ((row.host_key, row) for row in self.rows)
        yield from self._write_kind("outcomes", outcomes, OutcomeRow)
        candidates = ((row.host_key, row) for row in self._candidates())
        yield from self._write_kind("candidates", candidates, CandidateRow)
        clocks = (
            ("hosts", self.parsed.hosts_path, HostState),
            ("robots", self.parsed.robots_path, RobotsState),
        )
        for kind, path, row_type in clocks if self.is_first else ():
            rows = table_to_rows(parts.read_whole(self.view.storage, path), row_type)
            yield from self._write_kind(kind, ((row.host_key, row) for row in rows), row_type)

    def _write_kind(
        self, kind: str, keyed: Iterable[tuple[int, tuple]], row_type: type
    ) -> Iterator[PartitionPart]:
        by_partition: dict[int, list[tuple]] = {}
        for host_key, row in keyed:
            by_partition.setdefault(partition_of(host_key, self.view.spec.partitions), []).append(row)
        if not by_partition:
            return
        order = sorted(by_partition)
        path = self.view.work_path(f"{kind}-by-partition-{self.segment}")
        tables: Iterator[pa.Table] = (rows_to_table(by_partition[p], row_type) for p in order)
        counts = parts.write_parts(self.view.storage, path, tables, row_schema(row_type))
        for number, (partition, rows) in enumerate(zip(order, counts, strict=True)):
            yield PartitionPart(partition, kind, path, number, rows)

    def _candidates(self) -> Iterator[CandidateRow]:
        for row in self.rows:
            if row.kind == "robots":
                continue
            domain = registered_domain(host_of(row.url))
            if row.kind == "hop":
                yield self._candidate(row.url, "hop", row.depth, row, row.planned_url, domain)
            if row.redirect_url and row.reason == "redirect_queued":
                # A step like any other: a chain that led on for ever would else never come to the deepest.
                yield self._candidate(row.redirect_url, "redirect", row.depth + 1, row, row.url, domain)
            page = self.pages.get((row.host_key, row.url_key))
            if page is not None and self._expands(row, page):
                yield from self._page_candidates(row, page, domain)

    @staticmethod
    def _expands(row: OutcomeRow, page: ParsedRow) -> bool:
        indexed = row.outcome == "fetched" or (row.outcome, row.reason) == ("not_modified", "same_text")
        return (indexed or row.reason == "noindex") and not page.nofollow

    def _page_candidates(self, row: OutcomeRow, page: ParsedRow, domain: str) -> Iterator[CandidateRow]:
        for target, rel in zip(page.link_targets, page.link_rels, strict=True):
            if "nofollow" in rel.split():
                self.rejected["nofollow"] += 1
            else:
                yield self._candidate(target, "link", row.depth + 1, row, row.url, domain)
        if page.refresh_url:
            yield self._candidate(page.refresh_url, "refresh", row.depth + 1, row, row.url, domain)

    def _candidate(
        self, url: str, kind: str, depth: int, row: OutcomeRow, source: str, domain: str
    ) -> CandidateRow:
        keys = self.view.keys
        host_key = keys.host_key(host_of(url))
        return CandidateRow(host_key, keys.url_key(url), url, kind, depth, row.priority, source, domain)

    def write_tables(self) -> Iterator[FileEntry]:
        """Write the pages, links and duplicates (staged) and yield their file entries."""
        tables = {
            "pages": self._page_rows(),
            "links": self._link_rows(),
            "duplicates": self._duplicate_rows(),
        }
        for table, rows in tables.items():
            entry = self.view.stage_table(table, f"part-{self.segment}", rows)
            if entry is not None:
                yield entry

    def _page_rows(self) -> list[dict[str, object]]:
        return [
            page_record(row, self.pages[(row.host_key, row.url_key)]) for row in self.rows if row.in_pages
        ]

    def _link_rows(self) -> list[dict[str, object]]:
        return [
            {"source_url": row.url, "target_url": target, "anchor": anchor, "rel": rel}
            for row in self.rows
            if row.in_pages
            for page in [self.pages[(row.host_key, row.url_key)]]
            for target, anchor, rel in zip(page.link_targets, page.link_anchors, page.link_rels, strict=True)
        ]

    def _duplicate_rows(self) -> list[dict[str, object]]:
        return [
            {
                "url": row.url,
                "kept_url": row.duplicate_of,
                "kind": row.duplicate_kind,
                "similarity": row.similarity,
            }
            for row in self.rows
            if row.outcome == "duplicate"
        ]

    def tallies(self) -> Iterator[Tally]:
        """Yield the counters: pages, links, rejected links by reason."""
        counts: Counter[str] = Counter()
        counts.update({f"links_rejected/{reason}": count for reason, count in self.rejected.items()})
        for page in self.pages.values():
            counts["links_found"] += len(page.link_targets)
            for reason, count in zip(page.rejected_reasons, page.rejected_counts, strict=True):
                counts[f"links_rejected/{reason}"] += count
        counts["bytes_fetched"] += sum(row.body_bytes for row in self.rows)
        for name, count in sorted(counts.items()):
            yield Tally("counter", name, count)


def page_record(row: OutcomeRow, page: ParsedRow) -> dict[str, object]:
    """Return one row of the pages table: the record agreed with an indexer."""
    return {
        "url": row.url,
        "final_url": row.url,
        "url_surtkey": surt_key(row.url),
        "host": host_of(row.url),
        "fetched_at": row.started_at,
        "status": row.status,
        "content_hash": page.content_hash,
        "content_type": row.content_type,
        "charset": page.charset,
        "title": page.title,
        "text": page.text,
        "language": page.language,
        "links": list(page.link_targets),
        "depth": row.depth,
        "priority": row.priority,
        "discovered_from": row.discovered_from,
        "redirected_from": row.planned_url if row.kind == "hop" else None,
        "etag": row.etag,
        "last_modified": row.last_modified,
        "fetch_millis": fetch_millis(row),
        "changed": row.changed,
        "warc_filename": row.warc_filename,
        "warc_record_offset": row.warc_record_offset,
        "warc_record_length": row.warc_record_length,
    }
