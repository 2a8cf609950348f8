"""A small round over pages in many languages, for the example queries."""

from __future__ import annotations

from typing import Any

from schemas.fetch import OutcomeRow

AT = 1_790_000_000.0
WARC = "warc/000001/warc/lingua-20260922000000-00001-0000.warc.gz"
PAGES = [
    ("http://www.vatican.va/it/a.html", "it"),
    ("http://www.vatican.va/en/b.html", "en"),
    ("http://www.vatican.va/en/c.html", "en"),
    ("http://www.vatican.va/de/x/fr/y.html", "de"),
    ("http://www.vatican.va/", None),
    ("http://www.ecole.fr/caf%C3%A9/menu", "fr"),
    ("http://blog.ecole.fr/menu/", "fr"),
    ("http://www.wikipedia.org/", "en"),
    ("http://de.wikipedia.org/wiki/A", "de"),
    ("http://www.wikipedla.org/", "en"),
    ("http://xn--mnchen-3ya.de/", "de"),
    ("http://index.hu/1", "hu"),
    ("http://index.hu/2", "hu"),
    ("http://index.hu/3", "hu-HU"),
    ("http://index.hu/4", "en"),
    ("http://vefur.is/", "is"),
    ("http://vefur.is/?p=2", "is"),
    ("http://www.diari.cat/", "ca"),
    ("http://www.diari.cat/1", "ca"),
    ("http://www.diari.cat/2", "es"),
]
ICELANDIC = ["http://vefur.is/", "http://vefur.is/?p=2"]


def outcome(url: str, number: int, status: int | None = 200, **facts: Any) -> OutcomeRow:
    """Return a row of the fetch step; without a status it is of a URL that was not asked for."""
    row = OutcomeRow(url, 1, number, "planned", "fetched", None, None, url, 0, 0.5, None, 0)
    if status is not None:
        row = row._replace(
            started_at=AT + number,
            finished_at=AT + number + 1,
            status=status,
            content_type="text/html; charset=utf-8",
            mime_detected="text/html",
            payload_digest=f"{number:032d}",
            subset="warc" if status == 200 else "crawldiagnostics",
            warc_filename=WARC,
            warc_record_offset=1000 * number,
            warc_record_length=100 + number,
            charset="utf-8",
        )
    return row._replace(**facts)


def rows() -> list[OutcomeRow]:
    """Return the outcomes of a round over pages in many languages."""
    found = [outcome(url, number, language=language) for number, (url, language) in enumerate(PAGES, 1)]
    found[-1] = found[-1]._replace(charset="iso-8859-1")
    found += [
        outcome("http://a.example.com/x.pdf", 51, mime_detected="application/pdf", language="en"),
        outcome("http://a.example.com/y", 52, content_type="application/x-PDF", language="en", charset=None),
        outcome("http://a.example.com/gone", 61, 404, outcome="gone", reason="http_404"),
        outcome("http://a.example.com/lost", 62, 404, outcome="gone", reason="http_404"),
        outcome("http://example.com/", 63, 301, outcome="redirected", redirect_url="http://www.example.com/"),
        outcome("http://index.hu/5", 64, None, outcome="deferred", reason="round_deadline"),
        outcome("http://index.hu/6", 65, None, outcome="robots_denied", reason="robots_rule"),
    ]
    for number, host in enumerate(("index.hu", "vefur.is", "www.vatican.va"), 71):
        found.append(outcome(f"http://{host}/robots.txt", number, kind="robots", subset="robotstxt"))
    older = outcome("http://index.hu/robots.txt", 40, kind="robots", subset="robotstxt")
    return [*found, older]
