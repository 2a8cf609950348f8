"""Content codings undone (RFC 9110 section 8.4.1), never past a limit."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import NamedTuple

import zstandard

# The two packages share one interface; warcio 1.8.1 fails on brotli's classes but not on brotlicffi's.
try:
    _brotli = importlib.import_module("brotlicffi")
except ImportError:
    _brotli = importlib.import_module("brotli")

MAX_ZSTD_WINDOW_BYTES = 8 << 20
"""The largest window that a sender may ask for (RFC 9659)."""

MAX_MEMBERS = 100
"""Gzip members in one body; each costs a copy of what follows, so thousands would cost the square."""

MAX_CODINGS = 5
"""Codings on top of one another; more is an attack, and counts as unknown."""


# Four bytes of zstd can stand for a block of 128 KiB, and all blocks of one call are put out at once.
_ZSTD_SLICE_BYTES = 256


class Decoded(NamedTuple):
    """A body after decoding. ``fault`` is None when all of it is there.

    Otherwise ``fault`` is unknown_coding (``body`` is as sent), damaged (``body`` is what came before
    the damage or the cut) or limit (``body`` is the first ``limit_bytes`` bytes).
    """

    body: bytes
    fault: str | None


def decode_content(body: bytes, content_encoding: str | None, limit_bytes: int) -> Decoded:
    """Return ``body`` without the codings that a Content-Encoding header names, or its first ``limit_bytes``.

    Knows gzip, deflate (with or without the zlib wrapper), br and zstd, in any case, with x- prefixes, and
    several of them in a list. Memory stays within a small multiple of the limit, whatever the body claims.
    """
    codings = [name.strip().lower() for name in (content_encoding or "").split(",")]
    codings = [name for name in codings if name not in ("", "identity")]
    if any(name not in _DECODERS for name in codings) or len(codings) > MAX_CODINGS:
        return Decoded(body, "unknown_coding")
    fault = None
    for name in reversed(codings):
        body, whole = _DECODERS[name](body, limit_bytes + 1)
        fault = fault if whole else (fault or "damaged")
    if len(body) > limit_bytes:
        return Decoded(body[:limit_bytes], "limit")
    return Decoded(body, fault)


def decoded_head(body: bytes, content_encoding: str | None, head_bytes: int) -> bytes:
    """Return the first ``head_bytes`` of the decoded body; of the body as sent when it does not decode."""
    head = decode_content(body, content_encoding, head_bytes).body
    return head if head else body[:head_bytes]


def _inflate(body: bytes, limit: int, window_bits: int) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    have = 0
    for _ in range(MAX_MEMBERS):
        inflater = zlib.decompressobj(window_bits)
        try:
            parts.append(inflater.decompress(body, limit - have))
        except zlib.error:
            return b"".join(parts) or _before_damage(body, limit, window_bits), False
        have += len(parts[-1])
        body = inflater.unused_data
        if have >= limit:
            return b"".join(parts), True
        if not inflater.eof:
            return b"".join(parts), False
        if not body.startswith(b"\x1f\x8b"):
            return b"".join(parts), True
    return b"".join(parts), False


def _before_damage(body: bytes, limit: int, window_bits: int) -> bytes:
    """Return what a damaged stream gives before its damage; in small steps, since zlib drops a failed one."""
    inflater = zlib.decompressobj(window_bits)
    parts: list[bytes] = []
    have = 0
    for start in range(0, len(body), 64):
        try:
            parts.append(inflater.decompress(body[start : start + 64], limit - have))
        except zlib.error:
            break
        have += len(parts[-1])
        if have >= limit:
            break
    return b"".join(parts)


def _gunzip(body: bytes, limit: int) -> tuple[bytes, bool]:
    return _inflate(body, limit, 16 + zlib.MAX_WBITS)


def _undeflate(body: bytes, limit: int) -> tuple[bytes, bool]:
    wrapped = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _inflate(body, limit, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)


def _unbrotli(body: bytes, limit: int) -> tuple[bytes, bool]:
    decoder = _brotli.Decompressor()
    out = bytearray()
    data = body
    try:
        while len(out) < limit and not decoder.is_finished():
            piece = decoder.process(data, output_buffer_limit=limit - len(out))
            data = b""
            if not piece and decoder.can_accept_more_data():
                return bytes(out), decoder.is_finished()
            out += piece
    except _brotli.error:
        return bytes(out), False
    return bytes(out), True


def _unzstd(body: bytes, limit: int) -> tuple[bytes, bool]:
    opener = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES)
    frame = opener.decompressobj()
    out = bytearray()
    try:
        for start in range(0, len(body), _ZSTD_SLICE_BYTES):
            piece = body[start : start + _ZSTD_SLICE_BYTES]
            while piece and len(out) < limit:
                frame = opener.decompressobj() if frame.eof else frame
                out += frame.decompress(piece)
                piece = frame.unused_data if frame.eof else b""
            if len(out) >= limit:
                return bytes(out[:limit]), True
    except zstandard.ZstdError:
        return bytes(out), False
    return bytes(out), frame.eof


_DECODERS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "x-deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
