"""A piece of a shard's fetching: WARC files and outcome rows, made safe together by one journal entry."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from connectors import cdxj, layout, parts
from connectors.files import digest_of
from connectors.journal import Journal
from connectors.rows import rows_to_table
from connectors.warc import ClosedWarc, WarcInfo, WarcNaming, WarcSegment
from connectors.warc_verify import verify_warc
from crawler.sniff import sniff
from crawler.urls import surt_key
from schemas.fetch import Capture, Original, OutcomeRow, WarcLocation
from schemas.journal import JournalEntry
from schemas.manifest import FileEntry
from schemas.round import SegmentRef
from schemas.state import HostState, RobotsState, UrlState
from transforms.capture_facts import metadata_of
from transforms.view import RoundView

SOFTWARE = "roundcrawl"
REMEMBERED_PAYLOADS = 100_000


class DamagedSegment(Exception):
    """A WARC file that was just written does not read back: nothing of it is published."""


class KnownPayloads:
    """Payloads stored by this shard in this round, so that an identical one becomes a revisit record."""

    def __init__(self) -> None:
        self._originals: OrderedDict[str, Original] = OrderedDict()

    def find(self, digest: str) -> Original | None:
        """Return the stored response with this payload digest."""
        return self._originals.get(digest)

    def remember(self, original: Original) -> None:
        """Keep a stored response; the oldest is forgotten beyond 100,000."""
        self._originals.setdefault(original.payload_digest, original)
        if len(self._originals) > REMEMBERED_PAYLOADS:
            self._originals.popitem(last=False)


def original_of(state: UrlState | None) -> Original | None:
    """Return the response of an earlier round that a recrawl of this URL may repeat."""
    if state is None or not state.payload_digest or not state.original_url:
        return None
    return Original(
        url=state.original_url,
        date=state.original_date or "",
        record_id=state.original_record_id or "",
        payload_digest=state.payload_digest,
        filename=state.original_filename,
        offset=state.original_offset,
        length=state.original_length,
    )


class SegmentRecorder:
    """Collects one segment; `close` verifies, publishes and journals it. Used by one thread."""

    def __init__(self, view: RoundView, shard: int, number: int, opened_at: float, attempt: str) -> None:
        self.view, self.shard, self.number, self.attempt = view, shard, number, attempt
        self.rows: list[OutcomeRow] = []
        self.bytes = 0
        self.opened_at = opened_at
        self._digests: dict[str, str] = {}
        self._folder = ExitStack()
        spec = view.spec
        naming = WarcNaming(
            prefix=_name_part(spec.name),
            timestamp14=f"{datetime.fromtimestamp(opened_at, UTC):%Y%m%d%H%M%S}",
            serial=number,
            shard=f"{shard:04d}",
        )
        info = WarcInfo(
            software=SOFTWARE,
            operator=spec.flags.contact or "",
            robots="obeyed, RFC 9309",
            user_agent=spec.flags.user_agent,
            is_part_of=f"{spec.name}-{spec.round:06d}",
        )
        self._warc = WarcSegment(
            self._folder.enter_context(view.storage.scratch_folder("segment")),
            naming,
            info,
            crawl=spec.name,
            salt=spec.salt,
            round_number=spec.round,
            attempt=attempt,
            surt_key=surt_key,
            identify=sniff,
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to make safe."""
        return not self.rows and not self._warc.total_bytes

    @property
    def size_bytes(self) -> int:
        """The size of the largest WARC file so far."""
        return self._warc.size_bytes

    def store(
        self,
        capture: Capture,
        kind: str,
        seed: str,
        original: Original | None,
        redirect: str | None,
        via: str | None,
    ) -> WarcLocation:
        """Write one capture into the WARC file of its subset and return where it lies."""
        self.bytes += len(capture.body)
        metadata = metadata_of(capture, via, self.view.spec.flags.max_body_bytes)
        fields = {"redirect": redirect} if redirect else {}
        if "charset-detected" in metadata:
            fields["charset"] = metadata["charset-detected"]
        return self._warc.write(capture, subset_of(kind, capture.status), metadata, original, seed, fields)

    def discard(self) -> None:
        """Forget what is not journalled."""
        self._folder.close()

    def close(
        self, hosts: Sequence[HostState], robots: Sequence[RobotsState], closed_at: float, is_last: bool
    ) -> SegmentRef:
        """Verify and publish the files, then append the create-only journal entry that makes them count.

        Raises DamagedSegment when a file does not read back, LostRace when another attempt of the shard
        published first.
        """
        view = self.view
        warcs = [self._publish(closed) for closed in self._warc.close()]
        outcomes_path = self._write_side("outcomes", rows_to_table(self.rows, OutcomeRow))
        hosts_path = self._write_side("hosts", rows_to_table(hosts, HostState))
        robots_path = self._write_side("robots", rows_to_table(robots, RobotsState))
        cdxj_paths = {entry.path: path for entry, path in warcs}
        entry = JournalEntry(
            shard=self.shard,
            segment=self.number,
            attempt=self.attempt,
            opened_at=self.opened_at,
            closed_at=closed_at,
            warcs=tuple(entry for entry, _ in warcs),
            cdxj=cdxj_paths,
            outcomes_path=outcomes_path,
            hosts_path=hosts_path,
            robots_path=robots_path,
            planned_done=sum(row.kind == "planned" for row in self.rows),
            bytes=self.bytes,
            digests=self._digests,
            is_last=is_last,
        )
        Journal(view.folder, view.spec.round, self.shard).append(entry)
        self._folder.close()
        return SegmentRef(
            self.shard, self.number, layout.journal_path(view.spec.round, self.shard, self.number)
        )

    def _write_side(self, kind: str, table: pa.Table) -> str:
        folder = layout.journal_folder(self.view.spec.round, self.shard)
        path = f"{folder}{self.number:06d}-{secrets.token_hex(4)}-{kind}.parquet"
        self._digests[path] = parts.write_digested(self.view.storage, path, table)
        return path

    def _publish(self, closed: ClosedWarc) -> tuple[FileEntry, str]:
        faults = verify_warc(closed.local_path, closed.cdxj_lines, closed.digest)
        if faults:
            raise DamagedSegment(f"{closed.filename}: {'; '.join(faults[:3])}")
        storage = self.view.storage
        path = closed.filename
        storage.publish(str(closed.local_path), path)
        index_path = layout.work_file(
            self.view.spec.round,
            f"{closed.subset}-{self.shard:04d}-{self.number:06d}-{secrets.token_hex(4)}.cdxj",
        )
        with storage.creating(index_path) as local:
            with Path(local).open("wb") as file:
                cdxj.write_lines(file, closed.cdxj_lines)
            with Path(local).open("rb") as written:
                self._digests[index_path] = digest_of(written)
        entry = FileEntry(path, "", "warc", self.shard, 0, closed.records, closed.bytes, closed.digest)
        return entry, index_path


def subset_of(kind: str, status: int) -> str:
    """Return the file set of a capture, as Common Crawl divides them."""
    if kind == "robots":
        return "robotstxt"
    return "warc" if status == 200 else "crawldiagnostics"


def _name_part(text: str) -> str:
    """Return a crawl's name as it may stand in a file name."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in text)[:60] or "crawl"
