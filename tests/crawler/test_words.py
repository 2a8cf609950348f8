"""Words in any script, the same whatever the layout."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.words import normalise_text, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello,  World!\n", ["hello", "world"]),
        ("don't don’t", ["don", "t", "don", "t"]),
        ("foo_bar 3.14", ["foo", "bar", "3", "14"]),
        ("Straße ﬁn ＡＢＣ", ["strasse", "fin", "abc"]),
        ("café cafe\u0301", ["café", "café"]),
        ("co\u00adoperate", ["cooperate"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مَرْحَبًا بك", ["مَرْحَبًا", "بك"]),
        ("東京タワー、高い。", ["東", "京", "タ", "ワ", "ー", "高", "い"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("iPhone手机 15", ["iphone", "手", "机", "15"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("𝔘nicode 😀 ok", ["unicode", "ok"]),
        ("½ x²", ["1", "2", "x2"]),
        ("--- !!!", []),
        ("", []),
    ],
)
def test_words(text, words):
    assert words_of(text) == [unicodedata.normalize("NFKC", word) for word in words]


def test_every_script_is_read_by_the_same_rule():
    # One mark sends a text down the careful path, which must agree with the plain one on all the rest.
    letters = [chr(code) for code in range(0x80, 0x3000) if chr(code).isalnum()]
    plain = [word for letter in letters for word in words_of(f"a{letter}b c")]
    careful = [word for letter in letters for word in words_of(f"a{letter}b c \u093f")[:-1]]
    assert plain == careful


def test_text_without_words_stands_for_itself():
    assert normalise_text("--- !!!") == "--- !!!"
    assert normalise_text(" A  b ") == "a b"


@given(st.text(max_size=60))
def test_normalising_twice_changes_nothing(text):
    once = normalise_text(text)
    assert normalise_text(once) == once


@given(st.text(alphabet="ab \n\t.,;é", min_size=1, max_size=40))
def test_layout_and_case_do_not_count(text):
    assert words_of(text.upper().replace(" ", " \n ").replace(",", " , ")) == words_of(text)
