"""Steps of the content gate that look at one bucket of a band at a time: who may be alike to whom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from crawler.alike import Groups, groups_of, linked_rows
from crawler.fingerprints import bucket_shares
from crawler.neardup import SIGNATURE_BYTES
from crawler.resolve import ANCHORS, HOT_ANCHORS, HOT_BUCKET
from schemas.round import Tally
from transforms.gate.index import BANDS
from transforms.gate.parts import GatePart, Given, Task, byte_matrix, deal, numbers
from transforms.gate.texts import add_runs, deal_queries, page_ids_of
from transforms.gate.view import GateView


def match_buckets(view: GateView, task: Task, given: Given) -> Iterator[GatePart]:
    """Tell which texts of the round hang together, and ask for the earlier pages that share a bucket.

    In a bucket of more than 10,000 pages (boilerplate) three anchors are tried, else 64.
    """
    bands = given.table("bands")
    bands = bands.take(np.lexsort((numbers(bands, "text"), numbers(bands, "bucket"))))
    bucket, text = numbers(bands, "bucket"), numbers(bands, "text")
    groups = groups_of(bucket)
    signatures = byte_matrix(bands.column("signature"), SIGNATURE_BYTES)
    linked = np.flatnonzero(linked_rows(groups, signatures, view.policy.threshold))
    edges = _edges(groups, text, linked)
    yield from deal(view, "edges", task.tasks, edges, np.zeros(len(edges), dtype=np.int64))
    met = bucket[groups.starts]
    group, page_id = page_ids_of(view, task, BANDS, met, bucket_shares(met, view.partitions))
    yield from _ask(view, task, bands, groups, group, page_id)


def _edges(groups: Groups, text: np.ndarray, linked: np.ndarray) -> pa.Table:
    """Return edges from the first linked text of each bucket to its others."""
    _, first, place = np.unique(groups.of_row[linked], return_index=True, return_inverse=True)
    pairs = np.stack([text[linked[first[place]]], text[linked]], axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return pa.table({"one": pa.array(pairs[:, 0], pa.uint64()), "other": pa.array(pairs[:, 1], pa.uint64())})


def _ask(
    view: GateView, task: Task, bands: pa.Table, groups: Groups, group: np.ndarray, page_id: np.ndarray
) -> Iterator[GatePart]:
    """Ask for each page of the index whether the texts in its bucket are alike to it."""
    order = np.lexsort((page_id, group))
    group, page_id = group[order], page_id[order]
    stored = groups_of(group.astype(np.uint64))
    crowded = pa.table(
        {
            "bucket": bands.column("bucket").take(groups.starts[group[stored.starts]]),
            "stored": pa.array(stored.sizes, pa.int64()),
        }
    )
    shares = bucket_shares(numbers(crowded, "bucket"), task.tasks)
    yield from deal(view, "crowded", task.tasks, crowded, shares)
    rank = np.arange(len(group)) - stored.starts[stored.of_row]
    full = stored.sizes[stored.of_row] + groups.sizes[group] > HOT_BUCKET
    tried = rank < np.where(full, HOT_ANCHORS, ANCHORS)
    rows, anchors = _members(groups, group[tried])
    asked = pa.table(
        {"page_id": pa.array(page_id[tried][anchors], pa.uint64()), "text": bands.column("text").take(rows)}
    )
    once = _first_of_each(numbers(asked, "page_id"), numbers(asked, "text"))
    asked = asked.take(once).append_column("signature", bands.column("signature").take(rows[once]))
    asked = asked.append_column("text_digest", pa.array([b""] * len(asked), pa.binary()))
    yield from deal_queries(view, task, asked)


def _members(groups: Groups, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (row, position in ``group``) for every row of every group asked for."""
    sizes = groups.sizes[group]
    place = np.repeat(np.arange(len(group)), sizes)
    offset = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return groups.starts[group[place]] + offset, place


def _first_of_each(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.sort(np.unique(np.stack([one, other], axis=1), axis=0, return_index=True)[1])


def index_buckets(view: GateView, task: Task, given: Given) -> Iterator[object]:
    """Add the bands of pages that stay to the index. A bucket takes no more than 10,000; count the rest."""
    entries, crowded = given.table("entries"), given.table("crowded")
    entries = entries.take(np.lexsort((numbers(entries, "page_id"), numbers(entries, "bucket"))))
    bucket, page_id = numbers(entries, "bucket"), numbers(entries, "page_id")
    groups = groups_of(bucket)
    rank = np.arange(len(bucket)) - groups.starts[groups.of_row]
    stored = dict(zip(numbers(crowded, "bucket").tolist(), numbers(crowded, "stored").tolist(), strict=True))
    before = np.array([stored.get(key, 0) for key in bucket[groups.starts].tolist()], dtype=np.int64)
    fits = rank + before[groups.of_row] < HOT_BUCKET if len(bucket) else np.zeros(0, dtype=bool)
    if not fits.all():
        yield Tally("counter", "gate/bands_of_full_buckets", int((~fits).sum()))
    columns = {"k1": bucket[fits], "k2": page_id[fits]}
    yield from add_runs(view, task, BANDS, columns, bucket_shares(bucket[fits], view.partitions))
