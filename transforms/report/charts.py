"""The charts of a report. Labels that come from servers are text, and short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transforms.report.html import Markup, percent, printable
from transforms.report.pace import TAIL_SHARES, Pace
from transforms.report.svg import INK, MUTED, PAPER, SERIES, drawing, svg_of
from transforms.report.words import count, span

WIDTH = 6.4
LABEL_CHARACTERS = 34
BAR_INCHES = 0.27
LABELLED_SHARES = (0.5, 0.9, 1.0)
UNITS = (("hours", 3_600.0, 3 * 3_600), ("minutes", 60.0, 180), ("seconds", 1.0, 0))


def bar_chart(name: str, title: str, rows: Sequence[tuple[str, float]]) -> Markup:
    """Return horizontal bars with their counts, in the order given, the first on top."""
    values = [value for _, value in rows]
    with drawing(WIDTH, BAR_INCHES * len(rows) + 0.15) as figure:
        axes = figure.subplots()
        axes.barh(range(len(rows)), values, height=0.62, color=SERIES[0])
        _name_rows(axes, [label for label, _ in rows])
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        axes.grid(visible=False)
        most = max(values, default=0) or 1
        axes.set_xlim(0, most * 1.16)
        for place, value in enumerate(values):
            axes.text(value + most * 0.012, place, count(value), va="center", fontsize=8.5)
        return svg_of(figure, name, title)


def column_chart(
    name: str,
    title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    axis: tuple[str, str],
    *,
    colors: Sequence[str] = SERIES,
    is_stacked: bool = False,
) -> Markup:
    """Return columns over labels: one series, several side by side, or stacked. ``axis`` names x and y."""
    places = np.arange(len(labels))
    width = 0.72 if is_stacked or len(series) == 1 else 0.76 / len(series)
    bottom = np.zeros(len(labels))
    with drawing(WIDTH, 2.5) as figure:
        axes = figure.subplots()
        for number, (label, values) in enumerate(series.items()):
            shift = 0.0 if is_stacked or len(series) == 1 else (number - (len(series) - 1) / 2) * width
            axes.bar(
                places + shift,
                values,
                width * (1 if is_stacked or len(series) == 1 else 0.94),
                bottom=bottom if is_stacked else None,
                color=colors[number],
                edgecolor=PAPER if is_stacked else "none",
                linewidth=0.6 if is_stacked else 0,
                label=label,
            )
            bottom = bottom + np.asarray(values)
        axes.set_xticks(places, labels)
        axes.set_xlabel(axis[0])
        _count_axis(axes, axis[1])
        if is_stacked or len(series) > 1:
            figure.legend(loc="outside upper left", ncols=len(series), handlelength=1, columnspacing=1.4)
        return svg_of(figure, name, title)


def histogram_chart(
    name: str, title: str, edges: Sequence[str], counts: Sequence[int], axis: tuple[str, str]
) -> Markup:
    """Return a histogram whose bounds are named; empty ends are left out."""
    filled = np.flatnonzero(counts)
    first, last = int(filled[0]), int(filled[-1]) + 1
    first, last = max(0, first - 1), min(len(counts), last + 1)
    shown, bounds = counts[first:last], edges[first : last + 1]
    with drawing(WIDTH, 2.3) as figure:
        axes = figure.subplots()
        axes.bar(np.arange(len(shown)) + 0.5, shown, 0.94, color=SERIES[0])
        every = 1 + len(bounds) // 12
        axes.set_xticks(np.arange(len(bounds))[::every], bounds[::every])
        axes.set_xlabel(axis[0])
        _count_axis(axes, axis[1])
        return svg_of(figure, name, title)


def pace_chart(name: str, title: str, pace: Pace) -> Markup:
    """Return requests and pages a second above the hosts that were active, over the time of the round."""
    unit, scale = _unit(pace.seconds)
    edges = np.append(pace.starts, pace.starts[-1] + pace.width) / scale
    with drawing(WIDTH, 4.1) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        above.stairs(pace.requests, edges, color=SERIES[0], linewidth=1.6, label="requests")
        above.stairs(pace.pages, edges, color=SERIES[1], fill=True, alpha=0.35)
        above.stairs(pace.pages, edges, color=SERIES[1], linewidth=1.6, label="pages fetched")
        above.set_ylabel("a second")
        above.set_ylim(bottom=0)
        below.stairs(pace.active, edges, color=SERIES[2], fill=True, alpha=0.35)
        below.stairs(pace.active, edges, color=SERIES[2], linewidth=1.6)
        _count_axis(below, "active hosts")
        below.set_xlabel(f"{unit} since the first request")
        below.set_xlim(0, pace.seconds / scale)
        handles, labels = above.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2, handlelength=1.4)
        return svg_of(figure, name, title)


def tail_chart(name: str, title: str, pace: Pace) -> Markup:
    """Return the share of URLs done over time, with the instants of 50, 90, 99 and 100 percent."""
    unit, scale = _unit(pace.seconds)
    seconds, shares = pace.tail
    with drawing(WIDTH, 2.9) as figure:
        axes = figure.subplots()
        axes.plot(seconds / scale, shares, color=SERIES[0], drawstyle="steps-post")
        axes.set_xlim(0, pace.seconds * 1.02 / scale)
        axes.set_ylim(0, 1.04)
        axes.set_yticks(LABELLED_SHARES, [percent(share) for share in LABELLED_SHARES])
        for share, at in zip(TAIL_SHARES, pace.reached, strict=False):
            axes.plot([at / scale] * 2, [0, share], color=MUTED, linewidth=0.8, linestyle=(0, (3, 3)))
            axes.plot([at / scale], [share], "o", color=SERIES[0], markersize=5, markeredgecolor=PAPER)
        axes.set_ylabel("share of the URLs done")
        axes.set_xlabel(f"{unit} since the first request")
        return svg_of(figure, name, title)


def span_chart(name: str, title: str, rows: Sequence[tuple[str, float, float]], seconds: float) -> Markup:
    """Return for each host the time between its first and its last request: (host, from, to), in seconds."""
    unit, scale = _unit(seconds)
    with drawing(WIDTH, BAR_INCHES * len(rows) + 0.55) as figure:
        axes = figure.subplots()
        least = seconds / 300
        for place, (_, first, last) in enumerate(rows):
            axes.barh(
                place, max(least, last - first) / scale, left=first / scale, height=0.55, color=SERIES[0]
            )
            axes.annotate(
                span(last - first),
                (max(first + least, last) / scale, place),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=MUTED,
            )
        _name_rows(axes, [host for host, _, _ in rows])
        axes.set_xlim(0, seconds * 1.16 / scale)
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.set_xlabel(f"{unit} since the first request")
        return svg_of(figure, name, title)


def _name_rows(axes: Any, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), [_label(label) for label in labels], color=INK)
    axes.set_ylim(len(labels) - 0.45, -0.55)


def _label(text: str) -> str:
    """Return a name fit for a chart: ASCII, for its font lacks most scripts, and short."""
    plain = printable(text).encode("ascii", "backslashreplace").decode("ascii")
    return plain if len(plain) <= LABEL_CHARACTERS else f"{plain[: LABEL_CHARACTERS - 1]}…"


def _count_axis(axes: Any, label: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)


def _unit(seconds: float) -> tuple[str, float]:
    return next((unit, scale) for unit, scale, least in UNITS if seconds >= least)
