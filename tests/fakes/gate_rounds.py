"""Rounds of a crawl that only meet the content gate: pages in, verdicts out, the index kept in between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from connectors import parts
from connectors.rounds import CrawlFolder
from connectors.rows import rows_to_table, table_to_rows
from crawler.neardup import sketch_of
from crawler.resolve import AlikePolicy, Member, Order, Page, canonical_place
from crawler.urls import UrlKeys, host_of, partition_of, registered_domain, surt_key
from schemas.fetch import OutcomeRow
from schemas.flags import CrawlFlags
from schemas.manifest import FORMAT_VERSION, FileEntry, Manifest
from schemas.page import DuplicateVerdict, Sketch, SketchRow
from schemas.round import ParsedRef, PartitionPart, RoundSpec, VerdictRef
from transforms.compaction import add_run
from transforms.dedup import STAGES
from transforms.gate.index import SKETCHES, index_update
from transforms.gate.pages import deal_docs
from transforms.gate.parts import GatePart, Given, Task
from transforms.gate.view import GateSpec, GateView, open_gate

KEYS = UrlKeys("gate")


class Doc(NamedTuple):
    """A fetched page. ``text`` None: it is gone."""

    url: str
    text: str | None
    depth: int = 0
    canonical_url: str | None = None
    sketch: Sketch | None = None


class Verdict(NamedTuple):
    """A page that is no new content."""

    url: str
    kept_url: str
    kind: str
    similarity: float


def sketch_row(doc: Doc) -> SketchRow:
    """Return the row that parsing makes of a page with text."""
    sketch = doc.sketch or sketch_of(doc.text or "")
    host = host_of(doc.url)
    return SketchRow(
        host_key=KEYS.host_key(host),
        url_key=KEYS.url_key(doc.url),
        url=doc.url,
        surt_key=surt_key(doc.url),
        registered_domain=registered_domain(host),
        depth=doc.depth,
        canonical_url=doc.canonical_url,
        text_digest=sketch.text_digest,
        words=sketch.words,
        signature=sketch.signature,
        bands=sketch.bands,
    )


def members_of(docs: Sequence[Doc], round_number: int) -> list[Member]:
    """Return the pages as `crawler.resolve` takes them."""
    rows = [sketch_row(doc) for doc in docs]
    named = {
        (row.registered_domain, row.canonical_url)
        for row in rows
        if row.canonical_url and row.canonical_url != row.url
    }
    return [
        Member(
            Page(
                Order(
                    round_number,
                    canonical_place(row.url, row.canonical_url, (row.registered_domain, row.url) in named),
                    row.depth,
                    row.surt_key,
                    row.host_key,
                    row.url_key,
                ),
                row.url,
                row.registered_domain,
            ),
            row.text_digest,
            row.signature,
            row.bands,
        )
        for row in rows
    ]


def outcome_row(doc: Doc) -> OutcomeRow:
    """Return the row of a page that was fetched, or is gone."""
    return OutcomeRow(
        url=doc.url,
        host_key=KEYS.host_key(host_of(doc.url)),
        url_key=KEYS.url_key(doc.url),
        kind="planned",
        outcome="gone" if doc.text is None else "fetched",
        reason="http_404" if doc.text is None else None,
        detail=None,
        planned_url=doc.url,
        depth=doc.depth,
        priority=0.5,
        discovered_from=None,
        retries=0,
    )


def run_stages(view: GateView, tasks: int, refs: Iterable[ParsedRef]) -> list[object]:
    """Run the gate in this process, task by task, as the Beam job wires it; return what leaves it."""
    waiting: dict[str, list[GatePart]] = defaultdict(list)
    shards: dict[str, list[ParsedRef]] = defaultdict(list)
    for ref in refs:
        shards[ref.segment.rpartition("-")[0]].append(ref)
    for given in shards.values():
        waiting["docs"] += deal_docs(view, tasks, given)
    left: list[object] = []
    for stage in STAGES:
        grouped: dict[Task, list[GatePart]] = defaultdict(list)
        for kind in stage.takes:
            for part in waiting[kind]:
                grouped[Task(part.tasks, part.task)].append(part)
        for task, given_parts in grouped.items():
            for item in stage.run(view, task, Given(view, given_parts)):
                if isinstance(item, GatePart):
                    assert item.kind in stage.makes
                    waiting[item.kind].append(item)
                else:
                    left.append(item)
    return left


class GateCrawl:
    """A crawl folder whose rounds are given as pages. ``kept`` holds the text of each page that stays."""

    def __init__(self, folder: Path | str, partitions: int = 4, near_dup_threshold: float = 0.8) -> None:
        self.folder = CrawlFolder.at(str(folder))
        self.partitions = partitions
        self.policy = AlikePolicy(near_dup_threshold)
        self.flags = CrawlFlags(near_dup_threshold=near_dup_threshold)
        self.round = 0
        self.files: list[FileEntry] = []
        self.kept: dict[str, Doc] = {}

    def next_spec(self) -> RoundSpec:
        """Return the spec of the next round."""
        number = self.round + 1
        return RoundSpec(
            crawl=self.folder.root,
            name="gate",
            salt="gate",
            partitions=self.partitions,
            scope="any",
            round=number,
            parent=self.round or None,
            run_id=f"run-{number}",
            as_of=float(number),
            started_at=float(number),
            deadline_at=float(number),
            flags=self.flags,
            attempt=f"{number:08d}",
        )

    def parsed_refs(
        self, view: GateView, docs: Sequence[Doc], segment_of: Callable[[int], str] = lambda _: "0000-000001"
    ) -> list[ParsedRef]:
        """Write the pages as parsed segments. ``segment_of`` names the segment of the n-th page."""
        segments: dict[str, list[Doc]] = defaultdict(list)
        for number, doc in enumerate(docs):
            segments[segment_of(number)].append(doc)
        refs = []
        for segment, members in segments.items():
            rows = [sketch_row(doc) for doc in members if doc.text is not None]
            sketches, outcomes = view.work_path("sketches"), view.work_path("outcomes")
            parts.write_table(view.storage, sketches, rows_to_table(rows, SketchRow))
            outcome_rows = [outcome_row(doc) for doc in members]
            parts.write_table(view.storage, outcomes, rows_to_table(outcome_rows, OutcomeRow))
            refs.append(ParsedRef(segment, outcomes, "", sketches, len(rows), "", ""))
        return refs

    def run_round(
        self, docs: Sequence[Doc], tasks: int = 1, segment_of: Callable[[int], str] = lambda _: "0000-000001"
    ) -> list[Verdict]:
        """Run the gate on a round's pages, commit the index, and return the verdicts sorted."""
        view = open_gate(GateSpec.of_round(self.next_spec()))
        items = run_stages(view, tasks, self.parsed_refs(view, docs, segment_of))
        return self.commit(view, docs, items)

    def commit(self, view: GateView, docs: Sequence[Doc], items: Sequence[object]) -> list[Verdict]:
        """Do what the steps after the gate do with its output, and commit the round."""
        rows = [
            row
            for ref in items
            if isinstance(ref, VerdictRef)
            for row in table_to_rows(parts.read_whole(view.storage, ref.path), DuplicateVerdict)
        ]
        verdicts = {row.url: Verdict(row.url, row.kept_url, row.kind, row.similarity) for row in rows}
        assert len(verdicts) == len(rows)
        left = self._settle(docs, verdicts)
        files = [item for item in items if isinstance(item, FileEntry)]
        replaced = {item for item in items if isinstance(item, str)}
        sketches = [item for item in items if isinstance(item, PartitionPart)]
        for partition in range(self.partitions):
            own = [key for key in left if partition_of(key[0], self.partitions) == partition]
            kept = [
                parts.read_part(view.storage, part.path, part.row_group)
                for part in sketches
                if part.partition == partition
            ]
            written = add_run(view.in_round(), SKETCHES, partition, index_update(kept, own, self.partitions))
            files += written.files
            replaced |= set(written.replaced)
        self.files = [entry for entry in self.files if entry.path not in replaced] + files
        self.round += 1
        self.folder.commit_manifest(self._manifest())
        return sorted(verdicts.values())

    def _settle(self, docs: Sequence[Doc], verdicts: dict[str, Verdict]) -> list[tuple[int, int]]:
        left = []
        for doc in docs:
            verdict = verdicts.get(doc.url)
            if doc.text is not None and verdict is None:
                self.kept[doc.url] = doc
            elif (verdict is None or verdict.kind != "same") and self.kept.pop(doc.url, None) is not None:
                left.append((KEYS.host_key(host_of(doc.url)), KEYS.url_key(doc.url)))
        return left

    def _manifest(self) -> Manifest:
        return Manifest(
            format_version=FORMAT_VERSION,
            round=self.round,
            run_id=f"run-{self.round}",
            parent=self.round - 1 or None,
            as_of="2026-01-01T00:00:00Z",
            started_at="2026-01-01T00:00:00Z",
            committed_at="2026-01-01T00:00:00Z",
            flags=self.flags.to_json(),
            planned=0,
            outcomes={},
            left_out={},
            counters={},
            injected=[],
            files=self.files,
        )
