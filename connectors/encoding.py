"""Content codings undone piece by piece, so that no bomb is ever unpacked further than asked."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple, cast

import brotli
import zstandard

from connectors.fetchfault import clean_detail

ACCEPTED = "gzip, deflate"
"""What requests offer. br and zstd are undone when sent all the same, but readers of WARC files often cannot."""

PIECE_BYTES = 64 * 1024
MOST_CODINGS = 5
MOST_MEMBERS = 1_000
_INPUT_BYTES = 16 * 1024
# RFC 9659: no decoder need accept a zstd window above 8 MB in HTTP.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
_GZIP, _ZLIB, _RAW = 31, 15, -15


class DecodedBody(NamedTuple):
    """A body without its content codings.

    ``data`` is what could be decoded, at most the cap; ``truncated`` tells that there was more;
    ``error`` why decoding stopped early. ``consumed_bytes`` counts the encoded bytes looked at. A body whose
    first coding fails before any byte came out was not encoded at all: ``data`` is then the body itself, with
    ``error`` set.
    """

    data: bytes
    truncated: bool
    error: str | None
    consumed_bytes: int


class _Undecodable(Exception):
    """The encoded bytes are damaged, cut short, or in no known coding."""


class _Overflow(Exception):
    """One of several nested codings gave more than the cap."""


Pieces = Iterator[bytes]


def codings_of(content_encoding: str | None) -> tuple[str, ...]:
    """Return the codings of a Content-Encoding value as applied, in order, lower case, without identity."""
    members = (member.strip().lower() for member in (content_encoding or "").split(","))
    return tuple(member for member in members if member not in ("", "identity"))


def decode_body(body: bytes, content_encoding: str | None, max_bytes: int) -> DecodedBody:
    """Return ``body`` without its content codings (RFC 9110 section 8.4), at most ``max_bytes``.

    Knows gzip (several members too), deflate (zlib or raw), br and zstd, up to five nested. Memory is bounded
    by ``max_bytes`` plus one piece and window for each coding, at every level of nesting. Never raises for
    any bytes.
    """
    data = bytearray()
    source = _Source(body)
    codings = codings_of(content_encoding) if body else ()
    try:
        for piece in decode_pieces(source, codings, max_bytes):
            data += piece
            if len(data) > max_bytes:
                return DecodedBody(bytes(data[:max_bytes]), True, None, source.consumed_bytes)
    except _Overflow:
        return DecodedBody(bytes(data), True, None, source.consumed_bytes)
    except _Undecodable as error:
        if not data:
            return DecodedBody(body[:max_bytes], len(body) > max_bytes, clean_detail(error), len(body))
        return DecodedBody(bytes(data), False, clean_detail(error), source.consumed_bytes)
    return DecodedBody(bytes(data), False, None, source.consumed_bytes)


def bytes_before_overflow(body: bytes, content_encoding: str | None, max_bytes: int) -> int | None:
    """Return how many bytes of ``body`` decode to just over ``max_bytes``, None when all of them do not.

    Holds one piece at a time. A damaged body counts as far as it decodes.
    """
    source = _Source(body)
    decoded_bytes = 0
    try:
        for piece in decode_pieces(source, codings_of(content_encoding), max_bytes):
            decoded_bytes += len(piece)
            if decoded_bytes > max_bytes:
                return source.consumed_bytes
    except _Overflow:
        return source.consumed_bytes
    except _Undecodable:
        return None
    return None


class _Source:
    """The encoded body in pieces, counting how far it was read."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.consumed_bytes = 0

    def __iter__(self) -> _Source:
        return self

    def __next__(self) -> bytes:
        start = self.consumed_bytes
        if start >= len(self._body):
            raise StopIteration
        self.consumed_bytes = min(start + _INPUT_BYTES, len(self._body))
        return self._body[start : self.consumed_bytes]


def decode_pieces(pieces: Pieces, codings: tuple[str, ...], max_bytes: int) -> Pieces:
    """Yield ``pieces`` with all ``codings`` undone, the last first; levels between stop at ``max_bytes``."""
    if len(codings) > MOST_CODINGS:
        raise _Undecodable(f"more than {MOST_CODINGS} content codings")
    for depth, coding in enumerate(reversed(codings)):
        decoder = _DECODERS.get(coding)
        if decoder is None:
            raise _Undecodable(f"unknown content coding {coding}")
        pieces = decoder(pieces)
        if depth + 1 < len(codings):
            pieces = _at_most(pieces, max_bytes)
    return pieces


def _at_most(pieces: Pieces, max_bytes: int) -> Pieces:
    for piece in pieces:
        max_bytes -= len(piece)
        if max_bytes < 0:
            raise _Overflow
        yield piece


def _gunzip(pieces: Pieces) -> Pieces:
    """Yield the members of a gzip file (RFC 1952 section 2.2); what follows the last is padding."""
    rest = next(pieces, b"")
    for members in range(MOST_MEMBERS):
        inflated = _Inflated(pieces, _GZIP)
        try:
            yield from inflated.run(rest)
        except _Undecodable:
            if members and not inflated.produced:
                return
            raise
        rest = inflated.rest or next(pieces, b"")
        if not rest.strip(b"\0"):
            return
    raise _Undecodable(f"more than {MOST_MEMBERS} gzip members")


def _undeflate(pieces: Pieces) -> Pieces:
    """Yield a zlib stream (RFC 1950), or a bare deflate stream as many servers send under the same name."""
    first = next(pieces, b"")
    while first and len(first) < 2:
        more = next(pieces, b"")
        if not more:
            break
        first += more
    zlib_header = len(first) >= 2 and first[0] & 0x0F == 8 and int.from_bytes(first[:2], "big") % 31 == 0
    yield from _Inflated(pieces, _ZLIB if zlib_header else _RAW).run(first)


class _Inflated:
    """One deflate stream out of ``pieces``; afterwards ``rest`` holds what followed it in the last piece."""

    def __init__(self, pieces: Pieces, window_bits: int) -> None:
        self._pieces = pieces
        self._inflater = zlib.decompressobj(window_bits)
        self.rest = b""
        self.produced = False

    def run(self, first: bytes) -> Pieces:
        """Yield the decoded pieces, each at most PIECE_BYTES."""
        piece = first
        while piece:
            before = self._inflater.copy()
            try:
                decoded = self._inflater.decompress(piece, PIECE_BYTES)
            except zlib.error as error:
                yield from self._salvage(before, piece)
                raise _Undecodable(error) from error
            if decoded:
                self.produced = True
                yield decoded
            if self._inflater.eof:
                self.rest = self._inflater.unused_data
                return
            piece = self._inflater.unconsumed_tail or next(self._pieces, b"")
        while decoded := self._inflater.decompress(b"", PIECE_BYTES):
            yield decoded
        if self._inflater.eof:
            return
        raise _Undecodable("the encoded body ends early")

    def _salvage(self, inflater: zlib._Decompress, piece: bytes) -> Pieces:
        # zlib keeps back what a failing call had decoded, so go again to the very byte that fails.
        salvaged = bytearray()
        try:
            for index in range(len(piece)):
                salvaged += inflater.decompress(piece[index : index + 1], PIECE_BYTES)
                while inflater.unconsumed_tail:
                    salvaged += inflater.decompress(inflater.unconsumed_tail, PIECE_BYTES)
                if len(salvaged) >= PIECE_BYTES:
                    break
        except zlib.error:
            pass
        if salvaged:
            self.produced = True
            yield bytes(salvaged)


def _unbrotli(pieces: Pieces) -> Pieces:
    """Yield a brotli stream (RFC 7932)."""
    decompressor = brotli.Decompressor()
    try:
        for piece in pieces:
            decoded = decompressor.process(piece, output_buffer_limit=PIECE_BYTES)
            # It says it can take more input while output still waits inside: ask until nothing comes.
            while decoded:
                yield decoded
                decoded = decompressor.process(b"", output_buffer_limit=PIECE_BYTES)
            if decompressor.is_finished():
                return
    except brotli.error as error:
        raise _Undecodable(error) from error
    raise _Undecodable("the encoded body ends early")


def _unzstd(pieces: Pieces) -> Pieces:
    """Yield the frames of a zstd stream (RFC 8878)."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    reader = decompressor.stream_reader(
        cast(IO[bytes], _File(pieces)), read_size=_INPUT_BYTES, read_across_frames=True
    )
    try:
        while piece := reader.read(PIECE_BYTES):
            yield piece
    except zstandard.ZstdError as error:
        raise _Undecodable(error) from error


class _File:
    """``pieces`` as the file object that zstandard reads from."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, b"" at the end."""
        piece = self._rest or next(self._pieces, b"")
        self._rest = piece[size:]
        return piece[:size]


_DECODERS: dict[str, Callable[[Pieces], Pieces]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
