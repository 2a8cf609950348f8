"""Shards end together, and no domain or address is asked from two of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.packing import MAX_ADDRESS_HOSTS, host_load, pack


def key(domain, host=0):
    return (domain << 48) + host


def keys_of(*keys):
    return np.array(keys, dtype=np.uint64)


@pytest.mark.parametrize(("hosts", "shards"), [(5_000, 8), (50_000, 32), (100_000, 256)])
def test_skewed_loads_come_out_even(hosts, shards):
    rng = np.random.default_rng(hosts)
    keys = rng.integers(0, 2**64, hosts, dtype=np.uint64)
    loads = np.minimum(rng.pareto(1.1, hosts) + 1, 648) * 5.2
    packing = pack(keys, loads, shards)
    assert float(packing.loads.max() / packing.loads.mean()) <= 1.01
    assert np.allclose(np.bincount(packing.shard_of(keys), weights=loads), packing.loads, atol=0.1)


def test_shared_addresses_do_not_spoil_the_balance():
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 2**64, 50_000, dtype=np.uint64)
    loads = np.minimum(rng.pareto(1.1, 50_000) + 1, 648) * 5.2
    addresses = [f"192.0.2.{number}" for number in rng.integers(0, 5_000, 50_000)]
    packing = pack(keys, loads, 64, addresses)
    assert float(packing.loads.max() / packing.loads.mean()) <= 1.01


def test_a_domain_is_never_split():
    keys = keys_of(*[key(d, h) for d in range(20) for h in range(50)])
    shards = pack(keys, np.ones(1_000), 7).shard_of(keys).reshape(20, 50)
    assert all(len(set(row)) == 1 for row in shards.tolist())


def test_longest_go_first():
    keys = keys_of(*[key(n) for n in range(5)])
    packing = pack(keys, np.array([3.0, 3.0, 2.0, 2.0, 2.0]), 2)
    assert packing.loads.tolist() == [7.0, 5.0]
    assert packing.shard_of(keys).tolist() == [0, 1, 0, 1, 0]
    assert packing.shard_of_group[99] == -1


def test_hosts_that_share_an_address_share_a_shard():
    keys = keys_of(*[key(n) for n in range(8)])
    addresses = ["192.0.2.1", "192.0.2.2"] * 3 + [None, None]
    shards = pack(keys, np.ones(8), 4, addresses).shard_of(keys).tolist()
    assert len(set(shards[0:6:2])) == len(set(shards[1:6:2])) == 1
    assert len(set(shards)) == 4


def test_small_sets_that_overlap_are_joined():
    keys = keys_of(key(1), key(2, 0), key(2, 1), key(3), *[key(n) for n in range(10, 110)])
    addresses = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2", *[None] * 100]
    shards = pack(keys, np.ones(104), 4, addresses).shard_of(keys).tolist()
    assert len(set(shards[:4])) == 1


def test_the_hosts_of_a_platform_are_split():
    count = MAX_ADDRESS_HOSTS + 1
    keys = keys_of(*[key(n) for n in range(count)])
    packing = pack(keys, np.ones(count), 4, ["192.0.2.1"] * count)
    assert packing.loads.max() == 251
    packing = pack(keys[1:], np.ones(count - 1), 4, ["192.0.2.1"] * (count - 1))
    assert packing.loads.max() == 1_000


def test_chains_of_addresses_do_not_tie_everything_together():
    count = 400
    keys = keys_of(*[key(n // 2, n % 2) for n in range(count)])
    addresses = [f"192.0.2.{(n + 1) // 2}" for n in range(count)]
    packing = pack(keys, np.ones(count), 4, addresses)
    assert packing.loads.max() <= 125


def test_more_shards_than_hosts_leaves_some_empty():
    packing = pack(keys_of(key(1)), np.array([5.0]), 3)
    assert packing.loads.tolist() == [5.0, 0.0, 0.0]
    assert pack(keys_of(), np.array([]), 2).loads.tolist() == [0.0, 0.0]


def test_shards_must_be_positive():
    with pytest.raises(ValueError, match="shards"):
        pack(keys_of(key(1)), np.array([1.0]), 0)


def test_load_counts_download_and_pause():
    assert host_load(10, 5.0, 0.5) == 55.0
    assert host_load(10, 5.0, None) == 50.0


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.floats(0, 600), st.sampled_from([None, "192.0.2.1", "192.0.2.2"])),
        max_size=40,
    ),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_packing_does_not_depend_on_order(rows, shards, random):
    def packed(some):
        keys = keys_of(*[key(domain) for domain, _, _ in some])
        return pack(keys, np.array([load for _, load, _ in some]), shards, [ip for _, _, ip in some])

    before = packed(rows)
    random.shuffle(rows)
    after = packed(rows)
    assert before.loads.tolist() == after.loads.tolist()
    assert before.shard_of_group.tolist() == after.shard_of_group.tolist()
