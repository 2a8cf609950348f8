"""The head of an HTTP/1.x reply: status line and header fields, exactly as received, within limits."""

from __future__ import annotations

import io
import re
from typing import NamedTuple

from connectors.fetchfault import FetchFault
from connectors.limits import FetchLimits

_STATUS_LINE = re.compile(rb"(HTTP/1\.[0-9]) ([1-9][0-9]{2})(?: (.*))?", re.DOTALL)
_CONTROLS = bytes(byte for byte in range(32) if byte != 9) + b"\x7f"
_TO_SPACES = bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS))
_LEADING_EMPTY_LINES = 2


class ReplyHead(NamedTuple):
    """Status line and header fields; text is latin-1, order and case are the server's."""

    protocol: str
    status: int
    reason_phrase: str
    headers: tuple[tuple[str, str], ...]

    def values(self, name: str) -> list[str]:
        """Return the values of all fields with this lower-case name, in order."""
        return [value for key, value in self.headers if key.lower() == name]

    def tokens(self, name: str) -> list[str]:
        """Return the lower-case members of a comma-separated list field (RFC 9110 section 5.6.1)."""
        members = (member.strip().lower() for value in self.values(name) for member in value.split(","))
        return [member for member in members if member]


def read_head(stream: io.BufferedReader, limits: FetchLimits) -> ReplyHead:
    """Return the head of the final response, after at most ``max_interim_responses`` interim ones.

    Read as RFC 9112 sections 2.2, 4 and 5 allow a recipient: a lone LF ends a line, up to two empty lines may
    come first, folded values are joined by a space, control characters in values become spaces, and a line
    without a colon is passed over as browsers do. FetchFault reasons: bad_response for anything else that is
    not HTTP/1.x (a bare CR, HTTP/0.9, an upgrade nobody asked for, more interim responses), header_too_large,
    disconnect. Raises TimeoutError and OSError of the stream.
    """
    lines = _Lines(stream, limits)
    for _ in range(limits.max_interim_responses + 1):
        head = lines.head()
        if head.status == 101:
            raise FetchFault("bad_response", "101 Switching Protocols was not asked for")
        if head.status >= 200:
            return head
    raise FetchFault("bad_response", f"more than {limits.max_interim_responses} interim responses")


class _Lines:
    """Lines of one stream against one budget of bytes and fields."""

    def __init__(self, stream: io.BufferedReader, limits: FetchLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._bytes_left = limits.max_header_bytes
        self._fields_left = limits.max_headers

    def head(self) -> ReplyHead:
        """Return the next status line with its fields."""
        protocol, status, phrase = self._status()
        return ReplyHead(protocol, status, phrase, tuple(self._fields()))

    def _status(self) -> tuple[str, int, str]:
        line = self._line(first=True)
        for _ in range(_LEADING_EMPTY_LINES):
            line = line or self._line(first=True)
        match = _STATUS_LINE.fullmatch(line)
        if match is None:
            raise FetchFault("bad_response", f"not an HTTP/1.x status line: {line[:80].decode('latin-1')}")
        protocol, status, phrase = match.groups(default=b"")
        return protocol.decode("ascii"), int(status), _text(phrase)

    def _fields(self) -> list[tuple[str, str]]:
        fields: list[tuple[str, str]] = []
        # The status line stands before the first field, and nothing may continue it.
        continues: bool | None = None
        while line := self._line():
            if line[0] in b" \t":
                if continues is None:
                    raise FetchFault("bad_response", "white space between status line and header fields")
                if continues:
                    name, value = fields[-1]
                    fields[-1] = (name, f"{value} {_text(line)}".strip())
                continue
            self._fields_left -= 1
            if self._fields_left < 0:
                raise FetchFault("header_too_large", f"more than {self._limits.max_headers} header fields")
            name_bytes, colon, value_bytes = line.partition(b":")
            name_bytes = name_bytes.rstrip(b" \t")
            continues = bool(colon and name_bytes)
            if continues:
                if b"\t" in name_bytes or name_bytes.translate(_TO_SPACES) != name_bytes:
                    raise FetchFault("bad_response", "control character in a header name")
                fields.append((name_bytes.decode("latin-1"), _text(value_bytes)))
        return fields

    def _line(self, first: bool = False) -> bytes:
        line = self._stream.readline(self._bytes_left + 1)
        if len(line) > self._bytes_left:
            raise FetchFault("header_too_large", f"more than {self._limits.max_header_bytes} bytes of header")
        self._bytes_left -= len(line)
        if not line.endswith(b"\n"):
            if first and line and not line.startswith(b"HTTP/"):
                raise FetchFault("bad_response", f"not HTTP/1.x: {line[:80].decode('latin-1')}")
            where = "inside the header" if line or not first else "without an answer"
            raise FetchFault("disconnect", f"closed {where}")
        line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        if b"\r" in line:
            raise FetchFault("bad_response", "bare CR in the header")
        return line


def _text(value: bytes) -> str:
    return value.translate(_TO_SPACES).strip(b" \t").decode("latin-1")
