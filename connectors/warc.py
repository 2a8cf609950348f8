"""A segment of a crawl on the local disk: three WARC/1.1 files, indexed and digested while written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from connectors.cdxj import capture_row, format_row, mime_of
from connectors.layout import SUBSETS, warc_path
from connectors.warc_file import ClosedWarc, WarcFile
from connectors.warc_records import (
    CaptureIds,
    Record,
    RecordIds,
    identical_record,
    metadata_record,
    not_modified_record,
    payload_head,
    request_record,
    response_record,
    sha1,
    warc_date,
    warcinfo_record,
)
from schemas.fetch import Capture, Original, WarcLocation

CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
DIGEST_BASIS = (
    "Payload digests are SHA-1 over the entity body as stored: as sent by the server, content coding kept, "
    "transfer coding removed. Header fields that transfer decoding or truncation made untrue have the "
    "prefix X-Crawler-."
)
HEAD_BYTES = 1445

_NAME = re.compile(r"[A-Za-z0-9._-]+")


class WarcNaming(NamedTuple):
    """The parts of a file's name. Together with the subset they must be unique in a crawl.

    ``timestamp14`` is YYYYMMDDHHMMSS (UTC), when the segment was opened; it dates the warcinfo record.
    """

    prefix: str
    timestamp14: str
    serial: int
    shard: str

    def filename(self, subset: str) -> str:
        """Return PREFIX-TIMESTAMP-SERIAL-SHARD.warc.gz, where subsets other than warc extend the prefix.

        Raises ValueError for a part that does not belong in a file name.
        """
        prefix = self.prefix if subset == "warc" else f"{self.prefix}-{subset}"
        if not (_NAME.fullmatch(prefix) and _NAME.fullmatch(self.shard)):
            raise ValueError(f"not fit for a WARC file name: {prefix!r}, {self.shard!r}")
        if not re.fullmatch(r"\d{14}", self.timestamp14):
            raise ValueError(f"not a 14-digit time: {self.timestamp14!r}")
        return f"{prefix}-{self.timestamp14}-{self.serial:05d}-{self.shard}.warc.gz"


class WarcInfo(NamedTuple):
    """What each file says of itself: free text, one line each; empty text leaves the line out."""

    software: str
    operator: str
    robots: str
    user_agent: str
    is_part_of: str
    description: str = ""
    digest_basis: str = DIGEST_BASIS

    def fields(self) -> dict[str, str]:
        """Return the lines of the warcinfo record (WARC/1.1 section 6.2, Dublin Core names)."""
        lines = {
            "software": self.software,
            "format": "WARC File Format 1.1",
            "conformsTo": CONFORMS_TO,
            "isPartOf": self.is_part_of,
            "description": self.description,
            "operator": self.operator,
            "robots": self.robots,
            "http-header-user-agent": self.user_agent,
            "digest-basis": self.digest_basis,
        }
        return {name: value for name, value in lines.items() if value}


class WarcSegment:
    """Writes captures into files of a local folder: request, response or revisit, metadata, side by side.

    The files are made by the first capture of their subset; each begins with a warcinfo record, each
    record is one gzip member. The same arguments and the same captures in the same order give the same
    bytes. Nothing is visible to anyone before the caller publishes what ``close`` returns.

    Args:
        folder: an existing local folder that holds no file of these names.
        crawl, salt, round_number, attempt: with URL and seed, what record ids are derived from.
        surt_key: URL -> sort key of the index.
        identify: beginning of a decoded body -> media type, None for an empty one.
    """

    def __init__(
        self,
        folder: Path,
        naming: WarcNaming,
        info: WarcInfo,
        *,
        crawl: str,
        salt: str,
        round_number: int,
        attempt: str,
        surt_key: Callable[[str], str],
        identify: Callable[[bytes], str | None],
    ) -> None:
        self._folder, self._naming, self._info = folder, naming, info
        self._round_number = round_number
        self._ids = RecordIds(crawl, salt, round_number, attempt)
        self._surt_key, self._identify = surt_key, identify
        self._files: dict[str, WarcFile] = {}
        self._stored: set[str] = set()

    @property
    def size_bytes(self) -> int:
        """The size of the largest file so far."""
        return max((file.size_bytes for file in self._files.values()), default=0)

    @property
    def total_bytes(self) -> int:
        """The size of all files so far."""
        return sum(file.size_bytes for file in self._files.values())

    def write(
        self,
        capture: Capture,
        subset: str,
        metadata: Mapping[str, str],
        revisit: Original | None,
        record_seed: str,
        index_fields: Mapping[str, str] | None = None,
    ) -> WarcLocation:
        """Store one capture and return where its response or revisit record lies.

        ``revisit`` is the stored response this capture may repeat. It becomes a revisit record when the
        status is 304, or when body and original have the same digest; never for an empty or truncated
        body: those are stored as they are. ``record_seed`` tells captures of one URL in one attempt
        apart; the same URL and seed twice raise ValueError. ``index_fields`` are further CDXJ fields
        (redirect, charset, languages).
        """
        file = self._file(subset)
        ids = self._capture_ids(file, capture, record_seed)
        date = warc_date(capture.started_at)
        digest = sha1(capture.body)
        identified = self._identify(payload_head(capture, HEAD_BYTES))
        main = _main_record(capture, ids, date, revisit, digest, identified)
        extra = [metadata_record(capture, ids, date, metadata)] if metadata else []
        _, (offset, length), *_ = file.append([request_record(capture, ids, date), main, *extra])
        has_payload = main.kind == "response" or bool(capture.body)
        location = WarcLocation(
            filename=file.filename,
            offset=offset,
            length=length,
            subset=subset,
            record_id=ids.response,
            date=date,
            payload_digest=digest if has_payload else None,
            mime=mime_of(capture.response_headers),
            mime_detected=identified,
            is_revisit=main.kind == "revisit",
        )
        file.cdxj_lines.append(format_row(capture_row(capture, location, self._surt_key, index_fields or {})))
        return location

    def close(self) -> list[ClosedWarc]:
        """End the files and return them, in the order of the subsets' names in the contract."""
        return [self._files[subset].close() for subset in SUBSETS if subset in self._files]

    def _capture_ids(self, file: WarcFile, capture: Capture, seed: str) -> CaptureIds:
        kinds = ("request", "response", "metadata")
        ids = CaptureIds(file.warcinfo_id, *(self._ids.of(kind, capture.url, seed) for kind in kinds))
        if ids.response in self._stored:
            raise ValueError(f"stored already, give it another seed: {capture.url} {seed!r}")
        self._stored.add(ids.response)
        return ids

    def _file(self, subset: str) -> WarcFile:
        if subset not in SUBSETS:
            raise ValueError(f"no such subset: {subset!r}")
        if subset not in self._files:
            name = self._naming.filename(subset)
            filename = warc_path(self._round_number, subset, name)
            file = WarcFile(self._folder / name, subset, filename, self._ids.of("warcinfo", filename, ""))
            time = self._naming.timestamp14
            date = f"{time[:4]}-{time[4:6]}-{time[6:8]}T{time[8:10]}:{time[10:12]}:{time[12:]}Z"
            file.append([warcinfo_record(file.warcinfo_id, date, name, self._info.fields())])
            self._files[subset] = file
        return self._files[subset]


def _main_record(
    capture: Capture,
    ids: CaptureIds,
    date: str,
    original: Original | None,
    digest: str,
    identified: str | None,
) -> Record:
    if original is not None and capture.status == 304 and not capture.body:
        return not_modified_record(capture, ids, date, original)
    may_repeat = original is not None and capture.body and not capture.truncated
    if original is not None and may_repeat and original.payload_digest.rpartition(":")[2] == digest:
        return identical_record(capture, ids, date, original, digest, identified)
    return response_record(capture, ids, date, digest, identified)
