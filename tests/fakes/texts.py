"""Generated texts, and edited copies whose exact word-5-gram similarity is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from crawler.words import words_of


class Pair(NamedTuple):
    """Two texts and the Jaccard similarity of their sets of five words in a row."""

    one: str
    other: str
    jaccard: float


def exact_jaccard(one: str, other: str) -> float:
    """Return the Jaccard similarity of two texts' sets of word 5-grams."""
    left, right = _shingles(words_of(one)), _shingles(words_of(other))
    return len(left & right) / len(left | right)


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + 5]) for at in range(len(words) - 4)}


def vocabulary(size: int = 20_000, seed: int = 0) -> list[str]:
    """Return made-up words of two to ten letters."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    return ["".join(rng.choice(letters, rng.integers(2, 11))) for _ in range(size)]


VOCABULARY = vocabulary()


def make_words(rng: np.random.Generator, count: int) -> list[str]:
    """Return words with the skew of language: few are frequent."""
    return [VOCABULARY[n] for n in (len(VOCABULARY) * rng.random(count) ** 3).astype(int)]


def edited_pairs(target: float, count: int, words: int = 600, seed: int = 0) -> Iterator[Pair]:
    """Yield pairs within 0.01 of a similarity: single words replaced, or a passage rewritten, in turn."""
    rng = np.random.default_rng([seed, round(target * 1000)])
    for number in range(count):
        original = make_words(rng, words)
        places = rng.permutation(words)
        if number % 2:
            places = (np.arange(words) + rng.integers(words)) % words
        yield _closest(original, places.tolist(), target, rng)


def _closest(original: list[str], places: list[int], target: float, rng: np.random.Generator) -> Pair:
    """Return the pair that replaces words at so many of ``places`` as come nearest to the target."""
    new_words = make_words(rng, len(places))
    shingles = _shingles(original)

    def edited(edits: int) -> list[str]:
        words = list(original)
        for place, word in zip(places[:edits], new_words[:edits], strict=True):
            words[place] = f"{word}x"
        return words

    def jaccard(edits: int) -> float:
        others = _shingles(edited(edits))
        return len(shingles & others) / len(shingles | others)

    low, high = 0, len(places)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if jaccard(middle) >= target else (low, middle)
    edits = min((low, high), key=lambda n: abs(jaccard(n) - target))
    return Pair(" ".join(original), " ".join(edited(edits)), jaccard(edits))
