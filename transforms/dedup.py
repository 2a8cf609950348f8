"""MarkDuplicates: gate 2. Which pages of a round are new content, and which are copies of what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import apache_beam as beam

from schemas.manifest import FileEntry
from schemas.round import FileRow, ParsedRef, PartitionPart, RoundSpec, Tally, VerdictRef
from transforms import coders
from transforms.gate.buckets import index_buckets, match_buckets
from transforms.gate.clusters import file_verdicts, label_clusters, resolve_clusters
from transforms.gate.pages import admit_pages, deal_docs, verify_matches
from transforms.gate.parts import GatePart, Given, Task, tasks_for
from transforms.gate.texts import ask_for_copies, gather_clusters, tell_verdicts
from transforms.gate.view import GateSpec, GateView, open_gate

Step = Callable[[GateView, Task, Given], Iterator[object]]

_OUTPUTS = {
    VerdictRef: "verdicts",
    PartitionPart: "sketches",
    FileRow: "files",
    str: "replaced",
    Tally: "tallies",
}


class Gate(NamedTuple):
    """What the gate yields: verdicts by segment, sketches of pages that stay by partition, files, counts."""

    verdicts: beam.PCollection
    sketches: beam.PCollection
    files: beam.PCollection
    replaced: beam.PCollection
    tallies: beam.PCollection


class MarkDuplicates(beam.PTransform):
    """PCollection[ParsedRef] -> Gate.

    Compares the texts of a round with each other and with those that the crawl keeps. A page is a duplicate
    if its text is that of a page before it that stays (exact), or if the estimated Jaccard similarity of
    their word 5-grams is at least ``near_dup_threshold`` (near; 0.9 within one registered domain).
    Before it are the pages of earlier rounds, then the canonical target, then the least (depth, SURT key):
    the order of arrival, the number of shards and of workers change nothing. No page that stays is a
    duplicate of another that does, as far as their sketches share a bucket. A page whose text is the one that
    the index has of it is told ``same``.

    ``sketches`` go to UpdateState, which adds them to the index and takes pages out of it; digests and bands
    are added here. A pure function of its files.
    """

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()
        self.spec = GateSpec.of_round(spec)

    def expand(self, parsed: beam.PCollection) -> Gate:
        """Compare the sketches of the segments."""
        return parsed | CompareSketches(self.spec)


class Stage(NamedTuple):
    """One step of the gate: the kinds of parts that it takes, and those that it makes for later ones."""

    name: str
    run: Step
    takes: tuple[str, ...]
    makes: tuple[str, ...] = ()


STAGES = (
    Stage("AdmitPages", admit_pages, ("docs",), ("pages", "verdicts")),
    Stage("AskForCopies", ask_for_copies, ("pages",), ("queries", "bands")),
    Stage("MatchBuckets", match_buckets, ("bands",), ("queries", "edges", "crowded")),
    Stage("VerifyMatches", verify_matches, ("queries", "docs"), ("stored",)),
    Stage("LabelClusters", label_clusters, ("edges",), ("labels",)),
    Stage("GatherClusters", gather_clusters, ("pages", "stored", "labels"), ("members", "links")),
    Stage("ResolveClusters", resolve_clusters, ("members", "links"), ("fates",)),
    Stage("TellVerdicts", tell_verdicts, ("pages", "fates"), ("verdicts", "entries")),
    Stage("FileVerdicts", file_verdicts, ("verdicts",)),
    Stage("IndexBuckets", index_buckets, ("entries", "crowded")),
)
"""Who is there, who may be alike, who is, who stays: pages are dealt by host, texts by digest, buckets by
their hash, clusters by label."""


class CompareSketches(beam.PTransform):
    """PCollection[ParsedRef] -> Gate: the gate itself, in a crawl or without one.

    Rows lie in files; what is shuffled are references to row groups, one for each task that a step deals to.
    """

    def __init__(self, spec: GateSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, parsed: beam.PCollection) -> Gate:
        """Wire the stages, each to those that make what it takes."""
        made: dict[str, list[beam.PCollection]] = {"docs": [self._docs(parsed)]}
        done: dict[str, beam.pvalue.DoOutputsTuple] = {}
        for stage in STAGES:
            sources = dict.fromkeys(source for kind in stage.takes for source in made[kind])
            done[stage.name] = self._run(stage, list(sources))
            for kind in stage.makes:
                made.setdefault(kind, []).append(done[stage.name].parts)
        told, index, filed = done["TellVerdicts"], done["IndexBuckets"], done["FileVerdicts"]
        return Gate(
            filed.verdicts,
            told.sketches,
            (told.files, index.files) | "IndexFiles" >> beam.Flatten(),
            (told.replaced, index.replaced) | "IndexReplaced" >> beam.Flatten(),
            (filed.tallies, index.tallies) | "GateTallies" >> beam.Flatten(),
        )

    def _docs(self, parsed: beam.PCollection) -> beam.PCollection:
        partitions = self.spec.partitions
        tasks = (
            parsed
            | "CountSketches" >> beam.Map(lambda ref: (0, ref.sketches)).with_output_types(tuple[int, int])
            | "InOnePlace" >> beam.GroupByKey()
            | "Tasks"
            >> beam.MapTuple(lambda _, counts: tasks_for(sum(counts), partitions)).with_output_types(int)
        )
        return (
            parsed
            | "KeyShards"
            >> beam.Map(lambda ref: (ref.segment.rpartition("-")[0], ref)).with_output_types(
                tuple[str, ParsedRef]
            )
            | "ByShard" >> beam.GroupByKey()
            | "DealDocs"
            >> beam.ParDo(
                _DealDocs(self.spec), beam.pvalue.AsSingleton(tasks, default_value=1)
            ).with_output_types(GatePart)
        )

    def _run(self, stage: Stage, sources: list[beam.PCollection]) -> beam.pvalue.DoOutputsTuple:
        """Bring the parts that a stage takes to their tasks, and run it on each."""
        takes = stage.takes
        return (
            sources
            | f"{stage.name}Parts" >> beam.Flatten()
            | f"{stage.name}Kinds" >> beam.Filter(lambda part: part.kind in takes)
            | f"{stage.name}Key"
            >> beam.Map(lambda part: ((part.tasks, part.task), part)).with_output_types(
                tuple[tuple[int, int], GatePart]
            )
            | f"{stage.name}ByTask" >> beam.GroupByKey()
            | stage.name
            >> beam.ParDo(_Task(self.spec, stage.run))
            .with_output_types(GatePart, **{tag: kind for kind, tag in _OUTPUTS.items()})
            .with_outputs(*_OUTPUTS.values(), main="parts")
        )


class _DealDocs(beam.DoFn):
    def __init__(self, spec: GateSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[str, Iterable[ParsedRef]], tasks: int) -> Iterator[GatePart]:
        yield from deal_docs(open_gate(self.spec), tasks, element[1])


class _Task(beam.DoFn):
    def __init__(self, spec: GateSpec, step: Step) -> None:
        self.spec, self.step = spec, step

    def process(self, element: tuple[tuple[int, int], Iterable[GatePart]]) -> Iterator[object]:
        (tasks, number), parts = element
        view = open_gate(self.spec)
        for item in self.step(view, Task(tasks, number), Given(view, parts)):
            item = coders.file_row(item) if isinstance(item, FileEntry) else item
            tag = _OUTPUTS.get(type(item))
            yield item if tag is None else beam.pvalue.TaggedOutput(tag, item)
