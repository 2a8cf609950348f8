"""Steps of the content gate that look at clusters: texts that hang together, and who of them stays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from connectors import parts
from connectors.rows import row_schema, table_to_rows
from crawler.alike import components
from crawler.fingerprints import share_of
from crawler.resolve import EXACT, Link, Member, Order, Page, resolve, settle
from crawler.urls import host_of, registered_domain
from schemas.page import DuplicateVerdict, SketchRow
from schemas.round import Tally, VerdictRef
from transforms.gate.parts import SCHEMAS, GatePart, Given, Task, deal, numbers
from transforms.gate.texts import KEPT
from transforms.gate.view import GateView

EARLIER = 0
"""The round of a page of the index: all of them come before the pages of this round."""


def label_clusters(view: GateView, task: Task, given: Given) -> Iterator[GatePart]:
    """Give the texts that hang together a common label. One task sees all edges: 16 bytes each."""
    edges = given.table("edges")
    texts, labels = components(numbers(edges, "one"), numbers(edges, "other"))
    rows = pa.table({"text": pa.array(texts, pa.uint64()), "label": pa.array(labels, pa.uint64())})
    yield from deal(view, "labels", task.tasks, rows, share_of(texts, task.tasks))


def resolve_clusters(view: GateView, task: Task, given: Given) -> Iterator[GatePart]:
    """Decide in each cluster which pages stay, and deal the decisions by text."""
    members, links = given.table("members"), given.table("links")
    in_cluster: defaultdict[int, list[Member]] = defaultdict(list)
    for label, member in zip(numbers(members, "label").tolist(), _members(view, members), strict=True):
        in_cluster[label].append(member)
    of_text = _stored_pages(links)
    fates: list[tuple[Member, Link | None]] = []
    for label in sorted(in_cluster):
        cluster = sorted(in_cluster[label])
        stored = [link for member in cluster for link in _links_of(view, member, of_text)]
        alone = len(cluster) == 1
        verdicts = settle(stored) if alone else resolve(cluster, view.spec.round, view.policy, stored)
        fates += [(member, verdicts.get(member.page.order)) for member in cluster]
    texts = np.array([_text_of(member.text_digest) for member, _ in fates], dtype=np.uint64)
    yield from deal(view, "fates", task.tasks, _fate_rows(fates), share_of(texts, task.tasks))


def _fate_rows(fates: Sequence[tuple[Member, Link | None]]) -> pa.Table:
    rows = [
        {
            "host_key": member.page.order.host_key,
            "url_key": member.page.order.url_key,
            "kept_url": link.kept.url if link else "",
            "kept_key": link.kept.order.url_key if link else 0,
            "similarity": link.similarity if link else 1.0,
            "kind": link.kind if link else KEPT,
        }
        for member, link in fates
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["fates"])


def _text_of(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big")


def _members(view: GateView, table: pa.Table) -> Iterator[Member]:
    places = numbers(table, "canonical").tolist()
    for row, canonical in zip(table_to_rows(table, SketchRow), places, strict=True):
        order = Order(view.spec.round, canonical, row.depth, row.surt_key, row.host_key, row.url_key)
        page = Page(order, row.url, row.registered_domain)
        yield Member(page, row.text_digest, row.signature, row.bands)


def _stored_pages(links: pa.Table) -> dict[int, dict[int, tuple[Page, float, str]]]:
    """Return for each text the earlier pages that it is a copy of, by URL key, exact before near."""
    columns = ("text", "kind", "kept_key", "kept_url", "similarity")
    found: defaultdict[int, dict[int, tuple[Page, float, str]]] = defaultdict(dict)
    for text, kind, key, url, alike in sorted(
        zip(*(links.column(n).to_pylist() for n in columns), strict=True)
    ):
        page = Page(Order(EARLIER, 1, 0, "", 0, key), url, registered_domain(host_of(url)))
        found[text].setdefault(key, (page, alike, kind))
    return found


def _links_of(
    view: GateView, member: Member, of_text: dict[int, dict[int, tuple[Page, float, str]]]
) -> Iterator[Link]:
    for page, alike, kind in of_text.get(_text_of(member.text_digest), {}).values():
        if kind == EXACT or alike >= view.policy.needed(member.page.domain == page.domain):
            yield Link(member.page, page, alike, kind)


def file_verdicts(view: GateView, task: Task, given: Given) -> Iterator[object]:
    """Write one file of verdicts for each segment that has any, and count them by kind."""
    verdicts = given.table("verdicts").sort_by(
        [("segment", "ascending"), ("host_key", "ascending"), ("url_key", "ascending")]
    )
    segments = verdicts.column("segment").to_pylist()
    for segment, rows in sorted(Counter(segments).items()):
        start = segments.index(segment)
        path = view.work_path(f"verdicts-{segment}")
        table = verdicts.slice(start, rows).select(row_schema(DuplicateVerdict).names)
        yield VerdictRef(segment, path, parts.write_table(view.storage, path, table))
    for kind, count in sorted(Counter(verdicts.column("kind").to_pylist()).items()):
        yield Tally("counter", f"gate/{kind}", count)
