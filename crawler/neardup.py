"""The identity of a text: what makes two pages the same, and how alike two others are."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import xxhash
from datasketch import MinHash
from numpy.typing import NDArray

from crawler.ranks import Floats, Ints, mix
from crawler.words import normalise_text, words_of
from schemas.page import Sketch

SHINGLE_WORDS = 5
LEAST_WORDS = 50
BANDS, BAND_ROWS = 16, 8
SIGNATURE_BYTES = 64
_VALUES = BANDS * BAND_ROWS
_SEED = 1
_CHUNK = 4_096
_CHANCE = 1 / 16
_BASE = MinHash(num_perm=_VALUES, seed=_SEED, hashfunc=int, scheme="affine32")
_POWERS = np.array([0x9E3779B97F4A7C15], dtype=np.uint64) ** np.arange(SHINGLE_WORDS, dtype=np.uint64)
_EQUAL_NIBBLES = np.array([(x & 0x0F == 0) + (x & 0xF0 == 0) for x in range(256)], dtype=np.uint8)


def text_digest(text: str) -> bytes:
    """Return the 16 bytes of BLAKE2b-128 over the normalised text in UTF-8."""
    return _digest(normalise_text(text))


def _digest(normal: str) -> bytes:
    return blake2b(normal.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def shingle_hashes(words: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return a 32-bit hash of each run of five words (in UTF-8), repeats included; empty for fewer than five.

    Each word is hashed once (XXH3); five hashes in a row are combined by a polynomial and scrambled.
    """
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, words), dtype=np.uint64, count=len(words))
    count = len(words) - SHINGLE_WORDS + 1
    if count < 1:
        return np.empty(0, dtype=np.uint32)
    combined = np.zeros(count, dtype=np.uint64)
    for offset, power in enumerate(_POWERS):
        combined += hashes[offset : offset + count] * power
    return (mix(combined) >> np.uint64(32)).astype(np.uint32)


def minhash_values(shingles: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the 128 MinHash values of a set of shingle hashes (datasketch, scheme affine32, seed 1)."""
    minhash = _BASE.copy()
    for start in range(0, len(shingles), _CHUNK):
        minhash.update_batch(shingles[start : start + _CHUNK].tolist())
    values: NDArray[np.uint32] = minhash.hashvalues
    return values


def band_hashes(values: NDArray[np.uint32]) -> tuple[int, ...]:
    """Return the 16 bucket hashes of a signature: each of 8 whole values, seeded with the band's number.

    Two texts of similarity s share a bucket with probability 1 - (1 - s^8)^16: 0.95 at 0.8, 0.06 at 0.5.
    """
    rows = values.astype("<u4").reshape(BANDS, BAND_ROWS)
    return tuple(xxhash.xxh3_64_intdigest(row.tobytes(), seed=band) for band, row in enumerate(rows))


def packed(values: NDArray[np.uint32]) -> bytes:
    """Return the low 4 bits of each value, two a byte, the first in the low half (b-bit MinHash, Li 2010)."""
    nibbles = (values & np.uint32(15)).astype(np.uint8)
    return (nibbles[0::2] | nibbles[1::2] << 4).tobytes()


def sketch_of(text: str) -> Sketch:
    """Return the sketch of a text; without signature and bands when it has fewer than 50 words."""
    words = words_of(text)
    normal = " ".join(words)
    digest = _digest(normal or text)
    if len(words) < LEAST_WORDS:
        return Sketch(text_digest=digest, words=len(words), signature=b"", bands=())
    values = minhash_values(shingle_hashes(normal.encode().split(b" ")))
    return Sketch(text_digest=digest, words=len(words), signature=packed(values), bands=band_hashes(values))


def signature_matrix(signatures: list[bytes]) -> NDArray[np.uint8]:
    """Return signatures of 64 bytes each as the rows of a matrix."""
    return np.frombuffer(b"".join(signatures), dtype=np.uint8).reshape(len(signatures), SIGNATURE_BYTES)


def similarities(signature: bytes, others: NDArray[np.uint8]) -> Floats:
    """Return the estimated Jaccard similarity (0..1) of one signature to each row of a matrix.

    (m - 1/16) / (15/16) with m the share of equal values: two different values agree in their 4 bits once
    in 16. The standard deviation is 0.038 at 0.8.
    """
    own = np.frombuffer(signature, dtype=np.uint8)
    matches: Ints = _EQUAL_NIBBLES[others ^ own].sum(axis=-1, dtype=np.int64)
    estimate: Floats = np.clip((matches / _VALUES - _CHANCE) / (1 - _CHANCE), 0.0, 1.0)
    return estimate


def similarity(one: bytes, other: bytes) -> float:
    """Return the estimated Jaccard similarity of two signatures; 0.0 if either is empty."""
    if not one or not other:
        return 0.0
    return float(similarities(one, signature_matrix([other]))[0])
