"""MarkDuplicates: gate 2. Which pages of a round are new content, and which are copies of what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import apache_beam as beam

from schemas.manifest import FileEntry
from schemas.round import ParsedRef, PartitionPart, RoundSpec, Tally, VerdictRef
from transforms import coders  # noqa: F401  (registers the row coders)
from transforms.gate_buckets import index_buckets, match_buckets
from transforms.gate_clusters import file_verdicts, label_clusters, resolve_clusters
from transforms.gate_pages import admit_pages, deal_docs, verify_matches
from transforms.gate_parts import GatePart, Given, Task, tasks_for
from transforms.gate_texts import ask_for_copies, gather_clusters, tell_verdicts
from transforms.gate_view import GateSpec, GateView, open_gate

Step = Callable[[GateView, Task, Given], Iterator[object]]

_OUTPUTS = {
    VerdictRef: "verdicts",
    PartitionPart: "sketches",
    FileEntry: "files",
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


class CompareSketches(beam.PTransform):
    """PCollection[ParsedRef] -> Gate: the gate itself, in a crawl or without one.

    Each step is dealt among tasks by the key that it needs: pages by host, texts by digest, buckets by
    their hash, clusters by label. Rows lie in files; only references are shuffled.
    """

    def __init__(self, spec: GateSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, parsed: beam.PCollection) -> Gate:
        """Wire the steps: who is there, who may be alike, who is, who stays."""
        docs = self._docs(parsed)
        pages = self._step("AdmitPages", admit_pages, ("docs",), docs)
        texts = self._step("AskForCopies", ask_for_copies, ("pages",), pages.parts)
        buckets = self._step("MatchBuckets", match_buckets, ("bands",), texts.parts)
        stored = self._step(
            "VerifyMatches", verify_matches, ("queries", "docs"), texts.parts, buckets.parts, docs
        )
        labels = self._step("LabelClusters", label_clusters, ("edges",), buckets.parts)
        clusters = self._step(
            "GatherClusters",
            gather_clusters,
            ("pages", "stored", "labels"),
            pages.parts,
            stored.parts,
            labels.parts,
        )
        fates = self._step("ResolveClusters", resolve_clusters, ("members", "links"), clusters.parts)
        told = self._step("TellVerdicts", tell_verdicts, ("pages", "fates"), pages.parts, fates.parts)
        filed = self._step("FileVerdicts", file_verdicts, ("verdicts",), pages.parts, told.parts)
        index = self._step("IndexBuckets", index_buckets, ("entries", "crowded"), told.parts, buckets.parts)
        files = (told.files, index.files) | "IndexFiles" >> beam.Flatten()
        replaced = (told.replaced, index.replaced) | "IndexReplaced" >> beam.Flatten()
        return Gate(filed.verdicts, told.sketches, files, replaced, filed.tallies)

    def _docs(self, parsed: beam.PCollection) -> beam.PCollection:
        partitions = self.spec.partitions
        tasks = (
            parsed
            | "CountSketches" >> beam.Map(lambda ref: ref.sketches)
            | "SumSketches" >> beam.CombineGlobally(sum)
            | "Tasks" >> beam.Map(tasks_for, partitions)
        )
        return (
            parsed
            | "KeyShards" >> beam.Map(lambda ref: (ref.segment.rpartition("-")[0], ref))
            | "ByShard" >> beam.GroupByKey()
            | "DealDocs" >> beam.ParDo(_DealDocs(self.spec), beam.pvalue.AsSingleton(tasks))
        )

    def _step(
        self, label: str, step: Step, kinds: tuple[str, ...], *sources: beam.PCollection
    ) -> beam.pvalue.DoOutputsTuple:
        """Bring the parts of these kinds to their tasks and run the step on each."""
        return (
            sources
            | f"{label}Parts" >> beam.Flatten()
            | f"{label}Kinds" >> beam.Filter(lambda part: part.kind in kinds)
            | f"{label}Key" >> beam.Map(lambda part: ((part.tasks, part.task), part))
            | f"{label}ByTask" >> beam.GroupByKey()
            | label >> beam.ParDo(_Step(self.spec, step)).with_outputs(*_OUTPUTS.values(), main="parts")
        )


class _DealDocs(beam.DoFn):
    def __init__(self, spec: GateSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[str, Iterable[ParsedRef]], tasks: int) -> Iterator[GatePart]:
        yield from deal_docs(open_gate(self.spec), tasks, element[1])


class _Step(beam.DoFn):
    def __init__(self, spec: GateSpec, step: Step) -> None:
        self.spec, self.step = spec, step

    def process(self, element: tuple[tuple[int, int], Iterable[GatePart]]) -> Iterator[object]:
        (tasks, number), parts = element
        view = open_gate(self.spec)
        for item in self.step(view, Task(tasks, number), Given(view, parts)):
            tag = _OUTPUTS.get(type(item))
            yield item if tag is None else beam.pvalue.TaggedOutput(tag, item)
