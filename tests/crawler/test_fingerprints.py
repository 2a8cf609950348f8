"""Keys of the content index: whole numbers that can be taken apart, dealt and compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler import fingerprints
from crawler.urls import partition_of

NUMBERS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50)
SHARES = st.sampled_from([1, 2, 8, 64, 4096])


def keys(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.uint64)


@given(numbers=NUMBERS, shares=SHARES)
def test_shares_are_those_of_partitions(numbers, shares) -> None:
    found = fingerprints.share_of(keys(numbers), shares)
    assert found.tolist() == [partition_of(number, shares) for number in numbers]


@given(hosts=NUMBERS, data=st.data(), partitions=SHARES)
def test_a_page_id_and_its_rest_hold_partition_and_url_key(hosts, data, partitions) -> None:
    urls = data.draw(
        st.lists(st.integers(0, 2**64 - 1), min_size=len(hosts), max_size=len(hosts)), label="urls"
    )
    ids, rests = fingerprints.page_ids(keys(hosts), keys(urls), partitions)
    assert max(ids.tolist()) < 2**fingerprints.PAGE_BITS
    assert fingerprints.url_keys_of(ids, rests, partitions).tolist() == urls
    shares = fingerprints.share_of(keys(hosts), partitions)
    assert fingerprints.partitions_of(ids, partitions).tolist() == shares.tolist()


def test_page_ids_are_spread_over_their_whole_range() -> None:
    rng = np.random.default_rng(1)
    hosts, urls = rng.integers(0, 2**64, (2, 100_000), np.uint64)
    ids, _ = fingerprints.page_ids(hosts, urls, 64)
    assert len(np.unique(ids)) > 99_000


@given(bands=NUMBERS, shares=SHARES)
def test_a_bucket_lies_in_the_share_of_its_band(bands, shares) -> None:
    bucket = fingerprints.buckets(keys(bands))
    assert max(bucket.tolist()) < 2**fingerprints.BUCKET_BITS
    found = fingerprints.bucket_shares(bucket, shares)
    assert found.tolist() == fingerprints.share_of(keys(bands), shares).tolist()


@given(digests=st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=20))
def test_a_text_is_called_by_the_first_bytes_of_its_digest(digests) -> None:
    rows = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16)
    numbers = fingerprints.digest_numbers(rows)
    assert numbers.tolist() == [int.from_bytes(digest[:8], "big") for digest in digests]
    expected = [int.from_bytes(digest[:5], "big") for digest in digests]
    assert fingerprints.digest_keys(numbers).tolist() == expected


def test_the_index_keeps_a_whole_digest_only_where_there_is_no_signature() -> None:
    digest = bytes(range(16))
    assert fingerprints.stored_digest(digest, b"") == digest
    assert fingerprints.stored_digest(digest, bytes(64)) == digest[8:]


def test_small_numbers_are_spread_too() -> None:
    counts = np.bincount(fingerprints.spread(np.arange(6_400, dtype=np.uint64), 64).astype(np.int64))
    assert counts.min() > 50 and len(counts) == 64


@pytest.mark.parametrize("shares", [0, 3, 48])
def test_shares_are_a_power_of_two(shares) -> None:
    with pytest.raises(ValueError, match="power of two"):
        fingerprints.share_of(keys([1]), shares)
