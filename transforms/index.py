"""IndexCaptures: the WARC files that a round's journal names, and one sorted CDXJ index for each subset."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import apache_beam as beam

from connectors import cdxj, layout, sealed
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
            .with_output_types(FileRow, index=tuple[str, tuple[str, str]])
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
            path = entry.cdxj[warc.path]
            yield beam.pvalue.TaggedOutput("index", (subset, (path, entry.digests.get(path, ""))))


class _Merge(beam.DoFn):
    def __init__(self, spec: RoundSpec) -> None:
        self.spec = spec

    def process(self, element: tuple[str, Iterable[tuple[str, str]]]) -> Iterator[FileRow]:
        subset, parts = element
        yield coders.file_row(merge_index(open_view(self.spec), subset, dict(sorted(parts))))


def merge_index(view: RoundView, subset: str, digests: Mapping[str, str]) -> FileEntry:
    """Merge sorted CDXJ files of one subset into its index file, staged; return its entry.

    ``digests`` gives the BLAKE2b-128, hex, of each file by its path. Raises DamagedFile for one that is gone
    or not what was written: they are compressed, so that a changed byte shows when they are read.
    """
    path = layout.index_path(view.spec.round, subset)
    staged = f"{layout.staged(view.spec.round, path)}.{secrets.token_hex(4)}"
    with view.storage.scratch_folder("index") as folder:
        sources = [partial(view.storage.open_read, source) for source in digests]
        with view.storage.creating(staged) as target:
            with Path(target).open("wb") as out:
                rows = _merged(view, sources, out, folder, digests)
            with Path(target).open("rb") as written:
                digest = digest_of(written)
            size = Path(target).stat().st_size
    return FileEntry(path, staged, "index", 0, 0, rows, size, digest)


def _merged(
    view: RoundView,
    sources: Sequence[Callable[[], BinaryIO]],
    out: BinaryIO,
    folder: Path,
    digests: Mapping[str, str],
) -> int:
    try:
        return cdxj.merge(sources, out, folder)
    except (EOFError, OSError, ValueError, zlib.error):
        # Which file it was shows from their digests; if none, it was no damage.
        for path, digest in digests.items():
            sealed.read_checked(view.storage, path, digest)
        raise
