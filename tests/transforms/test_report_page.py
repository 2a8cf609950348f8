"""The page of a report: everything from servers is text, nothing is loaded, ids are unique, tables are named."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from connectors.rounds import CrawlFolder
from tests.fakes.large_round import write_round
from tests.transforms.test_report_figures import NOW, capture, figures
from transforms.report.charts import bar_chart
from transforms.report.figures import RoundFigures, figures_of
from transforms.report.html import LONGEST, Markup, paragraph, percent, printable, shown, table
from transforms.report.reporting import page_of, write_report
from transforms.report.svg import svg_of
from transforms.report.words import binary_size, count, size, span

SCRIPT = "<script>alert('1')</script>"
HOSTILE = f"evil.example\"'&{SCRIPT}</svg></title>\u202e\x07$x^2$"
VOID = {"meta", "br", "hr", "img", "link", "input", "path", "rect", "use"}


class Page(HTMLParser):
    """Collects the elements of a page, and checks that they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> CrawlFolder:
    return write_round(tmp_path_factory.mktemp("large") / "crawl", urls=3_000, hosts=60, known=5_000)


@pytest.fixture(scope="module")
def large(folder: CrawlFolder) -> RoundFigures:
    return figures_of(folder, 3)


@pytest.fixture(scope="module")
def page(large: RoundFigures) -> Page:
    return Page(page_of(large))


def hostile(large: RoundFigures) -> RoundFigures:
    """Return figures in which every name that a server or an operator can choose is an attack."""
    times = {"at": NOW, "seconds": 2.0}
    captures = figures(
        capture(HOSTILE, outcome="failed_retry", reason=SCRIPT, **times),
        capture(HOSTILE, at=NOW + 50, content_mime_detected=HOSTILE, content_mime_type=SCRIPT, subset="warc"),
        capture(HOSTILE, outcome="robots_denied", reason="robots_rule", robots_rule=SCRIPT),
        capture("b.example", content_truncated=SCRIPT, **times),
    )
    tables = copy.deepcopy(large.tables)
    tables.languages[SCRIPT] = tables.removed[SCRIPT] = 1
    manifest = large.manifest
    changed = {
        "identity": large.identity._replace(name=HOSTILE),
        "captures": captures,
        "tables": tables,
        "root": f"/tmp/{SCRIPT}",
        "manifest": type(manifest)(
            **{
                **vars(manifest),
                "run_id": SCRIPT,
                "outcomes": {SCRIPT: {SCRIPT: 3}},
                "left_out": {SCRIPT: 1},
                "flags": {"user_agent": SCRIPT, "connect_to": [SCRIPT]},
            }
        ),
    }
    return RoundFigures(**{**vars(large), **changed})


def test_whatever_a_server_sends_is_text(large: RoundFigures) -> None:
    text = page_of(hostile(large))
    page = Page(text)
    assert page.open == []
    assert not page.names & {"script", "img", "iframe", "object", "embed", "link", "form", "base"}
    assert not [key for _, attributes in page.tags for key in attributes if key.startswith("on")]
    assert "<script" not in text and "\u202e" not in text and "\x07" not in text
    whole = "".join(page.texts)
    assert whole.count(SCRIPT) > 12
    assert "$x^2$" in whole


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    for tag, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
        assert "url(" not in re.sub(r"url\(#", "", " ".join(map(str, attributes.values())))
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_ids_are_unique_and_every_reference_has_its_target(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 100
    wanted = {(a.get("href") or "")[1:] for _, a in page.tags if a.get("href")}
    wanted |= {name for _, a in page.tags for name in re.findall(r"url\(#([^)]*)\)", str(a))}
    assert wanted <= set(ids)


def test_charts_have_a_name_and_a_table_tells_the_same(page: Page) -> None:
    charts = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(charts) == 11
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in charts)
    tables = sum(tag == "table" for tag, _ in page.tags)
    assert tables == sum(tag == "caption" for tag, _ in page.tags) > len(charts)
    assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th")


def test_every_part_of_the_report_is_there(page: Page) -> None:
    text = " ".join(page.texts)
    for words in (
        *("Planned URLs by outcome and reason", "Due, but left out of the plan", "round_budget", "9,000"),
        *("hosts active at once, most", "Share of URLs done over time", "Ten slowest hosts"),
        *("The ten hosts with the most errors", "Hosts with the most URLs kept back", "Disallow: /"),
        *("Duplicates by kind", "Answers by content type", "application/pdf", "Planned URLs by depth"),
        *("size of the stored record", "Age of the stored pages", "unchanged: the same bytes"),
        *("Known URLs by priority and due date", "Links refused", "trap_repeating_path", "--contact"),
    ):
        assert words in text, words


def test_the_same_figures_give_the_same_page(large: RoundFigures, folder: CrawlFolder) -> None:
    assert page_of(large) == page_of(figures_of(folder, 3))


def test_a_round_that_did_nothing_and_a_frontier_that_is_gone_are_said(large: RoundFigures) -> None:
    empty = type(large.manifest)(**{**vars(large.manifest), "outcomes": {}, "planned": 0, "left_out": {}})
    bare = RoundFigures(
        **{
            **vars(large),
            "manifest": empty,
            "captures": figures(),
            "tables": type(large.tables)(),
            "frontier": None,
        }
    )
    text = " ".join(Page(page_of(bare)).texts)
    assert "asked no server for anything" in text
    assert text.count("is no longer kept") == 2


def test_a_report_is_written_once(folder: CrawlFolder) -> None:
    assert write_report(folder, 3) is True
    target = Path(folder.root) / "reports/000003.html"
    before = target.stat().st_mtime_ns, target.read_bytes()
    assert write_report(folder, 3) is False
    assert (target.stat().st_mtime_ns, target.read_bytes()) == before


def test_text_is_escaped_until_it_says_that_it_is_markup() -> None:
    assert shown("<b>") == "&lt;b&gt;"
    assert shown(Markup("<b>")) == "<b>"
    assert shown(1234567) == "1,234,567"
    assert "none" in shown(None) and "none" in shown("")
    assert "<i>" not in table("<i>", ["<i>"], [["<i>"]]) + paragraph("<i>", 5)
    assert "<i>" not in table("<i>", ["a"], [], none="<i>")


def test_long_text_is_cut_and_whole_in_its_title() -> None:
    long = "x" * 500 + '"'
    cut = shown(long)
    assert cut.endswith(f"{'x' * (LONGEST - 1)}…</span>")
    assert f'title="{"x" * 500}&quot;"' in cut


def test_what_reorders_or_hides_text_is_shown_as_an_escape() -> None:
    assert printable("a\u202eb\u200bc\nd") == "a\\u202eb\\u200bc\\nd"


def test_labels_of_charts_stay_text_whatever_they_hold() -> None:
    svg = bar_chart("n", 'a "title" <b>', [('$\\frac{<&>}$ #010101 id="x" 日本', 3)])
    page = Page(svg)
    assert page.open == []
    (label,) = [text.strip() for text in page.texts if "frac" in text]
    assert label == '$\\frac{<&>}$ #010101 id="x" \\u65e…'
    assert page.tags[0][1]["aria-label"] == 'a "title" <b>'


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (count(1234567), "1,234,567"),
        (count(0.123456), "0.123"),
        (count(12.0), "12"),
        (size(999), "999 B"),
        (size(999_600), "1 MB"),
        (size(1_234_000_000), "1.23 GB"),
        (binary_size(1 << 18), "256 KiB"),
        (span(0.5), "0.5 s"),
        (span(59.4), "59 s"),
        (span(59.7), "1 min"),
        (span(3_599.9), "1 h"),
        (span(86_399), "1 d"),
        (span(61), "1 min 1 s"),
        (span(3_600), "1 h"),
        (span(3_659.9), "1 h 1 min"),
        (span(90_000), "1 d 1 h"),
        (percent(0.5), "50 %"),
        (percent(0.0123), "1.2 %"),
        (percent(0.09999), "10 %"),
        (percent(0.0001), "<0.1 %"),
        (percent(0.0), "0.0 %"),
        (percent(0.9999), "100 %"),
    ],
)
def test_numbers_are_written_for_a_person(words: str, expected: str) -> None:
    assert words.replace("\u00a0", " ") == expected


def hidden_labels(figure: Any) -> Iterator[Text]:
    """Return labels of ticks that are not drawn: out of view, or of an axis that is off."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not axis.get_visible() or not low <= tick.get_loc() <= high:
                    yield tick.label1


def test_no_text_of_a_chart_overlaps_another_or_is_cut(
    large: RoundFigures, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[str, Any]] = []

    def keep(figure: Any, name: str, title: str) -> Markup:
        drawn.append((name, figure))
        return svg_of(figure, name, title)

    monkeypatch.setattr("transforms.report.charts.svg_of", keep)
    page_of(large)
    assert len(drawn) == 11
    for name, figure in drawn:
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
        unseen = set(hidden_labels(figure))
        boxes = [
            (text.get_text(), text.get_window_extent(renderer))
            for text in figure.findobj(Text)
            if text.get_visible() and text.get_text().strip() and text not in unseen
        ]
        assert len(boxes) > 4
        for (first, one), (second, other) in combinations(boxes, 2):
            overlap = (
                min(one.x1, other.x1) - max(one.x0, other.x0),
                min(one.y1, other.y1) - max(one.y0, other.y0),
            )
            assert min(overlap) <= 0.5, (name, first, second)
        for text, box in boxes:
            inside = (
                box.x0 >= -1
                and box.y0 >= -1
                and box.x1 <= figure.bbox.x1 + 1
                and box.y1 <= figure.bbox.y1 + 1
            )
            assert inside, (name, text, box, figure.bbox)
