"""Pieces of a page in which everything is text until it says that it is markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

LONGEST = 90
NBSP = "\u00a0"


class Markup(str):
    """HTML as it is to stand in the page. Any other text is escaped."""

    __slots__ = ()


def shown(value: object) -> Markup:
    """Return a value as HTML: markup as it is, text escaped and cut at 90 characters, None as a dash.

    What is not printable (controls, marks that reorder text) stands as an escape, so that it shows.
    """
    if isinstance(value, Markup):
        return value
    if value is None or value == "":
        return Markup('<span class="none">–</span>')
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    plain = printable(text)
    if len(plain) <= LONGEST:
        return Markup(html.escape(plain))
    cut = html.escape(plain[: LONGEST - 1])
    return Markup(f'<span title="{html.escape(plain[:2000])}">{cut}…</span>')


def printable(text: str) -> str:
    """Return the text with each character that Unicode does not call printable as an escape, spaces aside."""
    return "".join(
        c if c.isprintable() or c == NBSP else c.encode("unicode_escape").decode("ascii") for c in text
    )


def whole(value: object) -> Markup:
    """Return a value as `shown` does, but text uncut."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(printable(f"{value:,}" if isinstance(value, int) else str(value))))


def share_cell(part: float, whole: float) -> Markup:
    """Return a share in percent with a bar behind it."""
    share = part / whole if whole else 0.0
    return Markup(f'<span class="bar" style="--part:{100 * share:.2f}%">{percent(share)}</span>')


def percent(share: float) -> str:
    """Return a share as a person reads it: one digit after the point below ten percent."""
    if 0 < share < 0.001:
        return f"<0.1{NBSP}%"
    return f"{100 * share:.1f}{NBSP}%" if share < 0.0995 else f"{100 * share:.0f}{NBSP}%"


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    words: int = 1,
    none: str = "none",
) -> Markup:
    """Return a table with a caption; the first ``words`` columns hold words, the others numbers.

    Without rows it is one line that says ``none``.
    """
    listed = list(rows)
    if not listed:
        return Markup(f'<p class="empty"><b>{shown(caption)}:</b> {shown(none)}</p>')
    kinds = ["" if place < words else ' class="num"' for place in range(len(heads))]
    top = "".join(
        f'<th scope="col"{kind}>{shown(head)}</th>' for head, kind in zip(heads, kinds, strict=True)
    )
    body = "".join(f"<tr>{_cells(row, kinds)}</tr>" for row in listed)
    return Markup(
        f'<div class="scroll"><table><caption>{shown(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(row: Sequence[object], kinds: Sequence[str]) -> str:
    first = f'<th scope="row"{kinds[0]}>{shown(row[0])}</th>'
    others = zip(row[1:], kinds[1:], strict=True)
    return first + "".join(f"<td{kind}>{shown(value)}</td>" for value, kind in others)


def paragraph(*pieces: object) -> Markup:
    """Return a paragraph of text, uncut, and markup."""
    return Markup(f"<p>{''.join(map(whole, pieces))}</p>")


def chart(svg: Markup, caption: str) -> Markup:
    """Return a chart with its caption above."""
    return Markup(f"<figure><figcaption>{shown(caption)}</figcaption>{svg}</figure>")


def folded(summary: str, inner: Markup) -> Markup:
    """Return what a reader unfolds by a click."""
    return Markup(f"<details><summary>{shown(summary)}</summary>{inner}</details>")


def beside(*pieces: Markup) -> Markup:
    """Return pieces side by side, below each other on a narrow page."""
    return Markup(f'<div class="beside">{"".join(f"<div>{piece}</div>" for piece in pieces)}</div>')


def section(name: str, title: str, *pieces: Markup) -> Markup:
    """Return a section that a link to its name leads to."""
    return Markup(f'<section id="{name}"><h2>{shown(title)}</h2>{"".join(pieces)}</section>')
