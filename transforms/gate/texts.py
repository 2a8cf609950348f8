"""Steps of the content gate that look at pages by text: copies of one text meet here, and are told here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import runs
from crawler.fingerprints import (
    bucket_shares,
    buckets,
    digest_keys,
    page_ids,
    partitions_of,
    share_of,
    spread,
    stored_digest,
)
from crawler.resolve import EXACT
from schemas.round import PartitionPart
from transforms.compaction import Written, add_run
from transforms.gate.index import DIGESTS
from transforms.gate.pages import deal_verdicts
from transforms.gate.parts import (
    DIGEST_BYTES,
    GatePart,
    Given,
    Task,
    byte_matrix,
    deal,
    numbers,
    text_numbers,
)
from transforms.gate.view import GateView

_ORDER = ("text_digest", "canonical", "depth", "surt_key", "host_key", "url_key")
KEPT = "kept"


class Texts:
    """Pages sorted by text and, within one, by their order; the same whatever the order they came in.

    ``first`` holds the first row of each text. Of the pages of one text in one registered domain all fare as
    the first of them, the row in ``lead``: so copies without number cost no more than a row each.
    """

    def __init__(self, pages: pa.Table) -> None:
        order = pc.sort_indices(pages, sort_keys=[(name, "ascending") for name in _ORDER])
        self.pages = pages.take(order)
        digests = byte_matrix(self.pages.column("text_digest"), DIGEST_BYTES)
        is_first = np.ones(len(digests), dtype=bool)
        is_first[1:] = (digests[1:] != digests[:-1]).any(axis=1)
        self.first = np.flatnonzero(is_first)
        self.text_of_row = np.cumsum(is_first) - 1
        self.number = text_numbers(self.pages)
        domains = self.pages.column("registered_domain").combine_chunks().dictionary_encode()
        together = self.text_of_row * np.int64(len(domains.dictionary) + 1) + domains.indices.to_numpy()
        _, first, place = np.unique(together, return_index=True, return_inverse=True)
        self.lead = first[place]

    def leads_of(self, texts: np.ndarray) -> np.ndarray:
        """Return the leading rows of these texts, given by the position of the text in ``first``."""
        leads = np.unique(self.lead)
        wanted = np.zeros(len(self.first), dtype=bool)
        wanted[texts] = True
        return leads[wanted[self.text_of_row[leads]]]


def ask_for_copies(view: GateView, task: Task, given: Given) -> Iterator[GatePart]:
    """Look each text up in the digests of earlier rounds, and deal its bands by bucket."""
    texts = Texts(given.table("pages"))
    first = texts.pages.take(texts.first)
    number = texts.number[texts.first]
    asking, page_id = page_ids_of(view, task, DIGESTS, digest_keys(number), share_of(number, view.partitions))
    queries = first.take(asking).append_column("page_id", pa.array(page_id, pa.uint64()))
    queries = queries.append_column("text", pa.array(number[asking], pa.uint64()))
    yield from deal_queries(view, task, queries)
    bands = _bands(first, number)
    yield from deal(view, "bands", task.tasks, bands, bucket_shares(numbers(bands, "bucket"), task.tasks))


def page_ids_of(
    view: GateView, task: Task, table: runs.RunTable, keys: np.ndarray, owner: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (position in ``keys``, page id) of every row with these keys; ``owner`` names their partitions."""

    def look_up(partition: int) -> tuple[np.ndarray, np.ndarray]:
        entries, own = view.entries(table.name, partition), np.flatnonzero(owner == partition)
        if not entries or not len(own):
            return own[:0], keys[:0]
        found = runs.lookup(view.storage, table, entries, keys[own])
        return own[found.candidate], numbers(found.rows, "k2")

    answers = view.each(look_up, task.partitions(view.partitions))
    return np.concatenate([rows for rows, _ in answers]), np.concatenate([ids for _, ids in answers])


def deal_queries(view: GateView, task: Task, queries: pa.Table) -> Iterator[GatePart]:
    """Deal questions about pages of the index by the partition of those pages."""
    share = np.uint64(view.partitions // task.tasks)
    shares = partitions_of(numbers(queries, "page_id"), view.partitions) // share
    yield from deal(view, "queries", task.tasks, queries, shares)


def _bands(first: pa.Table, number: np.ndarray) -> pa.Table:
    rows, bucket = _buckets_of(first)
    return pa.table(
        {
            "bucket": pa.array(bucket, pa.uint64()),
            "text": pa.array(number[rows], pa.uint64()),
            "signature": first.column("signature").take(rows),
        }
    )


def _buckets_of(pages: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return (row, bucket) of every band of the pages that have any."""
    column = pages.column("bands").combine_chunks()
    sizes = column.value_lengths().to_numpy()
    rows = np.repeat(np.arange(len(sizes)), sizes)
    return rows, buckets(column.flatten().to_numpy())


def gather_clusters(view: GateView, task: Task, given: Given) -> Iterator[GatePart]:
    """Deal the pages that may have a near copy, and the links to earlier pages, by the cluster they are in."""
    texts, stored, labels = Texts(given.table("pages")), given.table("stored"), given.table("labels")
    label_of = dict(zip(numbers(labels, "text").tolist(), numbers(labels, "label").tolist(), strict=True))
    linked = numbers(stored, "text").tolist()
    number = texts.number[texts.first].tolist()
    concerned = label_of.keys() | set(linked)
    rows = texts.leads_of(np.flatnonzero([text in concerned for text in number]))
    members = texts.pages.take(rows)
    of_rows = _labels(label_of, texts.number[rows].tolist())
    of_links = _labels(label_of, linked)
    members = members.append_column("label", pa.array(of_rows, pa.uint64()))
    links = stored.append_column("label", pa.array(of_links, pa.uint64()))
    yield from deal(view, "members", task.tasks, members, spread(of_rows, task.tasks))
    yield from deal(view, "links", task.tasks, links, spread(of_links, task.tasks))


def _labels(label_of: dict[int, int], texts: list[int]) -> np.ndarray:
    return np.array([label_of.get(text, text) for text in texts], dtype=np.uint64)


def tell_verdicts(view: GateView, task: Task, given: Given) -> Iterator[object]:
    """Tell for each page what it lost to, and put the pages that stay into the index."""
    texts = Texts(given.table("pages"))
    fates = _fates(given.table("fates"))
    keys = list(
        zip(
            numbers(texts.pages, "host_key").tolist(),
            numbers(texts.pages, "url_key").tolist(),
            strict=True,
        )
    )
    urls = texts.pages.column("url")
    leaders = texts.first[texts.text_of_row].tolist()
    stays: list[int] = []
    lost: list[tuple[int, str, str, float]] = []
    for row, (lead, leader) in enumerate(zip(texts.lead.tolist(), leaders, strict=True)):
        verdict = fates.get(keys[lead])
        if verdict is None:
            verdict = (KEPT, "", 1.0) if lead == leader else (EXACT, urls[leader].as_py(), 1.0)
        kind, kept_url, similarity = verdict
        if kind != KEPT:
            lost.append((row, kind, kept_url, similarity))
        elif row == lead:
            stays.append(row)
        else:
            lost.append((row, EXACT, urls[lead].as_py(), 1.0))
    yield from _told(view, texts.pages, lost)
    if view.round_view is not None:
        yield from _indexed(view, task, texts.pages.take(np.array(stays, dtype=np.int64)))


def _fates(table: pa.Table) -> dict[tuple[int, int], tuple[str, str, float]]:
    columns = ("host_key", "url_key", "kind", "kept_url", "similarity")
    rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    return {(host_key, url_key): (kind, kept, alike) for host_key, url_key, kind, kept, alike in rows}


def _told(view: GateView, pages: pa.Table, lost: list[tuple[int, str, str, float]]) -> Iterator[GatePart]:
    verdicts = pages.take(np.array([row for row, *_ in lost], dtype=np.int64))
    verdicts = (
        verdicts.append_column("kind", pa.array([kind for _, kind, _, _ in lost], pa.string()))
        .append_column("kept_url", pa.array([kept for _, _, kept, _ in lost], pa.string()))
        .append_column("similarity", pa.array([alike for *_, alike in lost], pa.float64()))
    )
    yield from deal_verdicts(view, verdicts)


def _indexed(view: GateView, task: Task, kept: pa.Table) -> Iterator[object]:
    """Hand on the sketches by host and the bands by bucket; write the digests here."""
    hosts = numbers(kept, "host_key")
    ids, _ = page_ids(hosts, numbers(kept, "url_key"), view.partitions)
    yield from _sketch_parts(view, kept, share_of(hosts, view.partitions))
    rows, bucket = _buckets_of(kept)
    entries = pa.table({"bucket": pa.array(bucket, pa.uint64()), "page_id": pa.array(ids[rows], pa.uint64())})
    yield from deal(view, "entries", task.tasks, entries, bucket_shares(bucket, task.tasks))
    number = text_numbers(kept)
    owner = share_of(number, view.partitions)
    yield from add_runs(view, task, DIGESTS, {"k1": digest_keys(number), "k2": ids}, owner)


def add_runs(
    view: GateView, task: Task, table: runs.RunTable, columns: Mapping[str, np.ndarray], owner: np.ndarray
) -> Iterator[object]:
    """Add rows to a table, each to the partition that ``owner`` names; yield files and replaced paths."""

    def add(partition: int) -> Written:
        own = np.flatnonzero(owner == partition)
        rows = {name: column[own] for name, column in columns.items()} if len(own) else None
        return add_run(view.in_round(), table, partition, rows)

    for written in view.each(add, task.partitions(view.partitions)):
        yield from written.files
        yield from written.replaced


def _sketch_parts(view: GateView, kept: pa.Table, owner: np.ndarray) -> Iterator[PartitionPart]:
    pairs = zip(kept.column("text_digest").to_pylist(), kept.column("signature").to_pylist(), strict=True)
    digests = [stored_digest(digest, signature) for digest, signature in pairs]
    rows = kept.append_column("digest", pa.array(digests, pa.binary()))
    counts = np.bincount(owner.astype(np.int64), minlength=view.partitions).tolist()
    for part in deal(view, "sketches", view.partitions, rows, owner):
        yield PartitionPart(part.task, "sketches", part.path, part.row_group, counts[part.task])
