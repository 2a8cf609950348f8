"""PlanRound: the newest manifest and what is due now, to each shard's list of URLs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apache_beam as beam

from connectors import layout
from connectors.files import AlreadyThere
from schemas.round import DueRef, ListPart, RoundPlan, RoundSpec, SeedPart
from transforms import coders, planning  # noqa: F401  (registers the row coders)
from transforms.absorb import absorb
from transforms.round_packing import pack_round
from transforms.view import RoundView, open_view


class Planned(NamedTuple):
    """What planning yields: each partition's due file, and each shard's lists."""

    dues: beam.PCollection
    shards: beam.PCollection


class PlanRound(beam.PTransform):
    """PBegin -> Planned(PCollection[DueRef], PCollection[(shard number, Iterable[ListPart])]).

    Each partition's due URLs are selected where they lie; only ranks and host loads meet in one place,
    where the plan is written create-only. A retry, or a rerun after a crash, deals the same plan again.
    Nothing due: an empty collection, no plan, and a note that says so.

    Args:
        spec: the round.
        plan: the plan of the unfinished round that is resumed, None for a new round.
    """

    def __init__(self, spec: RoundSpec, plan: RoundPlan | None = None) -> None:
        super().__init__()
        self.spec = spec
        self.plan = plan

    def expand(self, begin: beam.pvalue.PBegin) -> Planned:
        """Select per partition, pack once, deal per partition, group by shard."""
        if self.plan is not None:
            dues = begin | "ReadPlan" >> beam.Create(list(self.plan.due)).with_output_types(DueRef)
        else:
            dues = (
                begin
                | "Round" >> beam.Create([self.spec.round])
                | "AbsorbSeeds" >> beam.ParDo(_Absorb(self.spec)).with_output_types(SeedPart)
                | "SpreadPartitions" >> beam.Reshuffle()
                | "SelectDue" >> beam.ParDo(_SelectDue(self.spec)).with_output_types(DueRef)
                | "OnePlan" >> beam.Map(lambda due: (0, due)).with_output_types(tuple[int, DueRef])
                | "GatherDue" >> beam.GroupByKey()
                | "PackShards" >> beam.ParDo(_PackShards(self.spec)).with_output_types(DueRef)
            )
        spread = dues | "SpreadDue" >> beam.Reshuffle()
        dealt = spread | "DealShards" >> beam.ParDo(_DealShards(self.spec)).with_output_types(
            tuple[int, ListPart]
        )
        shards = dealt | "ByShard" >> beam.GroupByKey()
        return Planned(spread, shards)


class _Absorb(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, _: int) -> Iterator[SeedPart]:
        yield from absorb(open_view(self.spec))


class _SelectDue(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, part: SeedPart) -> Iterator[DueRef]:
        yield planning.select_due(open_view(self.spec), part)


class _PackShards(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[int, Iterable[DueRef]]) -> Iterator[DueRef]:
        view = open_view(self.spec)
        plan = pack_round(view, list(element[1]))
        if plan is None:
            note_nothing_due(view)
        else:
            yield from planning.commit_plan(view, plan).due


def note_nothing_due(view: RoundView) -> None:
    """Tell the command, which may be on another machine, that its job had nothing to do. Idempotent."""
    with contextlib.suppress(AlreadyThere):
        view.storage.write_new(layout.nothing_path(view.spec.round, view.spec.attempt), b"{}")


class _DealShards(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, due: DueRef) -> Iterator[tuple[int, ListPart]]:
        for part in planning.deal(open_view(self.spec), due):
            yield part.shard, part
