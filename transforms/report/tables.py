"""What the smaller tables of a round add up to: duplicates, pages, removed pages, robots.txt of hosts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow.compute as pc

from connectors.files import Storage
from connectors.scan import table_batches
from schemas.manifest import FileEntry
from transforms.report.captures import counts_of, floats_of
from transforms.report.counts import Histogram, bounded

SIMILARITY_EDGES = tuple(step / 50 for step in range(30, 51))
LANGUAGE_CHARACTERS = 12


@dataclass
class TableFigures:
    """Counts of a round's tables; those of single files merge to those of the round.

    ``similarities`` are of near duplicates only. ``robots`` counts hosts by the status of their robots.txt,
    None where nobody answered.
    """

    pages: int = 0
    changed: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    similarities: Histogram = field(default_factory=lambda: Histogram.over(SIMILARITY_EDGES))
    removed: Counter[str] = field(default_factory=Counter)
    robots: Counter[int | None] = field(default_factory=Counter)

    def merge(self, other: TableFigures) -> None:
        """Add the figures of other files."""
        self.pages += other.pages
        self.changed += other.changed
        for name in ("languages", "duplicates", "removed", "robots"):
            getattr(self, name).update(getattr(other, name))
        self.languages = bounded(self.languages)
        self.similarities.merge(other.similarities)


def file_figures(storage: Storage, entry: FileEntry) -> TableFigures:
    """Return the figures of one file of pages, duplicates, removed or hosts; empty ones for another table."""
    figures = TableFigures()
    if entry.table == "pages":
        for batch in table_batches(storage, entry, ["changed", "language"]):
            figures.pages += batch.num_rows
            figures.changed += pc.sum(batch.column("changed")).as_py() or 0
            language = pc.utf8_slice_codeunits(batch.column("language"), 0, LANGUAGE_CHARACTERS)
            figures.languages.update(counts_of(pc.fill_null(language, "not stated")))
    elif entry.table == "duplicates":
        for batch in table_batches(storage, entry, ["kind", "similarity"]):
            figures.duplicates.update(counts_of(batch.column("kind")))
            is_near = pc.equal(batch.column("kind"), "near")
            figures.similarities.add(floats_of(batch.column("similarity").filter(is_near)))
    elif entry.table == "removed":
        for batch in table_batches(storage, entry, ["reason"]):
            figures.removed.update(counts_of(batch.column("reason")))
    elif entry.table == "hosts":
        for batch in table_batches(storage, entry, ["robots_status", "robots_fetched_at"]):
            asked = pc.is_valid(batch.column("robots_fetched_at"))
            figures.robots.update(counts_of(batch.column("robots_status").filter(asked)))
    return figures
