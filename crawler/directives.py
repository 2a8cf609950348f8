"""What a page says to robots that have fetched it: meta robots and X-Robots-Tag."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MAX_CHARS = 4096
"""How much of one element or field is read."""

# Directives with a value of their own, which would read like an agent's name before a colon.
_VALUED = {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
_ANY_AGENT = ("", "robots", "*")


class Directives(NamedTuple):
    """``noindex``: keep the page out of an index. ``nofollow``: do not follow its links."""

    noindex: bool = False
    nofollow: bool = False


def read_directives(
    meta: Iterable[tuple[str, str]], header_lines: Iterable[str], agent_token: str
) -> Directives:
    """Return what holds for our agent: the sum of all prohibitions, wherever they stand.

    ``meta`` gives (name, content) of meta elements, in any case; names other than robots and our product
    token are passed over. ``header_lines`` are values of X-Robots-Tag, one field each; a part may begin with
    ``agent:``, which then holds to the end of its field. Unknown directives mean nothing.
    """
    ours = agent_token.lower()
    words: set[str] = set()
    for name, content in meta:
        if name.strip().lower() in ("robots", ours):
            words.update(part.strip().lower() for part in content[:MAX_CHARS].split(","))
    for line in header_lines:
        words.update(_header_words(line[:MAX_CHARS], ours))
    none = "none" in words
    return Directives(none or "noindex" in words, none or "nofollow" in words)


def _header_words(line: str, ours: str) -> Iterable[str]:
    agent = ""
    for part in line.split(","):
        name, colon, rest = part.strip().lower().partition(":")
        word = name
        if colon and name.strip() not in _VALUED:
            agent, word = name.strip(), rest
        if agent in _ANY_AGENT or agent == ours:
            yield word.strip()
