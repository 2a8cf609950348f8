"""Sketches a second, and how well they find and confirm near-duplicates of known similarity."""

from __future__ import annotations

import time

import numpy as np

from crawler.neardup import BAND_ROWS, BANDS, signature_matrix, similarities, similarity, sketch_of
from tests.fakes.texts import edited_pairs, make_words

THRESHOLD = 0.8


def curve(similarity_: float) -> float:
    """Return the theoretical probability that two texts of this similarity share a band."""
    return 1 - (1 - similarity_**BAND_ROWS) ** BANDS


def recall_at(target: float, pairs: int, seed: int = 0) -> dict[str, float]:
    """Return the shares of generated pairs that share a band, and that are confirmed besides."""
    candidates = accepted = 0
    expected, errors = 0.0, []
    for pair in edited_pairs(target, pairs, seed=seed):
        one, other = sketch_of(pair.one), sketch_of(pair.other)
        is_candidate = any(a == b for a, b in zip(one.bands, other.bands, strict=True))
        estimate = similarity(one.signature, other.signature)
        candidates += is_candidate
        accepted += is_candidate and estimate >= THRESHOLD
        expected += curve(pair.jaccard)
        errors.append(estimate - pair.jaccard)
    return {
        "jaccard": target,
        "theory": round(expected / pairs, 4),
        "candidates": round(candidates / pairs, 4),
        "accepted": round(accepted / pairs, 4),
        "bias": round(float(np.mean(errors)), 4),
        "sd": round(float(np.std(errors)), 4),
    }


def speed(documents: int = 500, words: int = 600) -> dict[str, float]:
    """Return documents a second of CPU, shingling included, and comparisons a second."""
    rng = np.random.default_rng(1)
    texts = [" ".join(make_words(rng, words)) for _ in range(documents)]
    accented = [text.replace("a", "ä").replace("e", "é") for text in texts]
    figures = {}
    for name, some in (("ascii", texts), ("accented", accented)):
        sketch_of(some[0])
        began = time.process_time()
        sketches = [sketch_of(text) for text in some]
        figures[f"{name}_documents_per_second"] = round(documents / (time.process_time() - began))
    matrix = signature_matrix([sketch.signature for sketch in sketches] * 200)
    began = time.process_time()
    similarities(sketches[0].signature, matrix)
    figures["comparisons_per_second"] = round(len(matrix) / (time.process_time() - began))
    return figures


def run(pairs: int = 2_000) -> dict[str, object]:
    """Return the speed of sketching and, for each similarity, recall beside the theoretical curve."""
    targets = [number / 100 for number in range(50, 100, 5)]
    return {**speed(), "recall": [recall_at(target, pairs) for target in targets]}


if __name__ == "__main__":
    results = run()
    for row in results.pop("recall"):
        print(row)
    print(results)
