"""Path patterns of a policy, matched as robots.txt patterns are; and the order of parameters they count on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from crawler.query import unify_escapes
from crawler.urls import UrlParts

MAX_ORDERS = 16
_FIRST_PARAM = re.compile(r"\?([^?&*$]+)")
_LATER_PARAM = re.compile(r"&([^?&*$]+)")


class ParamPlaces:
    """The parameters that patterns speak of by their place: the first (``?sort=``) or a later (``&sort=``).

    The normal form has sorted the parameters, so the place is not the one that the site gave them.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        texts = [normal_pattern(pattern) for pattern in patterns]
        self._first = _ParamNames(name for text in texts for name in _FIRST_PARAM.findall(text))
        self._later = _ParamNames(name for text in texts for name in _LATER_PARAM.findall(text))

    def orders(self, target: str) -> Iterator[str]:
        """Yield the other orders of a URL's parameters in which a pattern may match that does not in its own.

        Each has another parameter in first place and the rest as they are; MAX_ORDERS at the most.
        """
        path, _, query = target.partition("?")
        params = query.split("&") if "&" in query else []
        # Whatever comes first instead, it is the first that has a later place now.
        others = range(1, 2) if params and self._later.has(params[0]) else ()
        places = [at for at in range(1, len(params)) if at in others or self._first.has(params[at])]
        for at in places[:MAX_ORDERS]:
            yield f"{path}?{'&'.join([params[at], *params[:at], *params[at + 1 :]])}"


class _ParamNames:
    """Beginnings of parameters: whole names where a ``=`` follows."""

    def __init__(self, beginnings: Iterable[str]) -> None:
        found = set(beginnings)
        self._whole = frozenset(text.partition("=")[0] for text in found if "=" in text)
        self._begun = tuple(sorted(text for text in found if "=" not in text))

    def has(self, param: str) -> bool:
        return param.partition("=")[0] in self._whole or param.startswith(self._begun)


def normal_pattern(pattern: str) -> str:
    """Return a pattern with its text in the form that normal URLs have: escapes unified, ASCII only."""
    return unify_escapes("".join(c if "!" <= c <= "~" else _percent(c) for c in pattern))


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))


def excludes_path(patterns: tuple[str, ...], parts: UrlParts) -> bool:
    """Return whether one of the policy's patterns matches path and query, by robots.txt's rules.

    RFC 9309 section 2.2.3: a prefix match in which ``*`` stands for any text and a last ``$`` for the end. As
    the normal form has moved the parameters about, the query is also tried with each of them in first place:
    ``/*?sort=`` matches ``/list?colour=red&sort=price``.
    """
    if any(_matches(pattern, parts.target) for pattern in patterns):
        return True
    orders = _places_in(patterns).orders(parts.target) if parts.query else ()
    return any(_matches(pattern, target) for target in orders for pattern in patterns)


@lru_cache(maxsize=1024)
def _places_in(patterns: tuple[str, ...]) -> ParamPlaces:
    return ParamPlaces(patterns)


def _matches(pattern: str, target: str) -> bool:
    """Match leftmost pieces first: linear in the target for each piece, however many stars there are."""
    anchored = pattern.endswith("$")
    first, *pieces = pattern.removesuffix("$").split("*")
    if not target.startswith(first):
        return False
    at = len(first)
    last = pieces.pop() if anchored and pieces else None
    for piece in pieces:
        found = target.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    if not anchored:
        return True
    return at == len(target) if last is None else target.endswith(last) and len(target) - len(last) >= at
