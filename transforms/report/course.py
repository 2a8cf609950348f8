"""Sections of a report on the course of the round: outcomes, pace, tail, hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from transforms.report.charts import bar_chart, pace_chart, span_chart, tail_chart
from transforms.report.counts import largest
from transforms.report.figures import RoundFigures
from transforms.report.hosts import HostRow
from transforms.report.html import (
    NBSP,
    Markup,
    beside,
    chart,
    folded,
    paragraph,
    percent,
    section,
    share_cell,
    table,
)
from transforms.report.pace import TAIL_SHARES, Pace
from transforms.report.words import OUTCOMES, count, millis, span

TABLE_LINES = 12
MANY = 500
"""URLs from which on the last percent of them says something."""


def outcomes_section(figures: RoundFigures) -> Markup:
    """What became of every URL of the plan, by outcome and reason, and what was left out of it."""
    manifest = figures.manifest
    counted = [(name, sum(manifest.outcomes.get(name, {}).values())) for name in _outcomes(figures)]
    counted = [(name, total) for name, total in counted if total]
    meanings = [(name, OUTCOMES.get(name, "")) for name, _ in counted]
    rows = [
        (name, None if why == name else why, number, share_cell(number, manifest.planned))
        for name, _ in counted
        for why, number in largest(Counter(manifest.outcomes[name]), len(manifest.outcomes[name]))
    ]
    left_out = table(
        "Due, but left out of the plan",
        ["Reason", "URLs"],
        largest(Counter(manifest.left_out)),
        none="no URL, all that was due was planned",
    )
    meant = folded("What the outcomes mean", table("Outcomes", ["Outcome", "Meaning"], meanings, words=2))
    svg = bar_chart("outcomes", "Planned URLs by outcome", counted) if counted else Markup("")
    return section(
        "outcomes",
        "Outcomes",
        paragraph("Each of the ", manifest.planned, " planned URLs has one outcome."),
        beside(
            Markup(chart(svg, "Planned URLs by outcome") + left_out + meant),
            table(
                "Planned URLs by outcome and reason", ["Outcome", "Reason", "URLs", "Share"], rows, words=2
            ),
        ),
    )


def _outcomes(figures: RoundFigures) -> list[str]:
    """Return all outcomes: the known ones in their order, then any other."""
    return [*OUTCOMES, *sorted(set(figures.manifest.outcomes) - set(OUTCOMES))]


def pace_section(figures: RoundFigures, pace: Pace | None) -> Markup:
    """Requests and pages a second and active hosts over time, and the curve of the last URLs."""
    if pace is None:
        return section("pace", "Pace", paragraph("This round asked no server for anything."))
    requests = sum(figures.captures.requests.values())
    facts = [
        ("requests, robots.txt and redirects too", requests),
        ("from the first request to the end of the last", span(pace.seconds)),
        ("requests a second, mean", count(requests / pace.seconds)),
        ("requests a second, most", count(float(pace.requests.max()))),
        ("pages fetched a second, mean", count(sum(figures.captures.pages.values()) / pace.seconds)),
        ("hosts asked", figures.captures.hosts_asked),
        ("hosts active at once, most", int(pace.active.max())),
    ]
    heads = ["Time", "Requests/s", "Pages/s", "Active hosts"]
    pauses = ", ".join(map(span, pace.standstills))
    pauses = f" Pauses in which nothing was asked are left out: {pauses}." if pauses else ""
    return section(
        "pace",
        "Pace",
        paragraph("A host is active between its first and its last request.", pauses),
        beside(
            chart(
                pace_chart("pace", "Requests, pages and active hosts over time", pace),
                "Requests and pages a second, and active hosts",
            ),
            Markup(
                table("The round in numbers", ["Figure", "Value"], facts)
                + folded("The chart as a table", table("Pace over time", heads, _pace_lines(pace)))
            ),
        ),
        *_tail(figures, pace),
    )


def _pace_lines(pace: Pace) -> Iterator[Sequence[object]]:
    """Return the chart as at most twelve lines: means of the rates, the most hosts."""
    groups = np.array_split(np.arange(len(pace.starts)), min(TABLE_LINES, len(pace.starts)))
    for group in groups:
        rates = (count(round(float(series[group].mean()), 2)) for series in (pace.requests, pace.pages))
        yield f"from {span(float(pace.starts[group[0]]))}", *rates, int(pace.active[group].max())


def _tail(figures: RoundFigures, pace: Pace) -> Iterator[Markup]:
    asked = sum(figures.captures.done.values())
    unasked = figures.manifest.planned - asked
    if not asked:
        return
    half, most, nearly, whole = pace.reached
    last, since = ("1", nearly) if asked >= MANY else ("10", most)
    rows = [
        (percent(share), span(at), share_cell(at, whole))
        for share, at in zip(TAIL_SHARES, pace.reached, strict=True)
    ]
    yield Markup("<h3>Tail</h3>")
    yield paragraph(
        f"Half of the {asked:,} URLs that were asked were done after {span(half)}, 90{NBSP}% after {span(most)}. "
        f"The last {last}{NBSP}% took {span(whole - since)}, which is {percent((whole - since) / whole)} of the time.",
        f" {unasked:,} planned URLs were settled without a request and are not in this curve."
        if unasked
        else "",
    )
    yield beside(
        chart(
            tail_chart("tail", "Share of the asked URLs that were done, over time", pace),
            "Share of URLs done over time",
        ),
        table("When the URLs were done", ["Share of URLs", "After", "Of the time"], rows),
    )


def hosts_section(figures: RoundFigures) -> Markup:
    """The ten slowest hosts, those that failed, and what robots.txt kept from being asked."""
    captures = figures.captures
    return section(
        "hosts",
        "Hosts",
        *_slowest(captures.slowest),
        Markup("<h3>Hosts with errors</h3>"),
        paragraph("URLs that are to be retried, or are gone for another reason than 404 and 410."),
        table(
            "The ten hosts with the most errors",
            ["Host", "Commonest reason", "Errors", "Planned", "Of planned", "404, 410", "Mean reply"],
            [(*_errors(row), row.gone, millis(row.mean_millis)) for row in captures.failing],
            words=2,
            none="no host had any",
        ),
        Markup("<h3>robots.txt</h3>"),
        beside(
            table(
                "Hosts by their last answer for robots.txt",
                ["Answer", "Meaning", "Hosts"],
                [
                    (*_robots_answer(status), number)
                    for status, number in sorted(
                        figures.tables.robots.items(), key=lambda item: (-item[1], item[0] or 0)
                    )
                ],
                words=2,
            ),
            table(
                "Hosts with the most URLs kept back",
                ["Host", "Line that decided", "URLs kept back", "Planned"],
                [(row.host, row.rule, row.denied, row.planned) for row in captures.denied],
                words=2,
                none="robots.txt kept no URL back",
            ),
        ),
    )


def _slowest(rows: Sequence[HostRow]) -> Iterator[Markup]:
    if not rows:
        return
    start = min(row.first_at for row in rows)
    spans = [(row.host, row.first_at - start, row.last_at - start) for row in rows]
    longest = max(last for _, _, last in spans)
    heads = ["Host", "Time", "Requests", "New pages", "Deferred", "Pause", "Mean reply", "Slowest reply"]
    yield Markup("<h3>Slowest hosts</h3>")
    yield beside(
        chart(
            span_chart("slowest", "Ten slowest hosts: from first to last request", spans, longest),
            "The ten slowest hosts, from first to last request",
        ),
        paragraph(
            "The hosts that were busy the longest decide when the round ends. The time of a host is about the "
            "number of its requests, times the pause that it is given and the time that it takes to reply. "
            "What did not fit before the deadline was deferred to the next round."
        ),
    )
    yield table(
        "Ten slowest hosts",
        heads,
        [(*_work(row), millis(row.mean_millis), millis(row.most_millis)) for row in rows],
    )


def _errors(row: HostRow) -> Sequence[object]:
    return row.host, row.reason, row.failed, row.planned, share_cell(row.failed, row.planned)


def _work(row: HostRow) -> Sequence[object]:
    pause = None if row.delay_seconds is None else span(row.delay_seconds)
    return row.host, span(row.seconds), row.asked, row.fetched, row.deferred, pause


def _robots_answer(status: int | None) -> tuple[str, str]:
    if status is None:
        return "no answer", "nothing may be asked for now"
    if 200 <= status < 300:
        return str(status), "its rules are obeyed"
    if 300 <= status < 400:
        return str(status), "a redirect that was not followed to an end"
    if 400 <= status < 500 and status != 429:
        return str(status), "there is none: everything may be asked"
    return str(status), "nothing may be asked for now"
