"""UpdateState: what each URL and host of the round became, and when it is asked next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apache_beam as beam

from schemas.round import DueRef, FileRow, PartitionPart, RoundSpec, Tally
from transforms import coders
from transforms.grouping import GroupKinds, Kinds, Tagged
from transforms.partition_update import PartitionUpdate
from transforms.view import open_view

KINDS = Kinds(dues=DueRef, settled=PartitionPart, new=PartitionPart)


class Updated(NamedTuple):
    """What the update yields: files written, paths replaced, counts by outcome and reason."""

    files: beam.PCollection
    replaced: beam.PCollection
    tallies: beam.PCollection


class UpdateState(beam.PTransform):
    """(PCollection[DueRef], PCollection[PartitionPart], PCollection[PartitionPart]) -> Updated.

    Takes each partition's due rows, its final outcome rows and its new URLs; writes the captures, hosts and
    removed tables, the next frontier calendar, host clocks and robots.txt. Every planned URL has exactly
    one row of kind planned, or the step fails. A pure function of its files.
    """

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, inputs: tuple[beam.PCollection, beam.PCollection, beam.PCollection]) -> Updated:
        """Bring everything about a partition together, then update it."""
        dues, settled, new = inputs
        keyed = {
            "dues": dues
            | "KeyDue" >> beam.Map(lambda due: (due.partition, due)).with_output_types(tuple[int, DueRef]),
            "settled": settled
            | "Outcomes" >> beam.Filter(lambda part: part.kind != "candidates")
            | "KeySettled"
            >> beam.Map(lambda part: (part.partition, part)).with_output_types(tuple[int, PartitionPart]),
            "new": new
            | "KeyNew"
            >> beam.Map(lambda part: (part.partition, part)).with_output_types(tuple[int, PartitionPart]),
        }
        updated = (
            keyed
            | "ByPartition" >> GroupKinds(KINDS, int)
            | "Update"
            >> beam.ParDo(_Update(self.spec))
            .with_output_types(FileRow, replaced=str, tallies=Tally)
            .with_outputs("replaced", "tallies", main="files")
        )
        return Updated(updated.files, updated.replaced, updated.tallies)


class _Update(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[int, Iterable[Tagged]]) -> Iterator[object]:
        partition, groups = element[0], KINDS.opened(element[1])
        given = [*groups["settled"], *groups["new"]]
        update = PartitionUpdate(open_view(self.spec), partition, groups["dues"], given)
        written = update.write()
        yield from map(coders.file_row, written.files)
        for path in written.replaced:
            yield beam.pvalue.TaggedOutput("replaced", path)
        for (group, name), count in sorted(update.counts.items()):
            yield beam.pvalue.TaggedOutput("tallies", Tally(group, name, count))
