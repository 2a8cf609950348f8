"""The report of a committed round: one HTML file that needs nothing else to be read.

Imports no Beam, and no plotting library before a chart is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from connectors import layout
from connectors.files import AlreadyThere
from connectors.rounds import CrawlFolder
from transforms.report.content import content_section
from transforms.report.course import hosts_section, outcomes_section, pace_section
from transforms.report.figures import RoundFigures, figures_of
from transforms.report.html import Markup, paragraph, shown
from transforms.report.outlook import files_section, freshness_section, frontier_section
from transforms.report.pace import Pace, pace_of
from transforms.report.style import STYLE
from transforms.report.words import instant, size, span

SECTIONS = ("outcomes", "pace", "hosts", "content", "freshness", "frontier", "files")


def write_report(folder: CrawlFolder, number: int) -> bool:
    """Write the report of a committed round create-only; return False if it is there already.

    Raises CrawlFolderError when the round is not committed or damaged, NoPlottingLibrary without
    matplotlib; then nothing is written.
    """
    path = layout.report_path(number)
    if folder.storage.exists(path):
        return False
    try:
        folder.storage.write_new(path, page_of(figures_of(folder, number)).encode("utf-8"))
    except AlreadyThere:
        return False
    return True


def page_of(figures: RoundFigures) -> str:
    """Return the HTML page that shows a round's figures; the same figures give the same page.

    Whatever servers sent stands in it as text. Its policy forbids to load or to run anything.
    """
    pace = pace_of(figures.captures)
    parts = [
        outcomes_section(figures),
        pace_section(figures, pace),
        hosts_section(figures),
        content_section(figures),
        freshness_section(figures),
        frontier_section(figures),
        files_section(figures),
    ]
    title = f"Round {figures.manifest.round} of {figures.identity.name}"
    links = "".join(f'<a href="#{name}">{name.capitalize()}</a>' for name in SECTIONS)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{shown(title)}</title><style>{STYLE}</style></head><body>"
        f"<header><h1>{shown(title)}</h1>{_lead(figures)}{_tiles(figures, pace)}<nav>{links}</nav></header>"
        f"<main>{''.join(parts)}</main><footer>{_footer(figures)}</footer></body></html>\n"
    )


def _lead(figures: RoundFigures) -> Markup:
    manifest = figures.manifest
    started, ended = (datetime.fromisoformat(at) for at in (manifest.started_at, manifest.committed_at))
    return paragraph(
        f"Planned {instant(manifest.started_at)}, committed {instant(manifest.committed_at)}, ",
        f"after {span((ended - started).total_seconds())}.",
    )


def _tiles(figures: RoundFigures, pace: Pace | None) -> Markup:
    manifest = figures.manifest
    known = f"{figures.frontier.known:,} known" if figures.frontier else ""
    asked = f"{figures.captures.hosts_asked:,} hosts asked"
    troubles = sum(sum(manifest.outcomes.get(name, {}).values()) for name in ("failed_retry", "gone"))
    tiles: Sequence[tuple[str, str, str]] = (
        ("URLs planned", f"{manifest.planned:,}", asked),
        ("New or changed pages", f"{figures.tables.pages:,}", f"{figures.tables.changed:,} of them changed"),
        ("Unchanged pages", f"{sum(manifest.outcomes.get('not_modified', {}).values()):,}", ""),
        ("Duplicates", f"{sum(figures.tables.duplicates.values()):,}", "left out of the pages"),
        ("Failed or gone", f"{troubles:,}", ""),
        ("URLs found", f"{manifest.counters.get('urls_new', 0):,}", known),
        ("Fetched", size(manifest.counters.get("bytes_fetched", 0)), "bodies as sent"),
        (
            "Fetching took",
            span(pace.seconds) if pace else "–",
            "without pauses" if pace and pace.standstills else "",
        ),
    )
    cells = "".join(
        f"<div><dt>{shown(name)}</dt><dd>{shown(value)}<small>{shown(note) if note else ''}</small></dd></div>"
        for name, value, note in tiles
    )
    return Markup(f'<dl class="tiles">{cells}</dl>')


def _footer(figures: RoundFigures) -> Markup:
    identity, manifest = figures.identity, figures.manifest
    return paragraph(
        f"Crawl {identity.name} in {figures.root}, run {manifest.run_id}. Times are UTC. ",
        "The figures come from the tables of the round and, for the frontier, from the crawl's state after it.",
    )
