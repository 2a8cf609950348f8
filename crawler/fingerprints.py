"""Short keys of the content index, and how work on them is dealt: arithmetic on unsigned 64-bit numbers.

The index finds candidates; whether two pages are copies is decided by their sketches. So its keys may be
short: a chance match costs one comparison and never a page.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

PAGE_BITS, BUCKET_BITS, DIGEST_BITS = 24, 36, 40
_TAIL_BYTES = 8


def share_of(keys: Keys, shares: int) -> Keys:
    """Return which of ``shares`` (a power of two) equal parts of the 64-bit numbers each key lies in."""
    bits = _bits(shares)
    return keys >> np.uint64(64 - bits) if bits else np.zeros_like(keys)


def page_ids(host_keys: Keys, url_keys: Keys, partitions: int) -> tuple[Keys, Keys]:
    """Return each page's id and the rest of its key: both together tell pages of a partition apart.

    The id has 24 bits: the partition, then the first bits of the URL key. Pages may share one, as 0.3
    others do among 5 million and 60 among a billion: then each of their sketches is compared.
    """
    bits = _bits(partitions)
    low = np.uint64(64 - PAGE_BITS + bits)
    ids = share_of(host_keys, partitions) << np.uint64(PAGE_BITS - bits) | url_keys >> low
    return ids, url_keys & ((np.uint64(1) << low) - np.uint64(1))


def url_keys_of(ids: Keys, rests: Keys, partitions: int) -> Keys:
    """Return the URL keys that ``page_ids`` took apart."""
    bits = _bits(partitions)
    mask = (np.uint64(1) << np.uint64(PAGE_BITS - bits)) - np.uint64(1)
    return (ids & mask) << np.uint64(64 - PAGE_BITS + bits) | rests


def partitions_of(ids: Keys, partitions: int) -> Keys:
    """Return the partition that each page id names."""
    return ids >> np.uint64(PAGE_BITS - _bits(partitions))


def buckets(bands: Keys) -> Keys:
    """Return the buckets of 64-bit band hashes: their first 36 bits.

    A page meets 16 x 16 x pages / 2^36 strangers by chance: 0.02 among 5 million, 4 among a billion.
    """
    return bands >> np.uint64(64 - BUCKET_BITS)


def bucket_shares(bucket: Keys, shares: int) -> Keys:
    """Return which part each bucket lies in."""
    return share_of(bucket << np.uint64(64 - BUCKET_BITS), shares)


def digest_numbers(digests: NDArray[np.uint8]) -> Keys:
    """Return the first 64 bits of text digests (rows of 16 bytes): what a text is called within a round."""
    return np.ascontiguousarray(digests[:, :8]).view(">u8").ravel().astype(np.uint64)


def digest_keys(numbers: Keys) -> Keys:
    """Return the keys of the digest table: the first 40 bits."""
    return numbers >> np.uint64(64 - DIGEST_BITS)


def stored_digest(text_digest: bytes, signature: bytes) -> bytes:
    """Return what the index keeps of a text digest.

    All 16 bytes of a short text's. The last 8 of one with a signature: two texts are the same only if the
    signatures (512 bits) agree as well.
    """
    return text_digest[-_TAIL_BYTES:] if signature else text_digest


def spread(numbers: Keys, shares: int) -> Keys:
    """Return a share for each number, even where the numbers themselves are not (Fibonacci hashing)."""
    return share_of(numbers * np.uint64(0x9E3779B97F4A7C15), shares)


def _bits(shares: int) -> int:
    bits = max(0, shares.bit_length() - 1)
    if shares != 1 << bits:
        raise ValueError(f"shares must be a power of two, got {shares}")
    return bits
