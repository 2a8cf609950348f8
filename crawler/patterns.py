"""Path patterns of a policy, matched as robots.txt patterns are."""

from __future__ import annotations

from crawler.query import unify_escapes
from crawler.urls import UrlParts

MAX_PARAMS_TRIED = 64


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
    return any(_matches(pattern, target) for pattern in patterns for target in _targets(pattern, parts))


def _targets(pattern: str, parts: UrlParts) -> list[str]:
    if parts.query is None or "?" not in pattern or "&" not in parts.query:
        return [parts.target]
    params = parts.query.split("&")[:MAX_PARAMS_TRIED]
    return [parts.target, *(f"{parts.path}?{param}" for param in params)]


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
