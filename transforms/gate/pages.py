"""Steps of the content gate that look at pages by host: which ask to be compared, which earlier ones stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors import parts
from connectors.rows import rows_to_table, table_to_rows
from crawler.alike import pair_similarities
from crawler.fingerprints import partitions_of, share_of, stored_digest
from crawler.neardup import SIGNATURE_BYTES
from crawler.recrawl import settled_outcome
from crawler.resolve import EXACT, NEAR, canonical_place
from schemas.fetch import OutcomeRow
from schemas.page import SketchRow
from schemas.round import ParsedRef
from transforms.gate.index import SKETCHES, sketches_by_id, sketches_of_pages
from transforms.gate.parts import (
    ROWS_A_FILE,
    SCHEMAS,
    GatePart,
    Given,
    Task,
    byte_matrix,
    deal,
    numbers,
    text_numbers,
)
from transforms.gate.view import GateView

SAME = "same"
_KEEPS_TEXT = ("not_modified", "failed_retry", "deferred", "robots_denied")


def deal_docs(view: GateView, tasks: int, refs: Iterable[ParsedRef]) -> Iterator[GatePart]:
    """Deal the sketches of segments by host, and with an empty digest the pages that hold no text now."""
    waiting: list[pa.Table] = []
    for ref in sorted(refs):
        waiting.append(_docs_of(view, ref))
        if sum(table.num_rows for table in waiting) >= ROWS_A_FILE:
            yield from _deal_by_host(view, "docs", tasks, pa.concat_tables(waiting))
            waiting = []
    if waiting:
        yield from _deal_by_host(view, "docs", tasks, pa.concat_tables(waiting))


def _docs_of(view: GateView, ref: ParsedRef) -> pa.Table:
    docs = parts.read_whole(view.storage, ref.sketches_path)
    if ref.outcomes_path and view.round_view is not None:
        docs = pa.concat_tables([docs, rows_to_table(_left(view, ref, docs), SketchRow)])
    return docs.append_column(
        SCHEMAS["docs"].field("segment"), pa.array([ref.segment] * len(docs), pa.string())
    )


def _left(view: GateView, ref: ParsedRef, docs: pa.Table) -> list[SketchRow]:
    """Return a row without digest for each page that was asked and no longer holds a text to keep."""
    table = parts.read_whole(view.storage, ref.outcomes_path)
    rows = table_to_rows(table.filter(pc.not_equal(table.column("kind"), "robots")), OutcomeRow)
    texts = set(zip(numbers(docs, "host_key").tolist(), numbers(docs, "url_key").tolist(), strict=True))
    retries = view.round_view.spec.flags.max_retries if view.round_view else 0
    return [
        SketchRow(row.host_key, row.url_key, row.url, "", "", row.depth, None, b"", 0, b"", ())
        for row in rows
        if (row.host_key, row.url_key) not in texts and settled_outcome(row, retries) not in _KEEPS_TEXT
    ]


def _deal_by_host(view: GateView, kind: str, tasks: int, rows: pa.Table) -> Iterator[GatePart]:
    yield from deal(view, kind, tasks, rows, share_of(numbers(rows, "host_key"), tasks))


def admit_pages(view: GateView, task: Task, given: Given) -> Iterator[GatePart]:
    """Tell pages whose text is the one that the index has of them; deal the others by text."""
    docs = given.table("docs")
    docs = docs.filter(pc.not_equal(pc.binary_length(docs.column("text_digest")), 0))
    docs = _each_once(docs)
    is_same = _is_same(view, task, docs)
    yield from _same_verdicts(view, docs.filter(pa.array(is_same)))
    places = pa.array(_canonical_places(docs), pa.int64())
    pages = docs.append_column("canonical", places).filter(pa.array(~is_same))
    yield from deal(view, "pages", task.tasks, pages, share_of(text_numbers(pages), task.tasks))


def _each_once(docs: pa.Table) -> pa.Table:
    """Return the rows sorted by page, one for each; of several the one with the least digest."""
    names = ("host_key", "url_key", "text_digest")
    docs = docs.take(pc.sort_indices(docs, sort_keys=[(name, "ascending") for name in names]))
    hosts, urls = numbers(docs, "host_key"), numbers(docs, "url_key")
    is_first = np.ones(len(docs), dtype=bool)
    is_first[1:] = (hosts[1:] != hosts[:-1]) | (urls[1:] != urls[:-1])
    return docs.filter(pa.array(is_first))


def _is_same(view: GateView, task: Task, docs: pa.Table) -> np.ndarray:
    """Return which pages have the text that the index has of them."""
    hosts, urls = numbers(docs, "host_key"), numbers(docs, "url_key")
    owner = share_of(hosts, view.partitions)

    def same_rows(partition: int) -> np.ndarray:
        entries, rows = view.entries(SKETCHES.name, partition), np.flatnonzero(owner == partition)
        if not entries or not len(rows):
            return rows[:0]
        found = sketches_of_pages(view.storage, entries, hosts[rows], urls[rows], view.partitions)
        own, known = docs.take(rows[found.candidate]), found.rows
        same = [
            signature == stored_signature and stored_digest(digest, signature) == stored
            for digest, signature, stored, stored_signature in zip(
                own.column("text_digest").to_pylist(),
                own.column("signature").to_pylist(),
                known.column("digest").to_pylist(),
                known.column("signature").to_pylist(),
                strict=True,
            )
        ]
        return rows[found.candidate[np.array(same, dtype=bool)]]

    same = np.zeros(len(docs), dtype=bool)
    same[np.concatenate(view.each(same_rows, task.partitions(view.partitions)))] = True
    return same


def _same_verdicts(view: GateView, docs: pa.Table) -> Iterator[GatePart]:
    verdicts = (
        docs.append_column("kept_url", docs.column("url"))
        .append_column("kind", pa.array([SAME] * len(docs), pa.string()))
        .append_column("similarity", pa.array([1.0] * len(docs), pa.float64()))
    )
    yield from deal_verdicts(view, verdicts)


def deal_verdicts(view: GateView, verdicts: pa.Table) -> Iterator[GatePart]:
    """Deal verdicts by the shard of their segment: each shard is a task of its own."""
    shards = [int(segment.partition("-")[0]) for segment in verdicts.column("segment").to_pylist()]
    yield from deal(view, "verdicts", 0, verdicts, np.array(shards, dtype=np.int64))


def _canonical_places(docs: pa.Table) -> list[int]:
    urls, domains = docs.column("url").to_pylist(), docs.column("registered_domain").to_pylist()
    canonicals = docs.column("canonical_url").to_pylist()
    named = {
        (domain, canonical)
        for url, domain, canonical in zip(urls, domains, canonicals, strict=True)
        if canonical is not None and canonical != url
    }
    return [
        canonical_place(url, canonical, (domain, url) in named)
        for url, domain, canonical in zip(urls, domains, canonicals, strict=True)
    ]


class _Stored(NamedTuple):
    """Sketches of the index that stand: which query asked for each, and the URL key of each."""

    rows: pa.Table
    query: np.ndarray
    url_keys: np.ndarray


def verify_matches(view: GateView, task: Task, given: Given) -> Iterator[GatePart]:
    """Compare each query with the sketches of its page id and tell which earlier pages it is a copy of.

    A query with a digest asks for the same text, one without for an alike text. A page that was asked in
    this round counts only if it still holds the text that the index has of it.
    """
    queries = given.table("queries")
    asked = _asked(given.table("docs", ["host_key", "url_key", "text_digest", "signature"]))
    ids = numbers(queries, "page_id")
    owner = partitions_of(ids, view.partitions)

    def verify(partition: int) -> pa.Table:
        entries, rows = view.entries(SKETCHES.name, partition), np.flatnonzero(owner == partition)
        if not entries or not len(rows):
            return SCHEMAS["stored"].empty_table()
        stored = _standing(view, entries, ids[rows], asked)
        return _links(view, queries.take(rows[stored.query]), stored).cast(SCHEMAS["stored"])

    links = pa.concat_tables(view.each(verify, task.partitions(view.partitions)))
    yield from deal(view, "stored", task.tasks, links, share_of(numbers(links, "text"), task.tasks))


def _asked(docs: pa.Table) -> dict[int, bytes]:
    """Return for each page that was asked in this round the digest that its text has now."""
    columns = (docs.column(name).to_pylist() for name in ("url_key", "text_digest", "signature"))
    return {
        url_key: stored_digest(digest, signature) if digest else b""
        for url_key, digest, signature in zip(*columns, strict=True)
    }


def _standing(view: GateView, entries: Iterable, ids: np.ndarray, asked: dict[int, bytes]) -> _Stored:
    wanted, place = np.unique(ids, return_inverse=True)
    found, url_keys = sketches_by_id(view.storage, list(entries), wanted, view.partitions)
    digests = found.rows.column("digest").to_pylist()
    stands = [
        asked.get(url_key, digest) == digest
        for url_key, digest in zip(url_keys.tolist(), digests, strict=True)
    ]
    rows = np.flatnonzero(stands)
    queries = np.argsort(place, kind="stable")
    candidate = found.candidate[rows]
    starts = np.searchsorted(place[queries], candidate, "left")
    counts = np.searchsorted(place[queries], candidate, "right") - starts
    row = np.repeat(rows, counts)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return _Stored(found.rows.take(row), queries[np.repeat(starts, counts) + offset], url_keys[row])


def _links(view: GateView, queries: pa.Table, stored: _Stored) -> pa.Table:
    """Return the links of row-wise pairs of a query and a stored sketch that are the same or alike."""
    digests, signatures = queries.column("text_digest").to_pylist(), queries.column("signature").to_pylist()
    kept_digests = stored.rows.column("digest").to_pylist()
    kept_signatures = stored.rows.column("signature").to_pylist()
    exact = np.array(
        [
            bool(digest) and own == signature and stored_digest(digest, own) == kept
            for digest, own, kept, signature in zip(
                digests, signatures, kept_digests, kept_signatures, strict=True
            )
        ],
        dtype=bool,
    )
    pairs = [bool(own) and bool(kept) for own, kept in zip(signatures, kept_signatures, strict=True)]
    similarity = np.zeros(len(queries))
    both = np.flatnonzero(pairs)
    similarity[both] = pair_similarities(
        byte_matrix(queries.column("signature").take(both), SIGNATURE_BYTES),
        byte_matrix(stored.rows.column("signature").take(both), SIGNATURE_BYTES),
    )
    near = np.array([not digest for digest in digests], dtype=bool) & (similarity >= view.policy.threshold)
    links = pa.table(
        {
            "text": queries.column("text"),
            "kept_url": stored.rows.column("url"),
            "kept_key": pa.array(stored.url_keys, pa.uint64()),
            "similarity": pa.array(np.where(exact, 1.0, similarity)),
            "kind": pa.array(np.where(exact, EXACT, NEAR)),
        }
    )
    links = links.filter(pa.array(exact | near)).sort_by("kind")
    # One pair meets in up to 16 buckets.
    pairs = np.stack([numbers(links, name) for name in ("text", "kept_key")], axis=1)
    return links.take(np.unique(pairs, axis=0, return_index=True)[1])
