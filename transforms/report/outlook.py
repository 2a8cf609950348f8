"""Sections of a report on what comes next: freshness, the frontier, and where the round's files lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from transforms.report.charts import column_chart
from transforms.report.counts import largest
from transforms.report.figures import RoundFigures
from transforms.report.frontier import AGE_BOUNDS, DUE_BOUNDS, PRIORITY_BOUNDS, FrontierFigures
from transforms.report.html import (
    Markup,
    beside,
    chart,
    folded,
    paragraph,
    percent,
    section,
    share_cell,
    table,
    whole,
)
from transforms.report.svg import STEPS
from transforms.report.words import instant, size, span

UNCHANGED = {
    "http_304": "unchanged: the server said so (304)",
    "same_payload": "unchanged: the same bytes",
    "same_text": "unchanged: the same text",
}
NOT_KEPT = (
    "The frontier as it was after this round is no longer kept: the state of the newest three rounds is. "
    "Run the report after each round to have this part."
)


def freshness_section(figures: RoundFigures) -> Markup:
    """What revisits found, and how old the stored pages are, now and at their next visit."""
    reasons = figures.manifest.outcomes.get("not_modified", {})
    rows = [("changed", figures.tables.changed)]
    rows += [(UNCHANGED.get(why, f"unchanged: {why}"), number) for why, number in sorted(reasons.items())]
    total = sum(number for _, number in rows)
    revisits = table(
        "Revisits of this round that gave content",
        ["What they found", "Pages", "Share"],
        [(what, number, share_cell(number, total)) for what, number in rows if total],
        none="no page was visited again",
    )
    removed = table(
        "Pages that an index must take out",
        ["Reason", "Pages"],
        largest(figures.tables.removed),
        none="no page",
    )
    return section("freshness", "Freshness", *_ages(figures.frontier), beside(revisits, removed))


def _ages(frontier: FrontierFigures | None) -> Iterator[Markup]:
    if frontier is None:
        yield paragraph(NOT_KEPT)
        return
    if not frontier.pages:
        yield paragraph("The crawl holds no page yet.")
        return
    labels = [f"≤ {label}" for label, _ in AGE_BOUNDS[:-1]] + [f"> {AGE_BOUNDS[-2][0]}"]
    now, later = frontier.ages.tolist(), frontier.ages_next.tolist()
    yield paragraph(
        f"The crawl holds {frontier.pages:,} pages. Their last visits lie ",
        f"{span(frontier.age_seconds / frontier.pages)} back on average.",
        f" In the crawl's whole life {frontier.changes:,} of {frontier.comparisons:,} revisits "
        f"({percent(frontier.changes / frontier.comparisons)}) found a change."
        if frontier.comparisons
        else "",
    )
    svg = column_chart(
        "ages",
        "Pages by the time since their last visit",
        ["\n".join(label.rsplit(" ", 1)) for label in labels],
        {"after this round": now, "when next due": later},
        ("time since the last visit", "pages"),
    )
    yield beside(
        chart(svg, "Age of the stored pages, now and at their next visit"),
        table(
            "Age of the stored pages",
            ["Time since the last visit", "After this round", "When next due"],
            zip(labels, now, later, strict=True),
        ),
    )


def frontier_section(figures: RoundFigures) -> Markup:
    """Known URLs by priority and due date and by status; links that the rules refused."""
    rejected = {
        name.partition("/")[2]: number
        for name, number in figures.manifest.counters.items()
        if name.startswith("links_rejected/")
    }
    refused = table("Links refused", ["Reason", "Links"], largest(Counter(rejected)), none="no link")
    frontier = figures.frontier
    if frontier is None:
        return section("frontier", "Frontier", paragraph(NOT_KEPT), refused)
    statuses = [(name, n, share_cell(n, frontier.known)) for name, n in largest(frontier.statuses)]
    sums = frontier.due.sum(axis=0).tolist()
    lines = [
        (label, *line, sum(line))
        for (label, _), line in reversed(list(zip(PRIORITY_BOUNDS, frontier.due.tolist(), strict=True)))
    ]
    return section(
        "frontier",
        "Frontier",
        paragraph(
            f"After this round the crawl knows {frontier.known:,} URLs; {sums[0]:,} are due at once. "
            f"Waits count from {instant(figures.manifest.as_of)}, priorities go from 0 to 1."
        ),
        beside(
            chart(_due_chart(frontier), "Known URLs by due date and priority"),
            Markup(table("Known URLs by status", ["Status", "URLs", "Share"], statuses) + refused),
        ),
        table(
            "Known URLs by priority and due date",
            ["Priority", *(label for label, _ in DUE_BOUNDS), "All"],
            [*lines, ("all", *sums, sum(sums))],
        ),
    )


def _due_chart(frontier: FrontierFigures) -> Markup:
    classes = zip(PRIORITY_BOUNDS, STEPS, frontier.due.tolist(), strict=True)
    stacks = [(label, color, line) for (label, _), color, line in classes if sum(line)]
    return column_chart(
        "frontier",
        "Known URLs by the time until they are due and by priority",
        [label.replace("in ", "in\n") for label, _ in DUE_BOUNDS],
        {label: line for label, _, line in stacks},
        ("due", "known URLs"),
        colors=[color for _, color, _ in stacks],
        is_stacked=True,
    )


def files_section(figures: RoundFigures) -> Markup:
    """Where the outputs lie, the rounds before, and the flags of this one."""
    number, root = figures.manifest.round, figures.root
    places = [
        ("tables", whole(f"{root}/tables/*/round={number:06d}/")),
        ("index", whole(f"{root}/index/{number:06d}/")),
        ("manifest", whole(f"{root}/rounds/{number:06d}/manifest.json")),
    ]
    archives = [
        (whole(f"{root}/warc/{number:06d}/{one.subset}/"), one.files, one.records, size(one.bytes))
        for one in figures.archives
    ]
    rounds = [
        (str(one.round), instant(one.committed_at), *one[2:7], size(one.bytes_fetched))
        for one in reversed(figures.rounds)
    ]
    flags = table("Flags of this round", ["Flag", "Value"], _flags(figures), words=2)
    return section(
        "files",
        "Files, rounds, flags",
        table("WARC files", ["Folder", "Files", "Records", "Size"], archives),
        table("Other files", ["What", "Where"], places, words=2),
        table(
            "The newest rounds",
            ["Round", "Committed", "Planned", "Fetched", "Unchanged", "Pages", "New URLs", "Bytes"],
            rounds,
            words=2,
        ),
        folded("Flags of this round", flags),
    )


def _flags(figures: RoundFigures) -> Iterator[tuple[str, str]]:
    for name, value in sorted(figures.manifest.flags.items()):
        text = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
        yield f"--{name}", text
