"""Which page of a set of copies stays: links between alike pages, then one survivor for each set.

Two stages, so that the work can be spread. Linking looks at one bucket at a time (pages of one text digest,
or of one band hash) and needs nothing else. Settling looks at the links alone, which concern only pages that
have a copy; sets of pages without a link between them may be settled apart. ``resolve`` is both in memory.

The result is the greedy one: in order of age and rank a page is a duplicate if it is alike to a page before
it that is none. So it is a star of depth one around each survivor, no survivor is alike to another, and it
depends on nothing but the pages: neither on the order of arrival nor on how the buckets were dealt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crawler.neardup import signature_matrix, similarities, similarity

EXACT, NEAR = "exact", "near"
HOT_BUCKET = 10_000
ANCHORS, HOT_ANCHORS = 64, 3


class Order(NamedTuple):
    """The place of a page among its copies, unique; the least is kept.

    ``settled_round`` is the round that first kept the page, for a page of this round its number: the older
    goes first. ``canonical`` is as ``canonical_place`` gives it.
    """

    settled_round: int
    canonical: int
    depth: int
    surt_key: str
    host_key: int
    url_key: int


class Page(NamedTuple):
    """Who a page is: its order, its URL, its registered domain."""

    order: Order
    url: str
    domain: str


class Member(NamedTuple):
    """A page with its sketch (signature and bands empty for a short text)."""

    page: Page
    text_digest: bytes
    signature: bytes
    bands: tuple[int, ...]


class Link(NamedTuple):
    """``lost`` is alike to ``kept``, which comes before it. ``kind`` is exact or near."""

    lost: Page
    kept: Page
    similarity: float
    kind: str


@dataclass(frozen=True, slots=True)
class AlikePolicy:
    """From which estimated similarity on two pages are copies; within one registered domain more is asked.

    Pages of one site share its template, where estimates mislead most (Henzinger 2006). ValueError unless
    the thresholds lie above 0 and at most at 1.
    """

    threshold: float = 0.8
    same_domain_threshold: float = 0.9

    def __post_init__(self) -> None:
        for name in ("threshold", "same_domain_threshold"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, got {getattr(self, name)}")

    def needed(self, is_same_domain: bool) -> float:
        """Return the least similarity at which two pages are copies."""
        return max(self.threshold, self.same_domain_threshold) if is_same_domain else self.threshold


def canonical_place(url: str, canonical_url: str | None, named_by_own_domain: bool) -> int:
    """Return 0 for a page that another page of its domain calls canonical, 2 for one that calls another so.

    1 for all others. A page may always yield to another; that it is preferred, only its own domain can say,
    and a page of this kind that names another is no target.
    """
    if canonical_url is not None and canonical_url != url:
        return 2
    return 0 if named_by_own_domain else 1


def link_exact(members: Iterable[Member], round_number: int) -> list[Link]:
    """Return a link to the first page from each other of this round: all have the same text digest."""
    pages = sorted(member.page for member in members)
    return [
        Link(page, pages[0], 1.0, EXACT) for page in pages[1:] if page.order.settled_round >= round_number
    ]


def link_near(members: Sequence[Member], policy: AlikePolicy, round_number: int) -> list[Link]:
    """Return links from pages of this round to anchors before them: all members share a band's bucket.

    The first page is an anchor; whatever is alike to it is linked to it and done; the first of the rest is
    the next anchor. At most ANCHORS are tried, HOT_ANCHORS in a bucket of more than HOT_BUCKET members,
    which is boilerplate: time and links are linear in the members. Pages of earlier rounds are anchors
    only.
    """
    ordered = sorted(members, key=lambda member: member.page.order)
    signatures = signature_matrix([member.signature for member in ordered])
    codes: dict[str, int] = {}
    domain = np.array([codes.setdefault(member.page.domain, len(codes)) for member in ordered])
    is_new = np.array([member.page.order.settled_round >= round_number for member in ordered])
    rest = np.arange(len(ordered))
    links: list[Link] = []
    for _ in range(ANCHORS if len(ordered) <= HOT_BUCKET else HOT_ANCHORS):
        if len(rest) < 2:
            break
        anchor, rest = ordered[rest[0]], rest[1:]
        alike = similarities(anchor.signature, signatures[rest])
        same_domain = domain[rest] == codes[anchor.page.domain]
        needed = np.where(same_domain, policy.needed(True), policy.needed(False))
        linked = (alike >= needed) & is_new[rest]
        for place, estimate in zip(rest[linked].tolist(), alike[linked].tolist(), strict=True):
            links.append(Link(ordered[place].page, anchor.page, estimate, NEAR))
        rest = rest[~linked]
    return links


def verify(member: Member, anchor: Member, policy: AlikePolicy) -> Link | None:
    """Return the link from a page to an anchor of an earlier round that shares a bucket, if they are alike."""
    estimate = similarity(member.signature, anchor.signature)
    if estimate < policy.needed(member.page.domain == anchor.page.domain):
        return None
    return Link(member.page, anchor.page, estimate, NEAR)


def settle(links: Iterable[Link]) -> dict[Order, Link]:
    """Return for each page that is a duplicate the link to the survivor it lost to.

    A page without an entry survives. Among several survivors an exact copy is named before a near one, then
    the most similar, then the first. Links may come in any order and more than once.
    """
    by_page: defaultdict[Order, list[Link]] = defaultdict(list)
    for link in links:
        by_page[link.lost.order].append(link)
    verdicts: dict[Order, Link] = {}
    for order in sorted(by_page):
        standing = [link for link in by_page[order] if link.kept.order not in verdicts]
        if standing:
            verdicts[order] = min(standing, key=_preference)
    return verdicts


def _preference(link: Link) -> tuple[bool, float, Order]:
    return link.kind != EXACT, -link.similarity, link.kept.order


def orphans(links: Iterable[Link], verdicts: Mapping[Order, Link]) -> set[Order]:
    """Return the survivors that were linked to pages which did not survive.

    Only they can be alike to another survivor unnoticed; their buckets must be linked again among survivors.
    """
    return {link.lost.order for link in links} - set(verdicts)


def inherited(verdict: Link, copy: Page, policy: AlikePolicy) -> Link | None:
    """Return the link of an exact copy to the page that its original lost to, if they are alike enough."""
    if verdict.similarity < policy.needed(copy.domain == verdict.kept.domain):
        return None
    return verdict._replace(lost=copy)


def resolve(
    members: Sequence[Member], round_number: int, policy: AlikePolicy, stored_links: Iterable[Link] = ()
) -> dict[Order, Link]:
    """Return for each duplicate of this round the link to its survivor; pages without an entry survive.

    ``members`` are the round's pages, and those of earlier rounds that share a digest or a bucket with one
    (or, in place of the latter, ``stored_links`` as ``verify`` gives them). An earlier page that was fetched
    again in this round must not be among them.
    """
    links = {(link.lost.order, link.kept.order): link for link in stored_links}
    standing, verdicts = list(members), settle(links.values())
    alone: set[Order] | None = None
    while alone is None or alone:
        known = len(links)
        for link in _links_among(standing, round_number, policy, alone):
            links.setdefault((link.lost.order, link.kept.order), link)
        verdicts = settle(links.values())
        for link in _inherited_links(standing, verdicts, policy):
            links.setdefault((link.lost.order, link.kept.order), link)
        if len(links) == known:
            break
        verdicts = settle(links.values())
        alone = orphans(links.values(), verdicts)
        standing = [member for member in members if member.page.order not in verdicts]
    return verdicts


def _links_among(
    members: Sequence[Member], round_number: int, policy: AlikePolicy, concerned: set[Order] | None
) -> Iterator[Link]:
    """Yield the links in every bucket that holds one of the concerned pages (None: in every bucket)."""
    copies = _copies(members)
    for group in copies:
        yield from link_exact(group, round_number)
    for bucket in buckets_of([min(group) for group in copies]):
        if concerned is None or any(member.page.order in concerned for member in bucket):
            yield from link_near(bucket, policy, round_number)


def _inherited_links(
    members: Sequence[Member], verdicts: Mapping[Order, Link], policy: AlikePolicy
) -> Iterator[Link]:
    for group in _copies(members):
        verdict = verdicts.get(min(group).page.order)
        if verdict is not None and verdict.kind == NEAR:
            for copy in group:
                link = inherited(verdict, copy.page, policy)
                if link is not None:
                    yield link


def _copies(members: Iterable[Member]) -> list[list[Member]]:
    """Return the members grouped by text digest."""
    groups: defaultdict[bytes, list[Member]] = defaultdict(list)
    for member in members:
        groups[member.text_digest].append(member)
    return list(groups.values())


def buckets_of(members: Sequence[Member]) -> Iterator[list[Member]]:
    """Yield the members of each band's bucket that holds more than one."""
    sketched = [member for member in members if member.bands]
    if not sketched:
        return
    bands = np.array([member.bands for member in sketched], dtype=np.uint64)
    owner = np.repeat(np.arange(len(sketched)), bands.shape[1])
    by_bucket = np.argsort(bands, axis=None, kind="stable")
    bucket = bands.ravel()[by_bucket]
    starts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
    ends = np.r_[starts[1:], len(bucket)]
    for start, end in np.stack([starts, ends], axis=1)[ends - starts > 1].tolist():
        yield [sketched[place] for place in owner[by_bucket[start:end]].tolist()]
