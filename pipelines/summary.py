"""What a round brought, for the person who ran it."""

from __future__ import annotations

from connectors import layout
from connectors.rounds import CrawlFolder
from schemas.manifest import Manifest

UNITS = ("B", "KB", "MB", "GB", "TB")


def text(folder: CrawlFolder, manifest: Manifest, seconds: float) -> str:
    """Return the summary of a committed round: outcomes by reason, counts, time, and where things lie."""
    rows = _rows(manifest)
    lines = [f"round {manifest.round}: {manifest.planned} URLs planned, {seconds:.1f} s"]
    for outcome, reasons in sorted(manifest.outcomes.items()):
        details = ", ".join(f"{why} {count}" for why, count in sorted(reasons.items()) if why != outcome)
        lines.append(f"  {outcome:<14}{sum(reasons.values()):>9}" + (f"  ({details})" if details else ""))
    for why, count in sorted(manifest.left_out.items()):
        lines.append(f"  left out: {why} {count}")
    counters = manifest.counters
    lines.append(
        f"  pages new {rows.get('pages', 0)}, duplicates {rows.get('duplicates', 0)}, "
        f"links found {counters.get('links_found', 0)}, URLs new {counters.get('urls_new', 0)}, "
        f"fetched {size(counters.get('bytes_fetched', 0))}"
    )
    lines += [f"  {name}: {folder.root}/{path}" for name, path in _places(manifest)]
    return "\n".join(lines)


def _rows(manifest: Manifest) -> dict[str, int]:
    rows: dict[str, int] = {}
    for entry in manifest.files:
        rows[entry.table] = rows.get(entry.table, 0) + entry.rows
    return rows


def _places(manifest: Manifest) -> list[tuple[str, str]]:
    return [
        ("WARC files", layout.warc_folder(manifest.round)),
        ("index", f"index/{manifest.round:06d}/"),
        ("tables", f"tables/*/round={manifest.round:06d}/"),
        ("manifest", layout.manifest_path(manifest.round)),
    ]


def size(count: float) -> str:
    """Return a number of bytes for a person."""
    unit = 0
    while count >= 1000 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.1f} {UNITS[unit]}" if unit else f"{count:.0f} B"
