"""FetchShards: the only step that meets the network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from schemas.round import ListPart, RoundSpec, SegmentRef
from transforms import coders  # noqa: F401  (registers the row coders)
from transforms.shard_run import ShardRun
from transforms.view import open_view


class FetchShards(beam.PTransform):
    """PCollection[(shard number, Iterable[ListPart])] -> PCollection[SegmentRef].

    One shard is one element: its hosts are asked side by side, each host's URLs one after another with its
    delay, counted from the end of a download. What is fetched is made safe every ``checkpoint_seconds`` by a
    create-only journal entry; a retry of the shard begins by reading the journal, so no committed URL is
    fetched twice. No request starts after the round's deadline; what is left is deferred.

    Raises RoundStopped when the operator stops the round, Locked while another attempt holds the shard.
    """

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, shards: beam.PCollection) -> beam.PCollection:
        """Spread the shards over the workers, then fetch each."""
        return (
            shards
            | "SpreadShards" >> beam.Reshuffle()
            | "Fetch" >> beam.ParDo(_Fetch(self.spec)).with_output_types(SegmentRef)
        )


class _Fetch(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[int, Iterable[ListPart]]) -> Iterator[SegmentRef]:
        shard, parts = element
        yield from ShardRun(open_view(self.spec), shard, list(parts)).segments()
