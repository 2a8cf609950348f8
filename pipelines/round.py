"""`python -m pipelines.round`: the next round, or rounds, of a crawl; each is one Beam job."""

from __future__ import annotations

from collections.abc import Sequence

import apache_beam as beam

from pipelines.driver import run_rounds
from runners.options import run_command
from runners.round_options import parse_round
from schemas.round import RoundPlan, RoundSpec
from transforms.commit import CommitRound
from transforms.dedup import MarkDuplicates
from transforms.fetch import FetchShards
from transforms.index import IndexCaptures
from transforms.parse import ParseSegments
from transforms.plan import PlanRound
from transforms.seen import SeenUrls
from transforms.settle import SettleSegments
from transforms.update import UpdateState


def build(pipeline: beam.Pipeline, spec: RoundSpec, plan: RoundPlan | None) -> None:
    """Wire one round: from the newest committed manifest to the next one."""
    planned = pipeline | "PlanRound" >> PlanRound(spec, plan)
    segments = planned.shards | "FetchShards" >> FetchShards(spec)
    parsed = segments | "ParseSegments" >> ParseSegments(spec)
    gate = parsed | "MarkDuplicates" >> MarkDuplicates(spec)
    settled = (parsed, gate.verdicts) | "SettleSegments" >> SettleSegments(spec)
    seen = (planned.dues, settled.parts) | "SeenUrls" >> SeenUrls(spec)
    found = [seen.parts, gate.sketches] | "Found" >> beam.Flatten()
    state = (planned.dues, settled.parts, found) | "UpdateState" >> UpdateState(spec)
    index = segments | "IndexCaptures" >> IndexCaptures(spec)
    steps = [gate, settled, seen, state, index]
    files = [step.files for step in steps] | "Files" >> beam.Flatten()
    replaced = [gate.replaced, seen.replaced, state.replaced] | "Replaced" >> beam.Flatten()
    tallies = [gate.tallies, settled.tallies, seen.tallies, state.tallies] | "Tallies" >> beam.Flatten()
    (files, replaced, tallies) | "CommitRound" >> CommitRound(spec)  # type: ignore[operator]


def main(argv: Sequence[str]) -> int:
    """Run the rounds that the command line asks for; return the exit code of the contract."""
    return run_rounds(parse_round(argv), build)


if __name__ == "__main__":
    run_command(main, "round")
