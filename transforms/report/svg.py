"""Figures of matplotlib as SVG that is part of a page: its fonts, its colours, its light or dark ground."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transforms.report.html import Markup

INK, MUTED, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
SERIES = ("#050501", "#050502", "#050503")
STEPS = ("#060601", "#060602", "#060603", "#060604", "#060605")
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    **{color: f"series-{number}" for number, color in enumerate(SERIES, start=1)},
    **{color: f"step-{number}" for number, color in enumerate(STEPS, start=1)},
}
"""Colours that no chart really has, and the variables of the page that take their place."""

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.labelsize": 8.5,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
}
_TAG = re.compile(r"<[^>]*>")
_NAMES = (
    (re.compile(r'\bid="([^"]*)"'), r'id="{name}-\1"'),
    (re.compile(r"url\(#([^)]*)\)"), r"url(#{name}-\1)"),
    (re.compile(r'xlink:href="#([^"]*)"'), r'href="#{name}-\1"'),
)


class NoPlottingLibrary(Exception):
    """matplotlib cannot be imported; the text says how to get it."""


@contextmanager
def drawing(width: float, height: float) -> Iterator[Any]:
    """Yield an empty matplotlib Figure of this size (inches) in the report's style.

    Raises NoPlottingLibrary when matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NoPlottingLibrary(
            f"matplotlib, which draws the plots, cannot be imported ({error}); "
            "install it with: pip install 'matplotlib>=3.8', or roundcrawl with the extra report"
        ) from error
    with matplotlib.rc_context(_STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def svg_of(figure: Any, name: str, title: str) -> Markup:
    """Return the figure as an `svg` element for a page that defines the variables.

    ``name`` keeps its ids apart from those of other figures; ``title`` is what a screen reader says. Its text
    is text, laid out for a font at least as wide as the page's. It refers to nothing outside.
    """
    target = io.StringIO()
    figure.savefig(
        target,
        format="svg",
        transparent=True,
        metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")),
    )
    text = target.getvalue()
    head, _, body = text[text.index("<svg") :].partition(">")
    box = re.search(r'viewBox="[^"]*"', head)
    body = re.sub(r"<(metadata|style)\b.*?</\1>", "", body, flags=re.DOTALL)
    body = _TAG.sub(lambda tag: _of_page(tag[0], name), body)
    body = re.sub(r"\s*\n\s*", "\n", body).strip()
    return Markup(f'<svg {box[0] if box else ""} role="img" aria-label="{html.escape(title)}">{body}')


def _of_page(tag: str, name: str) -> str:
    """Return a tag with ids, fonts and colours of the page; texts between tags are never looked at."""
    for pattern, replacement in _NAMES:
        tag = pattern.sub(replacement.format(name=name), tag)
    tag = tag.replace("font-family: 'DejaVu Sans'; ", "")
    for color, variable in _VARIABLES.items():
        tag = tag.replace(color, f"var(--{variable})")
    return tag
