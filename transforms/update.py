"""UpdateState: what each URL and host of the round became, and when it is asked next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apache_beam as beam

from schemas.round import RoundSpec, Tally
from transforms import coders  # noqa: F401  (registers the row coders)
from transforms.partition_update import PartitionUpdate
from transforms.view import open_view


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
            "dues": dues | "KeyDue" >> beam.Map(lambda due: (due.partition, due)),
            "settled": settled
            | "Outcomes" >> beam.Filter(lambda part: part.kind != "candidates")
            | "KeySettled" >> beam.Map(lambda part: (part.partition, part)),
            "new": new | "KeyNew" >> beam.Map(lambda part: (part.partition, part)),
        }
        updated = (
            keyed
            | "ByPartition" >> beam.CoGroupByKey()
            | "Update" >> beam.ParDo(_Update(self.spec)).with_outputs("replaced", "tallies", main="files")
        )
        return Updated(updated.files, updated.replaced, updated.tallies)


class _Update(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[int, dict[str, Iterable]]) -> Iterator[object]:
        partition, groups = element
        update = PartitionUpdate(
            open_view(self.spec), partition, list(groups["dues"]), [*groups["settled"], *groups["new"]]
        )
        written = update.write()
        yield from written.files
        for path in written.replaced:
            yield beam.pvalue.TaggedOutput("replaced", path)
        for (group, name), count in sorted(update.counts.items()):
            yield beam.pvalue.TaggedOutput("tallies", Tally(group, name, count))
