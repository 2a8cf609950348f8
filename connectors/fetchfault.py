"""The one exception of the fetch path, and the text that is safe to print about it."""

from __future__ import annotations

DETAIL_CHARACTERS = 200


def clean_detail(text: object, most: int = DETAIL_CHARACTERS) -> str:
    """Return ``text`` on one line of at most ``most`` printable characters.

    Control characters, line breaks, bidirectional marks and lone surrogates become ``?``, so that nothing a
    server sent can move a terminal's cursor or forge a log line.
    """
    cut = str(text)[: most + 1]
    line = "".join(character if character.isprintable() else "?" for character in cut)
    return line if len(line) <= most else line[: most - 1] + "…"


class FetchFault(Exception):
    """A fetch that ends without a response: ``reason`` is a fixed word of the contract.

    Raised below the Fetcher only; the Fetcher returns it as a FetchFailure. ``ip`` is the address spoken to,
    when one was chosen. ``detail`` is already clean.
    """

    def __init__(self, reason: str, detail: object, ip: str | None = None) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = clean_detail(detail)
        self.ip = ip
