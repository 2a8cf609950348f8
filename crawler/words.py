"""The words of a text, in any script: what is left of it when layout and punctuation are gone."""

from __future__ import annotations

import re
import unicodedata

# Thai to Myanmar, Khmer, kana, Han: scripts written without spaces, where a character counts as a word.
_UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]").match
_PLANE = [chr(code) for code in range(0x80, 0x10000)]
_MARKS = "".join(c for c in _PLANE if unicodedata.category(c)[0] == "M")
_SPACED = "0-9a-z" + "".join(c for c in _PLANE if c.isalnum() and not _IS_UNSPACED(c))
# Beyond the first plane stand letters of old scripts up to U+1EFFF, then pictures.
_SPACED += "\U00010000-\U0001efff"
_IN_ASCII = re.compile("[a-z0-9]+").findall
_IN_PLAIN = re.compile(r"[^\W_]+").findall
_IN_ANY = re.compile(f"[{_UNSPACED}][{_MARKS}]*|[{_SPACED}{_MARKS}]+").findall
_NEEDS_CARE = re.compile(f"[{_UNSPACED}{_MARKS}]").search


def words_of(text: str) -> list[str]:
    """Return the words of a text: compatibility forms unified, case folded, punctuation dropped.

    Soft hyphens join, every other sign separates. In scripts written without spaces every character is a
    word, with its marks.
    """
    folded = unicodedata.normalize("NFKC", text.replace("\u00ad", "")).casefold()
    if folded.isascii():
        return _IN_ASCII(folded)
    return _IN_ANY(folded) if _NEEDS_CARE(folded) else _IN_PLAIN(folded)


def normalise_text(text: str) -> str:
    """Return the words of a text with single spaces: equal for texts that differ in nothing one reads.

    Idempotent. A text without words is returned as it is.
    """
    return " ".join(words_of(text)) or text
