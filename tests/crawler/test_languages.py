"""Language tags as three-letter codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.languages import _THREE_LETTERS, three_letter_code


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("en", "eng"),
        ("EN-us", "eng"),
        ("de_AT", "deu"),
        ("zh-Hant-TW", "zho"),
        ("iw", "heb"),
        ("gsw", "gsw"),
        ("sr-Latn", "srp"),
        ("xx", None),
        ("x-klingon", None),
        ("english", None),
        ("", None),
        (None, None),
        ("a1c", None),
    ],
)
def test_codes(tag: str | None, code: str | None) -> None:
    assert three_letter_code(tag) == code


def test_every_two_letter_code_has_three_letters_of_its_own() -> None:
    assert len(_THREE_LETTERS) == 190
    assert all(len(two) == 2 and len(three) == 3 for two, three in _THREE_LETTERS.items())
    withdrawn = {"in", "iw", "ji", "jw", "mo"}
    current = [three for two, three in _THREE_LETTERS.items() if two not in withdrawn]
    assert len(set(current)) == len(current) == 185


@given(st.text(max_size=12))
def test_any_text_is_a_code_or_none(tag: str) -> None:
    code = three_letter_code(tag)
    assert code is None or (len(code) == 3 and code.isascii() and code.islower())
