"""The body of an HTTP/1.x reply: where it ends, its bytes without transfer coding, within limits."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import NamedTuple

from connectors.fetchfault import FetchFault
from connectors.reply import ReplyHead
from schemas.fetch import Truncation

PIECE_BYTES = 64 * 1024
_CHUNK_LINE_BYTES = 4 * 1024
_FRAMING_BYTES = 64 * 1024
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n", re.DOTALL)
_NO_BODY = (204, 304)


class Framing(NamedTuple):
    """How the end of a body is known: ``length`` bytes, chunks, or (neither) the end of the connection."""

    length: int | None
    chunked: bool
    reusable: bool


class Body(NamedTuple):
    """The bytes that came and, when they are not all, the WARC-Truncated word."""

    data: bytes
    truncated: str | None
    detail: str = ""


def framing_of(head: ReplyHead) -> Framing:
    """Return how the body of this reply to a GET is delimited (RFC 9112 section 6.3).

    Content-Length values that agree count once; values that are no number mean "until the connection ends",
    as in browsers. FetchFault bad_response: values that differ, and transfer codings under ``chunked`` (the
    request offers none).
    """
    codings = [coding for coding in head.tokens("transfer-encoding") if coding != "identity"]
    if head.status in _NO_BODY:
        return Framing(0, False, _stays_open(head))
    if codings:
        if head.tokens("transfer-encoding")[-1] != "chunked":
            return Framing(None, False, False)
        if codings != ["chunked"]:
            raise FetchFault("bad_response", f"transfer codings were not asked for: {', '.join(codings)}")
        # A length beside chunks, or chunks in HTTP/1.0, is faulty framing: read it, then trust nothing after.
        sound = not head.values("content-length") and head.protocol != "HTTP/1.0"
        return Framing(None, True, sound and _stays_open(head))
    length = _content_length(head)
    return Framing(length, False, length is not None and _stays_open(head))


def _content_length(head: ReplyHead) -> int | None:
    members = {member.strip() for value in head.values("content-length") for member in value.split(",")}
    if len(members) > 1:
        raise FetchFault("bad_response", f"contradictory Content-Length: {', '.join(sorted(members))}")
    member = members.pop() if members else ""
    return int(member) if re.fullmatch("[0-9]{1,18}", member) else None


def _stays_open(head: ReplyHead) -> bool:
    options = head.tokens("connection")
    if head.protocol == "HTTP/1.0":
        return "keep-alive" in options and "close" not in options
    return "close" not in options


def read_body(stream: io.BufferedReader, framing: Framing, max_bytes: int) -> Body:
    """Return the body as sent, at most ``max_bytes`` of it; one piece more is the most ever held.

    ``truncated`` is length above ``max_bytes``, time at the deadline, disconnect when the connection ended
    before the body did. FetchFault bad_response: chunks that are none.
    """
    data = bytearray()
    try:
        for piece in _pieces(stream, framing, max_bytes):
            data += piece
            if len(data) > max_bytes:
                del data[max_bytes:]
                return Body(bytes(data), Truncation.LENGTH, f"more than {max_bytes} bytes")
    except TimeoutError as error:
        return Body(bytes(data), Truncation.TIME, str(error))
    except (OSError, EOFError) as error:
        return Body(bytes(data), Truncation.DISCONNECT, str(error))
    return Body(bytes(data), None)


def _pieces(stream: io.BufferedReader, framing: Framing, max_bytes: int) -> Iterator[bytes]:
    if framing.chunked:
        return _chunks(stream, max_bytes + _FRAMING_BYTES)
    if framing.length is not None:
        return _exactly(stream, framing.length)
    return iter(lambda: stream.read1(PIECE_BYTES), b"")


def _exactly(stream: io.BufferedReader, length: int) -> Iterator[bytes]:
    while length:
        piece = stream.read1(min(length, PIECE_BYTES))
        if not piece:
            raise EOFError(f"closed {length} bytes before the end of the body")
        length -= len(piece)
        yield piece


def _chunks(stream: io.BufferedReader, framing_bytes: int) -> Iterator[bytes]:
    """Yield the data of chunks (RFC 9112 section 7.1) while size lines and trailers fit ``framing_bytes``."""
    while size := _chunk_size(line := _framing_line(stream)):
        framing_bytes -= len(line)
        if framing_bytes < 0:
            raise FetchFault("bad_response", "more bytes of chunk framing than of body")
        yield from _exactly(stream, size)
        end = stream.readline(3)
        if end in (b"", b"\r"):
            raise EOFError("closed between chunks")
        if end not in (b"\r\n", b"\n"):
            raise FetchFault("bad_response", "chunk is longer than its size")
    # The last chunk came, so the body is whole, even when the end of the trailer section never comes.
    while (line := stream.readline(_CHUNK_LINE_BYTES)) not in (b"\r\n", b"\n", b""):
        framing_bytes -= len(line)
        if framing_bytes < 0:
            raise FetchFault("header_too_large", "endless trailer section")


def _framing_line(stream: io.BufferedReader) -> bytes:
    line = stream.readline(_CHUNK_LINE_BYTES)
    if len(line) == _CHUNK_LINE_BYTES:
        raise FetchFault("bad_response", "chunk size line is too long")
    if not line.endswith(b"\n"):
        raise EOFError("closed between chunks")
    return line


def _chunk_size(line: bytes) -> int:
    match = _CHUNK_SIZE.fullmatch(line)
    if match is None:
        raise FetchFault("bad_response", f"not a chunk size: {line[:40].decode('latin-1')}")
    return int(match[1], 16)
