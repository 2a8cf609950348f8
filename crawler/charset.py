"""Which encoding a body is in, who said so, and its text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import cchardet
import webencodings

from crawler.mime import parse_content_type
from crawler.prescan import declared_labels

DEFAULT = "windows-1252"
"""What the HTML standard falls back to; for a body that is all ASCII it is as good as any."""

DETECT_BYTES = 262_144
WIDE_BYTES = 1024
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32le"),
    (codecs.BOM_UTF32_BE, "utf-32be"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
)
# The standard's gbk decoder is gb18030's; Python's ISO-2022-JP without extensions lacks half-width katakana.
_CODECS = {
    "gbk": "gb18030",
    "iso-2022-jp": "iso2022_jp_ext",
    "utf-32le": "utf-32-le",
    "utf-32be": "utf-32-be",
}
# Names of the detector that the standard lacks, or a rare relative of an encoding that is common.
_DETECTED_AS = {"uhc": "euc-kr", "iso-8859-16": "windows-1250", "iso-8859-13": "windows-1257"}
_NON_ASCII_RUN = re.compile(rb"[^\x00-\x7f]")


class CharsetChoice(NamedTuple):
    """An encoding by its WHATWG name (lower-case; also utf-32le and utf-32be) and where the name came from.

    ``source`` is bom, header, meta (an XML declaration too), detector or default.
    """

    name: str
    source: str


def decide(body: bytes, content_type: str | None) -> CharsetChoice:
    """Return the encoding of a body (content coding removed). The same input always gives the same choice.

    Byte order mark, then the header's charset, then the document's own declaration, then a detector, then
    windows-1252 (WHATWG HTML section 13.2.3.2). Labels mean what browsers mean by them: iso-8859-1 is
    windows-1252. A label that claims 16-bit or 32-bit units for a body that has none is passed over.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return CharsetChoice(name, "bom")
    for label, source in _labels(body, content_type):
        declared = _meant_by_header(label, body) if source == "header" else _meant_by_document(label)
        if declared is not None:
            return CharsetChoice(declared, source)
    detected = _detect(body)
    return CharsetChoice(detected, "detector") if detected else CharsetChoice(DEFAULT, "default")


def decode(body: bytes, choice: CharsetChoice) -> str:
    """Return the text of a body, its byte order mark removed.

    Never raises: bytes that mean nothing become U+FFFD. The text holds no surrogates; NUL characters stay,
    for the parsers to treat by their own rules.
    """
    text = _codec(choice.name).decode(body, "replace")[0]
    return text[1:] if text.startswith("\ufeff") else text


def encoding_name(label: str) -> str | None:
    """Return the WHATWG name of an encoding label, or None if it has none (Encoding section 4.2)."""
    encoding = webencodings.lookup(label)
    return None if encoding is None else str(encoding.name)


@lru_cache(maxsize=64)
def _codec(name: str) -> codecs.CodecInfo:
    if name in _CODECS:
        return codecs.lookup(_CODECS[name])
    info: codecs.CodecInfo = webencodings.lookup(name).codec_info
    return info


def _labels(body: bytes, content_type: str | None) -> Iterator[tuple[str, str]]:
    media_type = parse_content_type(content_type)
    if media_type is not None and media_type.charset is not None:
        yield media_type.charset, "header"
    if media_type is None or media_type.essence != "text/plain":
        for label in declared_labels(body):
            yield label, "meta"


def _meant_by_header(label: str, body: bytes) -> str | None:
    """Return the encoding that a header means. Of 16-bit and 32-bit units the bytes must show themselves."""
    family = label.strip().lower()[:6]
    if family in ("utf-16", "utf-32") or str(encoding_name(label)).startswith("utf-16"):
        wide = _wide(body)
        return wide if wide is not None and (wide[:6] == family or family[:4] != "utf-") else None
    return encoding_name(label)


def _meant_by_document(label: str) -> str | None:
    """Return the encoding that a declaration means: what could be read as ASCII is not in 16-bit units."""
    name = encoding_name(label)
    if name is not None and name.startswith("utf-16"):
        return "utf-8"
    return DEFAULT if name == "x-user-defined" else name


def _detect(body: bytes) -> str | None:
    """Return the encoding that the bytes look like, None if they are all ASCII or like nothing known."""
    wide = _wide(body)
    if wide is not None:
        return wide
    first = _NON_ASCII_RUN.search(body)
    if first is None:
        return "iso-2022-jp" if b"\x1b$" in body[:DETECT_BYTES] else None
    # The bytes before the first telling one say nothing, however many they are.
    sample = body[max(0, first.start() - 256) :][:DETECT_BYTES]
    if _is_mostly_utf_8(sample):
        return "utf-8"
    guess = str(cchardet.detect(sample)["encoding"] or "").lower()
    name = encoding_name(_DETECTED_AS.get(guess, guess))
    return None if name in (None, "replacement", "utf-8") else name


def _is_mostly_utf_8(sample: bytes) -> bool:
    """Tell UTF-8, a few broken characters allowed: no other encoding forms such sequences by chance."""
    try:
        return codecs.utf_8_decode(sample, "strict", False)[1] > 0
    except UnicodeDecodeError:
        text = sample.decode("utf-8", "replace").rstrip("\ufffd")
    broken = text.count("\ufffd")
    return len(text) - len(text.encode("ascii", "ignore")) > 10 * broken


def _wide(body: bytes) -> str | None:
    """Return the encoding of text in 16-bit or 32-bit units, told by where its NUL bytes stand, or None."""
    head = body[:WIDE_BYTES]
    nuls = [head[place::4].count(0) for place in range(4)]
    share = max(1, len(head) // 4)
    if len(head) < 4 or sum(nuls) < share // 2:
        return None
    if min(nuls[:2]) >= share and nuls[3] < share // 2:
        return "utf-32be"
    if min(nuls[2:]) >= share and nuls[0] < share // 2:
        return "utf-32le"
    even, odd = nuls[0] + nuls[2], nuls[1] + nuls[3]
    if even > 8 * odd:
        return "utf-16be"
    return "utf-16le" if odd > 8 * even else None
