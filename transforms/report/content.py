"""The section of a report on what the round brought: duplicates, types, depths, sizes, download times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from transforms.report.captures import DEEPEST, MILLIS_EDGES, SIZE_EDGES
from transforms.report.charts import bar_chart, column_chart, histogram_chart
from transforms.report.counts import LISTED, Histogram, largest
from transforms.report.figures import RoundFigures
from transforms.report.html import Markup, beside, chart, folded, paragraph, section, share_cell, table
from transforms.report.tables import SIMILARITY_EDGES
from transforms.report.words import binary_size, millis, size

QUANTILES = ((0.5, "half are below"), (0.9, "90 % are below"), (0.99, "99 % are below"))


def content_section(figures: RoundFigures) -> Markup:
    """Duplicates by kind, content types, depths, sizes, download times."""
    return section(
        "content",
        "Content",
        *_duplicates(figures),
        *_types(figures),
        *_depths(figures),
        *_histogram(
            "sizes",
            "Sizes",
            "Answers of status 200 as they are stored: the WARC record, compressed. A revisit stores headers only.",
            figures.captures.sizes,
            [binary_size(edge) for edge in SIZE_EDGES],
            ("size of the stored record", "records"),
            size,
        ),
        *_histogram(
            "millis",
            "Download times",
            "From the start of a request to the end of its reply, robots.txt and redirects too.",
            figures.captures.millis,
            [millis(edge) for edge in MILLIS_EDGES],
            ("time of the download", "requests"),
            millis,
        ),
    )


def _duplicates(figures: RoundFigures) -> Iterator[Markup]:
    tables, reasons = figures.tables, figures.manifest.outcomes.get("not_modified", {})
    looked_at = tables.pages + sum(tables.duplicates.values())
    rows = [
        (kind, number, share_cell(number, looked_at)) for kind, number in sorted(tables.duplicates.items())
    ]
    near = tables.similarities
    yield Markup("<h3>Duplicates</h3>")
    yield paragraph(
        f"Copies of another page, left out of the table of pages: {sum(tables.duplicates.values()):,}. "
        f"Kept as new or changed: {tables.pages:,}. "
        f"The same as at the visit before: {sum(reasons.values()):,}."
    )
    kinds = table("Duplicates by kind", ["Kind", "Pages", "Share of new content"], rows)
    if not near.values:
        yield kinds
        return
    edges = [f"{edge:.2f}" for edge in SIMILARITY_EDGES]
    yield beside(
        chart(
            histogram_chart(
                "similarity",
                "Near duplicates by similarity",
                edges,
                near.counts.tolist(),
                ("similarity", "pages"),
            ),
            "Near duplicates by estimated similarity to the page that was kept",
        ),
        Markup(kinds + _filled("Near duplicates by similarity", "Similarity", "Pages", edges, near)),
    )


def _types(figures: RoundFigures) -> Iterator[Markup]:
    captures = figures.captures
    listed = largest(captures.types)
    total = sum(captures.types.values())
    yield Markup("<h3>Content types</h3>")
    if not total:
        yield paragraph("No answer of status 200.")
        return
    yield paragraph(
        "Answers of status 200 by what their first bytes show. "
        f"Those whose server names another type: {sum(captures.mislabelled.values()):,}."
    )
    yield beside(
        chart(
            bar_chart("types", "Answers by content type", listed),
            "Answers by content type",
        ),
        table(
            f"Content types{', the ten commonest' if len(captures.types) > LISTED else ''}",
            ["Type", "Answers", "Share", "Stored", "Labelled otherwise"],
            [
                (name, n, share_cell(n, total), size(captures.type_bytes[name]), captures.mislabelled[name])
                for name, n in listed
            ],
        ),
    )
    yield beside(
        table("Cut short", ["Cause", "Answers"], largest(captures.truncated), none="no answer"),
        table(
            "Pages by the language they state",
            ["Language", "Pages"],
            largest(figures.tables.languages),
            none="no page",
        ),
    )


def _depths(figures: RoundFigures) -> Iterator[Markup]:
    depths = figures.captures.depths
    total = sum(depths.values())
    if not total:
        return
    steps = range(max(depths) + 1)
    labels = [f"{step}+" if step == DEEPEST else str(step) for step in steps]
    values = [depths[step] for step in steps]
    yield Markup("<h3>Depth</h3>")
    yield beside(
        chart(
            column_chart(
                "depth",
                "Planned URLs by depth",
                labels,
                {"URLs": values},
                ("links from the nearest seed", "planned URLs"),
            ),
            "Planned URLs by depth",
        ),
        table(
            "Planned URLs by depth",
            ["Depth", "URLs", "Share"],
            [(label, n, share_cell(n, total)) for label, n in zip(labels, values, strict=True)],
        ),
    )


def _histogram(
    name: str,
    title: str,
    lead: str,
    found: Histogram,
    edges: Sequence[str],
    axis: tuple[str, str],
    words: Callable[[float], str],
) -> Iterator[Markup]:
    if not found.values:
        return
    facts = [(label, words(found.quantile(share))) for share, label in QUANTILES]
    facts += [("mean", words(found.mean)), ("largest", words(found.largest))]
    yield Markup(f"<h3>{title}</h3>")
    yield paragraph(lead)
    yield beside(
        chart(
            histogram_chart(name, title, edges, found.counts.tolist(), axis),
            f"{title}: {axis[1]} by {axis[0]}",
        ),
        Markup(
            table(f"{title} in numbers", ["Of " + f"{found.values:,} {axis[1]}", "Value"], facts)
            + _filled(title, axis[0].capitalize(), axis[1].capitalize(), edges, found)
        ),
    )


def _filled(caption: str, what: str, unit: str, edges: Sequence[str], found: Histogram) -> Markup:
    """Return the bins of a histogram that hold anything as a table that can be unfolded."""
    rows = [
        (f"{edges[place]} – {edges[place + 1]}", n, share_cell(n, found.values))
        for place, n in enumerate(found.counts.tolist())
        if n
    ]
    return folded("The chart as a table", table(caption, [what, unit, "Share"], rows))
