"""Sketches repeat, find near-duplicates as theory says, and estimate how alike texts are."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.neardup import (
    BANDS,
    SIGNATURE_BYTES,
    band_hashes,
    minhash_values,
    packed,
    shingle_hashes,
    signature_matrix,
    similarities,
    similarity,
    sketch_of,
    text_digest,
)
from tests.benchmarks.bench_sketch import recall_at
from tests.fakes.texts import edited_pairs, make_words

TEXT = " ".join(make_words(np.random.default_rng(5), 300))


def test_sketch_is_pinned():
    sketch = sketch_of("The quick brown fox jumps over the lazy dog. " * 8)
    assert sketch.words == 72
    assert (
        sketch.text_digest
        == blake2b(
            ("the quick brown fox jumps over the lazy dog " * 8).strip().encode(), digest_size=16
        ).digest()
    )
    assert len(sketch.signature) == SIGNATURE_BYTES
    assert blake2b(repr(sketch).encode(), digest_size=8).hexdigest() == "6de0d9646af35c80"


def test_layout_does_not_change_a_sketch():
    assert sketch_of(TEXT.upper().replace(" ", ",\n ")) == sketch_of(TEXT)


def test_short_texts_have_a_digest_only():
    short, enough = " ".join(TEXT.split()[:49]), " ".join(TEXT.split()[:50])
    assert sketch_of(short)[1:] == (49, b"", ())
    assert len(sketch_of(enough).bands) == BANDS
    assert sketch_of("").text_digest != sketch_of("!!!").text_digest != sketch_of("???").text_digest
    assert sketch_of("lone \ud800 surrogate").words == 2


def test_characters_count_as_words_where_no_spaces_are():
    text = "".join(chr(0x4E00 + n * 37 % 3000) for n in range(200))
    assert sketch_of(text).words == 200
    changed = sketch_of(text[:100] + "東" + text[101:])
    assert similarity(sketch_of(text).signature, changed.signature) > 0.85


def test_shingles_are_runs_of_five():
    words = [word.encode() for word in TEXT.split()]
    shingles = shingle_hashes(words)
    assert len(shingles) == len(words) - 4
    assert shingles[7] == shingle_hashes(words[7:12])[0]
    assert shingles[7] != shingle_hashes(words[11:6:-1])[0]
    assert len(shingle_hashes(words[:4])) == 0


def test_values_are_those_of_the_library_and_large_texts_are_cut_into_pieces():
    shingles = shingle_hashes([b"%d" % number for number in range(10_000)])
    reference = MinHash(num_perm=128, seed=1, hashfunc=int, scheme="affine32")
    reference.update_batch(shingles.tolist())
    assert (minhash_values(shingles) == reference.hashvalues).all()


def test_bands_come_from_whole_values_and_carry_their_number():
    values = np.tile(np.arange(8, dtype=np.uint32), BANDS)
    assert len(set(band_hashes(values))) == BANDS
    high_bits_differ = values.copy()
    high_bits_differ[0] += np.uint32(1 << 20)
    assert packed(high_bits_differ) == packed(values)
    assert band_hashes(high_bits_differ)[0] != band_hashes(values)[0]
    assert band_hashes(high_bits_differ)[1:] == band_hashes(values)[1:]


def test_packing_keeps_four_bits_of_each_value():
    values = np.arange(128, dtype=np.uint32) + np.uint32(0xABC0)
    stored = packed(values)
    assert len(stored) == SIGNATURE_BYTES
    assert [half for byte in stored for half in (byte & 15, byte >> 4)] == [n % 16 for n in range(128)]


def test_similarity_of_signatures():
    one = packed(np.zeros(128, dtype=np.uint32))
    half = packed(np.repeat(np.array([0, 1], dtype=np.uint32), 64))
    assert similarity(one, one) == 1.0
    assert similarity(one, half) == pytest.approx((0.5 - 1 / 16) / (15 / 16))
    assert similarity(one, packed(np.ones(128, dtype=np.uint32))) == 0.0
    assert similarity(one, b"") == similarity(b"", b"") == 0.0
    assert similarities(one, signature_matrix([one, half])).tolist() == [1.0, similarity(one, half)]
    assert similarities(one, signature_matrix([])).tolist() == []


@pytest.mark.parametrize(
    ("jaccard", "candidates", "accepted_least", "accepted_most"),
    [
        (0.5, 0.03, 0, 0.0),
        (0.7, 0.5, 0, 0.02),
        (0.8, 0.92, 0.4, 0.7),
        (0.85, 0.98, 0.9, 1),
        (0.9, 0.99, 0.99, 1),
    ],
)
def test_recall_follows_the_curve(jaccard, candidates, accepted_least, accepted_most):
    found = recall_at(jaccard, pairs=300, seed=1)
    assert found["candidates"] >= candidates
    assert abs(found["candidates"] - found["theory"]) < 0.07
    assert accepted_least <= found["accepted"] <= accepted_most
    assert abs(found["bias"]) < 0.01
    assert found["sd"] < 0.055


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_similarity_is_symmetric_and_near_the_truth(seed):
    (pair,) = edited_pairs(0.8, 1, words=120, seed=seed)
    one, other = sketch_of(pair.one), sketch_of(pair.other)
    estimate = similarity(one.signature, other.signature)
    assert estimate == similarity(other.signature, one.signature)
    assert abs(estimate - pair.jaccard) < 0.25


def test_digest_is_that_of_the_sketch():
    for text in (TEXT, "", "!!!", "Ünï"):
        assert text_digest(text) == sketch_of(text).text_digest
