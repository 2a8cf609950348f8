"""What is cut before a parser sees it, and what must stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler import nesting
from crawler.html import read_html
from crawler.nesting import MAX_ATTRIBUTES, MAX_DEPTH, shallow
from crawler.text import main_text

PAGE = "https://a.example/"
MANY_CHARS = 400_000


def links(html: str) -> list[str]:
    return [link.target_url for link in read_html(html, PAGE).links]


def test_an_ordinary_document_stays_as_it_is() -> None:
    html = (
        "<html><body>" + "<div class='a'><p>text <a href=/x>x</a></div>" * 1000 + "<script>" + "x<y " * 9000
    )
    assert shallow(html) is html
    many = "<ul>" + "<li class=x><b>one</b> <a href='/1'>x</a><br/>" * 5000 + "</ul>"
    assert shallow(many) == many


def test_text_and_links_stay_where_nesting_is_cut() -> None:
    html = "<html><body>" + "".join(f"<div>t{n} <a href=/{n}>x</a>" for n in range(6000))
    flat = shallow(html)
    assert flat.count("<div>") == MAX_DEPTH - 2
    assert links(flat) == [f"{PAGE}{n}" for n in range(5000)]
    assert "t5999" in main_text(flat).text
    closed = html + "</div>" * 6000 + "<div>after</div>"
    assert shallow(closed).count("</div>") == MAX_DEPTH - 1
    assert shallow(closed).endswith("<div>after</div>")


def test_end_tags_of_nothing_do_not_hide_how_deep_it_is() -> None:
    assert shallow("<div></x><div></p>" * 50_000).count("<div>") == MAX_DEPTH
    assert shallow("<div><object></div>" * 50_000).count("<object>") <= MAX_DEPTH


def test_a_link_ends_where_the_next_begins() -> None:
    html = "".join(f"<a href=/{n}>x" for n in range(12_000))
    flat = shallow(html)
    assert flat.count("</a>") == 11_999
    assert links(flat) == links(html)


@pytest.mark.parametrize("attribute", ["a{0}=1", "a{0}", "a{0}='>'", 'a{0}="<"', "a{0} = x"])
def test_attributes_beyond_the_limit_are_cut(attribute: str) -> None:
    attributes = " ".join(attribute.format(n) for n in range(10_000))
    flat = shallow(f"<p>before<a href=/x {attributes}>inside</a><p>after<a href=/y>y</a>")
    assert len(flat) < 20 * MAX_ATTRIBUTES
    assert links(flat) == [f"{PAGE}x", f"{PAGE}y"]
    assert flat.startswith("<p>before<a href=/x a0") and flat.endswith(">inside</a><p>after<a href=/y>y</a>")


def test_one_long_attribute_is_no_surplus() -> None:
    html = f"<img src='data:{'A' * 100_000}'><p title=\"{'x' * 100_000}\">w"
    assert shallow(html) is html


@pytest.mark.parametrize(
    "unit",
    [
        "<div>",
        "<ul><li>",
        "<a href=/{n}><object>x",
        "<a href=/{n}>",
        "<table><tr><td>",
        "<select><option>",
        "<dl><dd>",
        "<x{n}>y",
        "<li>x",
        "<div><p></div>",
        "<b><p></b>",
        "x<br>",
        "<!-- <div> -->",
        "<",
        "<a ",
        "<a b='",
        "</p>",
        "<p a={n} b=2 c=3>",
    ],
)
def test_so_much_of_anything_takes_seconds_at_most(unit: str) -> None:
    count = MANY_CHARS // len(unit)
    html = "".join(unit.format(n=n) for n in range(count)) if "{n}" in unit else unit * count
    started = time.process_time()
    flat = shallow(html)
    read_html(flat, PAGE)
    main_text(flat)
    assert time.process_time() - started < 3, (
        "in proportion the largest body stays below the 20 s that end a page"
    )


@given(
    st.lists(
        st.sampled_from(
            [
                "<div>",
                "</div>",
                "<a href=/1>",
                "</a>",
                "<p>",
                "</p>",
                "<b x='>' y=1>",
                "</b>",
                "t",
                "<",
                "<a",
                '"',
            ]
        ),
        max_size=60,
    )
)
def test_any_document_keeps_its_links_and_text(parts: list[str]) -> None:
    html = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "MANY_TAGS", 0)
        patch.setattr(nesting, "MAX_DEPTH", 3)
        flat = shallow(html)
    assert links(flat) == links(html)
    assert flat.count("t") == html.count("t")
