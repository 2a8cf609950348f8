from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from crawler.characters import clean_lines, one_line

ANY_TEXT = st.text(alphabet=st.characters(categories=["Lu", "Lo", "Cc", "Cs", "Zs", "Zl", "Zp", "Po", "Cn"]))


def test_lines_end_in_line_feeds_and_controls_are_gone() -> None:
    assert clean_lines("a\r\nb\rc\x85d\u2028e\x0cf\tg") == "a\nb\nc\nd\ne\nf\tg"
    assert clean_lines("\x00n\x1b[31m\x7f\x9f\ud800\uffffok") == "n[31mok"


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\t b\u00a0c \x00 ", 100) == "a b c"
    assert one_line("word " * 100, 7) == "word wo"
    assert one_line(" " * 100 + "late", 5) == ""


@given(ANY_TEXT)
def test_clean_text_can_be_stored_and_shown_anywhere(text: str) -> None:
    for cleaned in (clean_lines(text), one_line(text, 50)):
        cleaned.encode("utf-8")
        assert json.loads(json.dumps(cleaned)) == cleaned
        assert all(char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs") for char in cleaned)
    assert clean_lines(clean_lines(text)) == clean_lines(text)
    assert len(one_line(text, 50).splitlines()) <= 1
