"""IndexCaptures: the WARC files that a round's journal names, and one sorted CDXJ index for each subset."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam

from connectors import cdxj, layout
from connectors.files import digest_of
from schemas.manifest import FileEntry
from schemas.round import FileRow, RoundSpec, SegmentRef
from transforms import coders
from transforms.view import RoundView, open_view


class Indexed(NamedTuple):
    """What indexing yields; it replaces nothing."""

    files: beam.PCollection


class IndexCaptures(beam.PTransform):
    """PCollection[SegmentRef] -> Indexed.

    Yields an entry for each WARC file of the journal and for each merged CDXJ file, whose rows were verified
    against the WARC files before the journal entry was written.
    """

    def __init__(self, spec: RoundSpec) -> None:
        super().__init__()
        self.spec = spec

    def expand(self, segments: beam.PCollection) -> Indexed:
        """Name the WARC files; merge the index rows of each subset."""
        read = segments | "ReadJournal" >> (
            beam.ParDo(_ReadJournal(self.spec))
            .with_output_types(FileRow, index=tuple[str, str])
            .with_outputs("index", main="files")
        )
        merge = beam.ParDo(_Merge(self.spec)).with_output_types(FileRow)
        merged = read.index | "BySubset" >> beam.GroupByKey() | "MergeIndex" >> merge
        return Indexed((read.files, merged) | "WarcAndIndex" >> beam.Flatten())


class _ReadJournal(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, segment: SegmentRef) -> Iterator[object]:
        entry = open_view(self.spec).journal(segment.shard).read(segment.segment)
        for warc in entry.warcs:
            yield coders.file_row(warc)
            subset = warc.path.split("/")[2]
            yield beam.pvalue.TaggedOutput("index", (subset, entry.cdxj[warc.path]))


class _Merge(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[str, Iterable[str]]) -> Iterator[FileRow]:
        subset, paths = element
        yield coders.file_row(merge_index(open_view(self.spec), subset, sorted(paths)))


def merge_index(view: RoundView, subset: str, paths: list[str]) -> FileEntry:
    """Merge sorted CDXJ files of one subset into its index file, staged; return its entry."""
    path = layout.index_path(view.spec.round, subset)
    staged = f"{layout.staged(view.spec.round, path)}.{secrets.token_hex(4)}"
    with view.storage.scratch_folder("index") as folder:
        sources = [partial(view.storage.open_read, source) for source in paths]
        with view.storage.creating(staged) as target:
            with Path(target).open("wb") as out:
                rows = cdxj.merge(sources, out, folder)
            with Path(target).open("rb") as written:
                digest = digest_of(written)
            size = Path(target).stat().st_size
    return FileEntry(path, staged, "index", 0, 0, rows, size, digest)
