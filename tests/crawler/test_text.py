from __future__ import annotations

import pytest
import trafilatura

from crawler.text import (
    MAX_INPUT_CHARS,
    MAX_INPUT_TAGS,
    MAX_TEXT_CHARS,
    EmptyReason,
    MainText,
    main_text,
    plain_text,
)

SENTENCE = "the river froze early that year, and the ferrymen mended their nets by the stove. "
ARTICLE = f"<article><h1>Winter</h1><p>{SENTENCE * 4}</p><p>Next, {SENTENCE * 4}</p></article>"
PAGE = f"""<!doctype html><html><head><title>t</title></head><body>
<nav><ul><li><a href=/a>Home</a></li><li><a href=/b>Products</a></li></ul></nav>{ARTICLE}
<footer>All rights reserved</footer></body></html>"""


def test_the_article_without_what_stands_around_it() -> None:
    found = main_text(PAGE)
    assert found.empty_reason is None
    assert found.text.count("the river froze early") == 8
    assert "Products" not in found.text
    assert "rights reserved" not in found.text


def test_comments_of_readers_are_left_out() -> None:
    comment = f"<div class=comment><p>I remember that winter. {SENTENCE}</p></div>"
    found = main_text(PAGE.replace("</article>", f"</article><section id=comments>{comment * 3}</section>"))
    assert "ferrymen" in found.text
    assert "I remember" not in found.text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", MainText("", EmptyReason.EMPTY_BODY)),
        (" \n\0", MainText("", EmptyReason.EMPTY_BODY)),
        ("no markup at all", MainText("", EmptyReason.NOT_HTML)),
        ("<html><body><script>x()</script></body></html>", MainText("", EmptyReason.NO_MAIN_TEXT)),
        ("<p>One short fragment.</p>", MainText("One short fragment.", None)),
        (
            "<?xml version='1.0' encoding='utf-16'?><p>One short fragment.</p>",
            MainText("One short fragment.", None),
        ),
    ],
)
def test_small_documents(html: str, expected: MainText) -> None:
    assert main_text(html) == expected


def test_a_fault_of_the_extractor_is_a_fact_about_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AttributeError("'NoneType' object has no attribute 'tag'")

    monkeypatch.setattr(trafilatura, "extract", fail)
    assert main_text(PAGE) == MainText("", EmptyReason.EXTRACTOR_FAILED)


def test_want_of_memory_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(trafilatura, "extract", fail)
    with pytest.raises(MemoryError):
        main_text(PAGE)


def test_input_is_cut() -> None:
    html = f"<html><body><article><p>{SENTENCE * 4}</p>" + " " * MAX_INPUT_CHARS + "<p>beyond the end</p>"
    assert "beyond" not in main_text(html).text
    assert len(plain_text("x" * (MAX_TEXT_CHARS + 5)).text) == MAX_TEXT_CHARS
    many = (
        f"<html><body><article><p>{SENTENCE * 4}</p>" + "<b></b>" * MAX_INPUT_TAGS + "<p>beyond the end</p>"
    )
    assert "beyond" not in main_text(many).text


def test_plain_text_is_its_own_text() -> None:
    assert plain_text(" a\r\n<b>\x1b[0m\0 ") == MainText("a\n<b>[0m", None)
    assert plain_text("\0 \n") == MainText("", EmptyReason.EMPTY_BODY)


def test_what_a_page_makes_the_extractor_say_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    main_text("<x>")
    main_text("<html>")
    assert caplog.records == []
