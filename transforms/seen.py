"""SeenUrls: gate 1. Which URLs that this round found are new to the crawl, and admitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import parts, runs
from connectors.rows import row_schema, rows_to_table, table_to_rows
from schemas.page import CandidateRow
from schemas.round import DueRef, FileRow, PartitionPart, RoundSpec, Tally
from schemas.state import UrlState, UrlStatus
from transforms import coders
from transforms.admission import Admission
from transforms.compaction import Written, add_run
from transforms.grouping import GroupKinds, Kinds, Tagged
from transforms.state_tables import SEEN
from transforms.view import RoundView, open_view

KINDS = Kinds(due=DueRef, parts=PartitionPart)


class Seen(NamedTuple):
    """What URL-seen yields: new URLs by partition, files written, paths replaced, counts."""

    parts: beam.PCollection
    files: beam.PCollection
    replaced: beam.PCollection
    tallies: beam.PCollection


class SeenUrls(beam.PTransform):
    """(PCollection[DueRef], PCollection[PartitionPart]) -> Seen.

    Each partition's candidates are compared with its sorted runs of known keys, exactly: no new URL is lost,
    no known URL is shuffled or rewritten. New URLs that the crawl's rules reject are counted by reason
    and not remembered, so that later rules may admit them. Order-free; depends on files only.
    """

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, inputs: tuple[beam.PCollection, beam.PCollection]) -> Seen:
        """Bring a partition's candidates together, then probe."""
        dues, settled = inputs
        keyed = {
            "due": dues
            | "KeyDue" >> beam.Map(lambda due: (due.partition, due)).with_output_types(tuple[int, DueRef]),
            "parts": settled
            | "Candidates" >> beam.Filter(lambda part: part.kind == "candidates")
            | "KeyParts"
            >> beam.Map(lambda part: (part.partition, part)).with_output_types(tuple[int, PartitionPart]),
        }
        seen = (
            keyed
            | "ByPartition" >> GroupKinds(KINDS, int)
            | "Probe"
            >> beam.ParDo(_Probe(self.spec))
            .with_output_types(PartitionPart, files=FileRow, replaced=str, tallies=Tally)
            .with_outputs("files", "replaced", "tallies", main="parts")
        )
        return Seen(seen.parts, seen.files, seen.replaced, seen.tallies)


class _Probe(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[int, Iterable[Tagged]]) -> Iterator[object]:
        partition, groups = element[0], KINDS.opened(element[1])
        probe = PartitionProbe(open_view(self.spec), partition, groups["due"], groups["parts"])
        yield from probe.write_new()
        written = probe.write_keys()
        for entry in written.files:
            yield beam.pvalue.TaggedOutput("files", coders.file_row(entry))
        for path in written.replaced:
            yield beam.pvalue.TaggedOutput("replaced", path)
        for name, count in sorted(probe.counts.items()):
            yield beam.pvalue.TaggedOutput("tallies", Tally("counter", name, count))


class PartitionProbe:
    """One partition's candidates: probes them, admits them, writes new URLs and their keys."""

    def __init__(
        self, view: RoundView, partition: int, dues: Sequence[DueRef], candidates: Sequence[PartitionPart]
    ) -> None:
        self.view, self.partition = view, partition
        self.counts: Counter[str] = Counter()
        new_seeds = self._new_seeds(dues)
        self.seeds = [(host_key, url_key) for host_key, url_key, _ in new_seeds]
        unseen = self._unseen(candidates)
        taken = set(self.seeds)
        self.hops = [row for row in unseen if row.kind == "hop" and (row.host_key, row.url_key) not in taken]
        taken |= {(row.host_key, row.url_key) for row in self.hops}
        found = [row for row in unseen if (row.host_key, row.url_key) not in taken]
        hops = [(row.host_key, row.url) for row in self.hops]
        self.new = self._admitted(found, [*hops, *((host_key, url) for host_key, _, url in new_seeds)])

    def _new_seeds(self, dues: Sequence[DueRef]) -> list[tuple[int, int, str]]:
        """Return host key, URL key and URL of each seed that no earlier round knew."""
        names = ["host_key", "url_key", "url"]
        seeds: list[tuple[int, int, str]] = []
        for due in dues:
            table = parts.read_whole(self.view.storage, due.path, [*names, "is_new"])
            table = table.filter(table.column("is_new"))
            seeds += zip(*(table.column(name).to_pylist() for name in names), strict=True)
        return seeds

    def _unseen(self, candidates: Sequence[PartitionPart]) -> list[CandidateRow]:
        """Return each unseen URL once: its hop, or else its finding with the least (depth, source).

        ``inlink_domains`` are counted here too, over all findings of an unseen URL.
        """
        self.linking: dict[tuple[int, int], int] = {}
        tables = [parts.read_part(self.view.storage, part.path, part.row_group) for part in candidates]
        if not tables:
            return []
        table = pa.concat_tables(tables)
        self.counts["candidates"] += table.num_rows
        k1, k2 = table.column("host_key").to_numpy(), table.column("url_key").to_numpy()
        fresh = runs.probe_new(self.view.storage, self.view.entries("seen", self.partition), k1, k2)
        table = table.filter(pa.array(fresh))
        if not table.num_rows:
            return []
        self._count_linking(table)
        is_link = pc.not_equal(table.column("kind"), "hop")
        order = pc.sort_indices(
            table.append_column("is_link", is_link),
            sort_keys=[
                (name, "ascending") for name in ("host_key", "url_key", "is_link", "depth", "source_url")
            ],
        )
        table = table.take(order)
        k1, k2 = table.column("host_key").to_numpy(), table.column("url_key").to_numpy()
        first = np.concatenate([[True], (k1[1:] != k1[:-1]) | (k2[1:] != k2[:-1])])
        return table_to_rows(table.filter(pa.array(first)), CandidateRow)

    def _count_linking(self, table: pa.Table) -> None:
        counted = table.group_by(["host_key", "url_key"]).aggregate([("source_domain", "count_distinct")])
        keys = zip(counted.column("host_key").to_pylist(), counted.column("url_key").to_pylist(), strict=True)
        self.linking = dict(
            zip(keys, counted.column("source_domain_count_distinct").to_pylist(), strict=True)
        )

    def _admitted(self, found: Sequence[CandidateRow], entering: Sequence[tuple[int, str]]) -> list[UrlState]:
        admission = Admission(self.view, self.partition, [*found, *self.hops], entering)
        new: list[UrlState] = []
        for row in sorted(found, key=lambda row: (row.depth, row.url)):
            reason = admission.refusal(row)
            if reason is None:
                new.append(self._state(row))
            else:
                self.counts[f"links_rejected/{reason}"] += 1
        self.counts["urls_new"] += len(new) + len(entering)
        return new

    def _state(self, row: CandidateRow) -> UrlState:
        spec = self.view.spec
        return UrlState(
            url=row.url,
            host_key=row.host_key,
            url_key=row.url_key,
            status=UrlStatus.UNFETCHED,
            next_fetch_at=spec.as_of,
            depth=row.depth,
            priority=row.priority,
            discovered_from=row.source_url,
            discovered_round=spec.round,
            discovered_at=spec.as_of,
            inlink_domains=self.linking.get((row.host_key, row.url_key), 0),
        )

    def write_new(self) -> Iterator[PartitionPart]:
        """Write the admitted URLs for the calendar and yield the reference."""
        if self.new:
            path = self.view.work_path(f"new-{self.partition:04d}")
            counts = parts.write_parts(
                self.view.storage, path, [rows_to_table(self.new, UrlState)], row_schema(UrlState)
            )
            yield PartitionPart(self.partition, "new", path, 0, counts[0])

    def write_keys(self) -> Written:
        """Add the keys of new URLs, new seeds and fetched redirect targets to the partition's runs."""
        keys = [
            *self.seeds,
            *((row.host_key, row.url_key) for row in self.hops),
            *((state.host_key, state.url_key) for state in self.new),
        ]
        columns = {
            "k1": np.array([key[0] for key in keys], dtype=np.uint64),
            "k2": np.array([key[1] for key in keys], dtype=np.uint64),
        }
        return add_run(self.view, SEEN, self.partition, columns if keys else None)
