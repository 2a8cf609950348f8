"""One survivor for each set of copies, whatever the order, the split or the size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.neardup import similarity
from crawler.resolve import (
    ANCHORS,
    EXACT,
    HOT_ANCHORS,
    HOT_BUCKET,
    NEAR,
    AlikePolicy,
    Link,
    Member,
    Order,
    Page,
    buckets_of,
    canonical_place,
    inherited,
    link_near,
    orphans,
    resolve,
    settle,
    verify,
)

POLICY = AlikePolicy()
CENTRES = np.random.default_rng(1).integers(0, 256, (3, 64), dtype=np.uint8)


def signature(centre, changed, start=0):
    """Return a signature that differs from a centre's in this many of its 128 values."""
    row = CENTRES[centre].copy()
    for place in range(start, start + changed):
        row[place // 2 % 64] ^= 1 << (place % 2 * 4)
    return row.tobytes()


def page(number, domain="", round_number=2, depth=0, canonical=1):
    domain = domain or f"d{number}.example"
    url = f"http://{domain}/{number}"
    return Page(Order(round_number, canonical, depth, f"{number:06}", number, number), url, domain)


def member(number, sign, bands=(1,), **facts):
    return Member(page(number, **facts), f"{sign.hex()} {bands}".encode(), sign, tuple(bands))


def lost(verdicts):
    return {order.url_key: link.kept.order.url_key for order, link in verdicts.items()}


def test_chain_becomes_a_star_not_a_heap():
    # a ~ b ~ c, but c is not alike to a: c stays, because b does not.
    a, b, c = (member(n, signature(0, 20 * n)) for n in range(3))
    assert similarity(a.signature, b.signature) > 0.8 > similarity(a.signature, c.signature)
    assert lost(resolve([c, a, b], 2, POLICY)) == {1: 0}


def test_pages_left_alone_by_a_lost_anchor_find_each_other():
    # c and d are linked to b only; b falls to a through another bucket.
    a = member(0, signature(0, 0), bands=(1, 9))
    b = member(1, signature(0, 20), bands=(1, 2))
    c = member(2, signature(0, 40), bands=(2, 7))
    d = member(3, signature(0, 42), bands=(2, 8))
    first = [link for bucket in buckets_of([a, b, c, d]) for link in link_near(bucket, POLICY, 2)]
    assert (c.page.order, b.page.order) in {(link.lost.order, link.kept.order) for link in first[:3]}
    assert lost(resolve([a, b, c, d], 2, POLICY)) == {1: 0, 3: 2}


def test_older_page_is_kept_then_the_canonical_target_then_the_least():
    sign = signature(0, 0)
    old = member(5, sign, round_number=1, depth=9)
    target = member(4, sign, canonical=0, depth=3)
    near = member(3, sign, depth=1)
    deep = member(2, sign, depth=2)
    assert lost(resolve([deep, near, target, old], 2, POLICY)) == {2: 5, 3: 5, 4: 5}
    assert lost(resolve([deep, near, target], 2, POLICY)) == {2: 4, 3: 4}
    assert lost(resolve([deep, near], 2, POLICY)) == {2: 3}


def test_canonical_place():
    assert canonical_place("http://a/", None, False) == 1
    assert canonical_place("http://a/", "http://a/", True) == 0
    assert canonical_place("http://a/", "http://b/", True) == 2


def test_one_domain_needs_more():
    one, other = (
        member(0, signature(0, 0), domain="a.example"),
        member(1, signature(0, 16), domain="a.example"),
    )
    assert 0.85 < similarity(one.signature, other.signature) < 0.9
    assert resolve([one, other], 2, POLICY) == {}
    foreign = other._replace(page=page(1))
    assert lost(resolve([one, foreign], 2, POLICY)) == {1: 0}
    strict = AlikePolicy(threshold=0.95)
    assert resolve([one, foreign], 2, strict) == {}
    assert strict.needed(True) == 0.95


def test_exact_copies_share_the_fate_of_the_first():
    best = member(0, signature(0, 0), domain="a.example")
    copies = [member(n, signature(0, 16)) for n in range(1, 5)]
    verdicts = resolve([*copies, best], 2, POLICY)
    assert lost(verdicts) == dict.fromkeys(range(1, 5), 0)
    assert {link.kind for link in verdicts.values()} == {NEAR}
    # A copy on the survivor's own domain is not alike enough: it stays, and the next copies of it are its.
    near_home = member(9, signature(0, 16), domain="a.example")
    assert lost(resolve([*copies, best, near_home], 2, POLICY)) == dict.fromkeys(range(1, 5), 0)


def test_many_copies_of_a_page_that_lost_are_settled_together():
    best = member(0, signature(0, 0))
    copies = [member(n, signature(0, 16)) for n in range(1, 5_000)]
    home = [member(n, signature(0, 16), domain="d0.example") for n in range(5_000, 9_000)]
    verdicts = resolve([*home, *copies, best], 2, POLICY)
    assert {link.kept for order, link in verdicts.items() if order.url_key < 5_000} == {best.page}
    assert {link.kept for order, link in verdicts.items() if order.url_key > 5_000} == {home[0].page}
    assert len(verdicts) == 8_998


def test_short_texts_are_matched_exactly_only():
    short = [Member(page(n), b"same", b"", ()) for n in range(3)]
    verdicts = resolve([*short, Member(page(9), b"other", b"", ())], 2, POLICY)
    assert lost(verdicts) == {1: 0, 2: 0}
    assert {link.kind for link in verdicts.values()} == {EXACT}


def test_exact_is_named_before_near_and_the_more_alike_before_the_less():
    pages = [page(n) for n in range(4)]
    near = [Link(pages[3], pages[0], 0.85, NEAR), Link(pages[3], pages[1], 0.9, NEAR)]
    assert settle(near)[pages[3].order].kept == pages[1]
    exact = Link(pages[3], pages[2], 1.0, EXACT)
    assert settle([*near, exact])[pages[3].order].kept == pages[2]
    assert orphans([*near, Link(pages[1], pages[0], 0.9, NEAR)], {}) == {pages[3].order, pages[1].order}


def test_earlier_pages_never_lose_what_they_are():
    one, other = (member(n, signature(0, n), round_number=1) for n in (0, 1))
    new = member(2, signature(0, 2))
    assert lost(resolve([one, other, new], 2, POLICY)) in ({2: 0}, {2: 1})
    same_text = [m._replace(text_digest=b"x") for m in (one, other)]
    assert resolve(same_text, 2, POLICY) == {}
    assert lost(resolve([*same_text, new._replace(text_digest=b"x")], 2, POLICY)) == {2: 0}


def test_links_to_stored_pages_may_be_verified_apart():
    old, new, third = (
        member(0, signature(0, 0), round_number=1),
        member(1, signature(0, 10)),
        member(2, signature(0, 12)),
    )
    link = verify(new, old, POLICY)
    assert link is not None
    assert lost(resolve([new, third], 2, POLICY, [link])) == {1: 0}
    assert lost(resolve([new, third, old], 2, POLICY)) == {1: 0, 2: 0}
    assert verify(member(3, signature(1, 0)), old, POLICY) is None
    assert inherited(link, page(7, domain="d0.example"), AlikePolicy(0.8, 0.99)) is None


def test_policy_refuses_what_cannot_work():
    for bad in ({"threshold": 0.0}, {"same_domain_threshold": 1.1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            AlikePolicy(**bad)


def test_a_hundred_thousand_copies_leave_one():
    sign = signature(0, 0)
    copies = [member(n, sign, bands=range(16)) for n in range(100_000)]
    verdicts = resolve(copies[::-1], 2, POLICY)
    assert len(verdicts) == 99_999
    assert {link.kept for link in verdicts.values()} == {copies[0].page}


def test_boilerplate_is_tried_against_few_anchors():
    far = np.random.default_rng(2).integers(0, 256, (HOT_BUCKET + 1, 64), dtype=np.uint8)
    unlike = [member(n, row.tobytes()) for n, row in enumerate(far)]
    echoes = [member(50_000 + n, far[n].tobytes(), bands=(1, 2)) for n in range(100)]
    assert len(link_near([*unlike, *echoes], POLICY, 2)) == HOT_ANCHORS
    assert len(link_near([*unlike[:200], *echoes], POLICY, 2)) == ANCHORS
    copies = [member(n, signature(0, n % 8)) for n in range(200)]
    assert len(link_near(copies, POLICY, 2)) == 199


SKETCHES = st.tuples(
    st.integers(0, 1),
    st.sampled_from([0, 4, 8, 16, 20, 24, 40]),
    st.sampled_from([0, 10, 30]),
    st.sets(st.integers(1, 7), min_size=2, max_size=2),
)
PAGES = st.lists(
    st.tuples(SKETCHES, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=24
)


def members_of(rows):
    made = []
    for number, ((centre, changed, start, bands), domain, depth, canonical) in enumerate(rows):
        sign = signature(centre, changed, start)
        where = {"domain": f"d{domain}.example", "depth": depth, "canonical": canonical}
        # A real text has the bands of its signature: equal texts have equal bands.
        made.append(member(number, sign, bands=tuple(bands), **where))
    return made


def is_alike(one, other):
    if one.text_digest == other.text_digest:
        return True
    needed = POLICY.needed(one.page.domain == other.page.domain)
    return bool(set(one.bands) & set(other.bands)) and similarity(one.signature, other.signature) >= needed


def greedy(members, kept=()):
    """Return the survivors by the definition, one page after the other."""
    survivors = list(kept)
    for new in sorted(members, key=lambda m: m.page.order):
        if not any(is_alike(new, other) for other in survivors):
            survivors.append(new)
    return survivors


def survivors_of(members, verdicts):
    return [m for m in members if m.page.order not in verdicts]


@settings(max_examples=100)
@given(PAGES, st.randoms(use_true_random=False))
def test_survivors_are_the_greedy_ones_in_any_order(rows, random):
    members = members_of(rows)
    verdicts = resolve(members, 2, POLICY)
    survivors = survivors_of(members, verdicts)
    assert set(survivors) == set(greedy(members))
    by_order = {m.page.order: m for m in members}
    for order, link in verdicts.items():
        assert link.kept.order < order
        assert by_order[link.kept.order] in survivors
        assert is_alike(by_order[order], by_order[link.kept.order])
    random.shuffle(members)
    assert resolve(members, 2, POLICY) == verdicts


@settings(max_examples=60)
@given(PAGES, st.data())
def test_rounds_that_follow_the_order_decide_as_one_round(rows, data):
    members = sorted(members_of(rows), key=lambda m: m.page.order)
    cut = data.draw(st.integers(0, len(members)))
    at_once = survivors_of(members, resolve(members, 2, POLICY))
    early = [
        m._replace(page=m.page._replace(order=m.page.order._replace(settled_round=1))) for m in members[:cut]
    ]
    stored = survivors_of(early, resolve(early, 1, POLICY))
    later = members[cut:]
    kept = stored + survivors_of(later, resolve([*later, *stored], 2, POLICY))
    assert {m.page.url for m in kept} == {m.page.url for m in at_once}


@settings(max_examples=50)
@given(st.lists(PAGES, min_size=1, max_size=4))
def test_over_rounds_no_survivor_is_a_copy_of_another(rounds):
    stored = []
    for number, rows in enumerate(rounds, 1):
        members = [
            m._replace(
                page=m.page._replace(
                    order=m.page.order._replace(
                        settled_round=number, url_key=1000 * number + m.page.order.url_key
                    )
                )
            )
            for m in members_of(rows)
        ]
        expected = greedy(members, stored)
        verdicts = resolve([*members, *stored], number, POLICY)
        assert not any(m.page.order in verdicts for m in stored)
        stored = stored + survivors_of(members, verdicts)
        assert {m.page for m in stored} == {m.page for m in expected}
    assert not any(is_alike(a, b) for place, a in enumerate(stored) for b in stored[:place])


@settings(max_examples=40)
@given(PAGES, st.randoms(use_true_random=False))
def test_settling_ignores_order_and_repeats_of_links(rows, random):
    members = members_of(rows)
    links = [link for bucket in buckets_of(members) for link in link_near(bucket, POLICY, 2)]
    before = settle(links)
    again = links + links[: len(links) // 2]
    random.shuffle(again)
    assert settle(again) == before
