"""Two releases of a manual, in two languages: what is a near-duplicate of what, by exact similarity."""

from __future__ import annotations

from itertools import combinations

import pytest

from crawler.neardup import similarity, sketch_of
from tests.fakes.texts import exact_jaccard

THRESHOLD = 0.8
LARGEST_ERROR = 0.12


@pytest.fixture(scope="module")
def manual(cases):
    rows = cases("neardup_apache")
    documents = {row["id"]: row for row in rows if row["kind"] == "doc"}
    pairs = {(row["a"], row["b"]): row["jaccard5"] for row in rows if row["kind"] == "pair"}
    return documents, pairs, {name: sketch_of(document["text"]) for name, document in documents.items()}


def accepted(one, other):
    shared = any(a == b for a, b in zip(one.bands, other.bands, strict=True))
    return shared and similarity(one.signature, other.signature) >= THRESHOLD


def test_every_pair_is_judged_as_its_exact_similarity_asks(manual):
    documents, pairs, sketches = manual
    assert (len(documents), len(pairs)) == (134, 59)
    for one, other in combinations(documents, 2):
        exact = pairs.get((one, other), 0.0)
        assert accepted(sketches[one], sketches[other]) == (exact >= THRESHOLD), (one, other, exact)


def test_estimates_are_near_the_exact_similarity(manual):
    documents, pairs, sketches = manual
    for (one, other), exact in pairs.items():
        assert abs(similarity(sketches[one].signature, sketches[other].signature) - exact) < LARGEST_ERROR
        assert abs(exact_jaccard(documents[one]["text"], documents[other]["text"]) - exact) < 0.02


def test_a_translation_is_no_duplicate(manual):
    documents, _, sketches = manual
    languages = {name: document["path"].split("/")[3] for name, document in documents.items()}
    assert set(languages.values()) == {"en", "fr"}
    for one, other in combinations(documents, 2):
        if languages[one] != languages[other]:
            assert not accepted(sketches[one], sketches[other])
