"""One round's fetching: what is asked, what came back, and the row that records it."""

from __future__ import annotations

from typing import NamedTuple


class Truncation:
    """Values of WARC-Truncated (WARC/1.1 section 5.13) that a fetch can produce."""

    LENGTH = "length"
    TIME = "time"
    DISCONNECT = "disconnect"


class FetchRequest(NamedTuple):
    """One GET: an absolute normalised URL and what goes with it."""

    url: str
    etag: str | None = None
    last_modified: str | None = None
    max_body_bytes: int | None = None
    insecure_tls: bool = False
    cookies: tuple[tuple[str, str], ...] = ()


class Capture(NamedTuple):
    """A response, complete or truncated. Header values are latin-1 text, order and case as received.

    ``body`` is the entity as sent: transfer coding removed, content coding kept.
    """

    url: str
    started_at: float
    finished_at: float
    ip: str | None
    request_line: str
    request_headers: tuple[tuple[str, str], ...]
    protocol: str
    status: int
    reason_phrase: str
    response_headers: tuple[tuple[str, str], ...]
    body: bytes
    truncated: str | None = None


class FetchFailure(NamedTuple):
    """No response: ``reason`` is a fixed word of the contract, ``detail`` free text."""

    url: str
    reason: str
    detail: str
    started_at: float
    finished_at: float
    ip: str | None = None


class Original(NamedTuple):
    """The stored response that a revisit record points to; never itself a revisit."""

    url: str
    date: str
    record_id: str
    payload_digest: str
    filename: str | None = None
    offset: int | None = None
    length: int | None = None


class WarcLocation(NamedTuple):
    """Where one record lies: file name relative to the crawl folder, gzip member offset and length."""

    filename: str
    offset: int
    length: int
    subset: str
    record_id: str
    date: str
    payload_digest: str | None
    mime: str | None
    mime_detected: str | None
    is_revisit: bool = False


class OutcomeRow(NamedTuple):
    """What became of one URL of the plan, one redirect hop, or one robots.txt in this round.

    The fetch step writes it into the journal's segment; later steps only add to it.
    ``kind`` is planned, hop or robots. ``body_*`` say where the payload can be read
    (for a revisit inside a shard: the original's record).
    """

    url: str
    host_key: int
    url_key: int
    kind: str
    outcome: str
    reason: str | None
    detail: str | None
    planned_url: str
    depth: int
    priority: float
    discovered_from: str | None
    retries: int
    started_at: float | None = None
    finished_at: float | None = None
    ip: str | None = None
    status: int | None = None
    redirect_url: str | None = None
    host_delay_seconds: float | None = None
    robots_rule: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    mime_detected: str | None = None
    truncated: str | None = None
    payload_digest: str | None = None
    body_bytes: int = 0
    subset: str | None = None
    warc_filename: str | None = None
    warc_record_offset: int | None = None
    warc_record_length: int | None = None
    record_id: str | None = None
    warc_date: str | None = None
    is_revisit: bool = False
    body_filename: str | None = None
    body_offset: int | None = None
    body_length: int | None = None
    retry_after_at: float | None = None
    robots_tag: str | None = None
    sequence: int = 0
    visits: int = 0
    previous_content_hash: str | None = None
    previous_status: str | None = None
    content_hash: str | None = None
    charset: str | None = None
    language: str | None = None
    duplicate_of: str | None = None
    duplicate_kind: str | None = None
    similarity: float | None = None
    in_pages: bool = False
    changed: bool = False
    original_url: str | None = None
    original_date: str | None = None
    original_record_id: str | None = None
