"""Text from pages made fit to be kept: valid Unicode, no control characters."""

from __future__ import annotations

import re

_NEVER = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff"
_CONTROLS = re.compile(f"[{_NEVER}]")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def clean_lines(text: str) -> str:
    """Return the text with every line end as a line feed, and without control characters and surrogates.

    Tabs stay. What is left can be encoded in UTF-8, put into JSON, and shown on a terminal.
    """
    return _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))


def one_line(text: str, max_chars: int) -> str:
    """Return the text on one line: runs of white space as one space, no control characters, cut to length.

    At most 16 times ``max_chars`` characters are looked at.
    """
    line = " ".join(text[: 16 * max_chars].split())
    return _CONTROLS.sub("", line)[:max_chars].rstrip()
