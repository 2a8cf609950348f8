"""From an answer to its WARC record and its outcome rows: revisits, body locations, redirects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectors.warc_records import sha1
from crawler.visit import ROBOTS, Ask
from schemas.fetch import Capture, FetchFailure, Original, OutcomeRow, WarcLocation
from schemas.state import UrlState
from transforms.segment import KnownPayloads, SegmentRecorder, original_of, subset_of


def recorded_rows(
    recorder: SegmentRecorder,
    payloads: KnownPayloads,
    items: Mapping[str, UrlState],
    ask: Ask,
    answer: Capture | FetchFailure,
    rows: Sequence[OutcomeRow],
) -> list[OutcomeRow]:
    """Store the capture, if there is one, and return the rows with where it lies.

    A payload that the crawl already holds becomes a revisit record: of the URL's own last response, or of
    another URL's in this shard and round. An unchanged page is not_modified, unless it was a
    duplicate: that one is read again, since the page it lost to may be gone by now.
    """
    if isinstance(answer, FetchFailure):
        return list(rows)
    state = items.get(answer.url) if ask.kind != ROBOTS else None
    own = own_row(ask, rows)
    original = _original(payloads, state, answer, ask.kind)
    redirect = own.redirect_url if own is not None else None
    location = recorder.store(answer, ask.kind, f"{ask.kind}-{ask.ticket}", original, redirect, ask.via)
    if not location.is_revisit and is_original(answer, ask.kind):
        payloads.remember(_as_original(answer, location))
    return [_located(row, answer, location, original, state) if row is own else row for row in rows]


def own_row(ask: Ask, rows: Sequence[OutcomeRow]) -> OutcomeRow | None:
    """Return the row that records this request itself."""
    return next((row for row in rows if row.kind == ask.kind and row.url == ask.request.url), None)


def is_original(capture: Capture, kind: str) -> bool:
    """Return whether later captures may point to this one: a whole page with a body."""
    return subset_of(kind, capture.status) == "warc" and bool(capture.body) and capture.truncated is None


def _original(
    payloads: KnownPayloads, state: UrlState | None, capture: Capture, kind: str
) -> Original | None:
    own = original_of(state)
    if capture.status == 304:
        return own
    if not is_original(capture, kind):
        return None
    digest = sha1(capture.body)
    if own is not None and own.payload_digest == digest:
        return own
    return payloads.find(digest)


def _as_original(capture: Capture, location: WarcLocation) -> Original:
    return Original(
        url=capture.url,
        date=location.date,
        record_id=location.record_id,
        payload_digest=location.payload_digest or "",
        filename=location.filename,
        offset=location.offset,
        length=location.length,
    )


def _located(
    row: OutcomeRow,
    capture: Capture,
    location: WarcLocation,
    original: Original | None,
    state: UrlState | None,
) -> OutcomeRow:
    source = original if location.is_revisit and original is not None else None
    row = row._replace(
        mime_detected=location.mime_detected,
        payload_digest=location.payload_digest,
        body_bytes=len(capture.body),
        subset=location.subset,
        warc_filename=location.filename,
        warc_record_offset=location.offset,
        warc_record_length=location.length,
        record_id=location.record_id,
        warc_date=location.date,
        is_revisit=location.is_revisit,
        body_filename=source.filename if source else location.filename,
        body_offset=source.offset if source else location.offset,
        body_length=source.length if source else location.length,
        original_url=source.url if source else None,
        original_date=source.date if source else None,
        original_record_id=source.record_id if source else None,
    )
    is_unchanged = (
        state is not None
        and row.outcome == "fetched"
        and row.payload_digest is not None
        and row.payload_digest == state.payload_digest
        and state.duplicate_of is None
    )
    return row._replace(outcome="not_modified", reason="same_payload") if is_unchanged else row
