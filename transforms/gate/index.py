"""The content index: which texts the crawl keeps, findable by digest, by band and by page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from connectors import runs
from connectors.files import Storage
from connectors.rows import rows_to_table
from crawler.fingerprints import page_ids, url_keys_of
from schemas.manifest import FileEntry
from schemas.page import KeptRow

_SHORT_KEYS = (("k1", "DELTA_BINARY_PACKED"), ("k2", "BYTE_STREAM_SPLIT"))

DIGESTS = runs.RunTable("digests", encodings=_SHORT_KEYS)
"""(first 40 bits of the text digest, page id). A row may be stale: the page's sketch says what counts."""

BANDS = runs.RunTable("bands", encodings=_SHORT_KEYS)
"""(bucket of 36 bits, page id), 16 rows a page; stale rows as in DIGESTS."""

SKETCHES = runs.RunTable(
    "sketches",
    runs.NEWEST_WINS,
    pa.schema(
        [
            pa.field("url", pa.string(), nullable=False),
            pa.field("digest", pa.binary(), nullable=False),
            pa.field("signature", pa.binary(), nullable=False),
            pa.field("removed", pa.bool_(), nullable=False),
        ]
    ),
    encodings=(*_SHORT_KEYS, *((name, "DELTA_LENGTH_BYTE_ARRAY") for name in ("url", "digest", "signature"))),
)
"""(page id, rest of the URL key) of each page in the pages table, with its present text's fingerprints."""


def sketch_rows(kept: pa.Table, partitions: int) -> pa.Table:
    """Return rows of SKETCHES for a table of KeptRow."""
    keys = _keys(kept.column("host_key").to_numpy(), kept.column("url_key").to_numpy(), partitions)
    for name in ("url", "digest", "signature"):
        keys = keys.append_column(SKETCHES.schema.field(name), kept.column(name))
    return keys.append_column(SKETCHES.schema.field("removed"), pa.array([False] * len(kept), pa.bool_()))


def tombstone_rows(pages: Sequence[tuple[int, int]], partitions: int) -> pa.Table:
    """Return rows of SKETCHES that take pages, given as (host key, URL key), out of the index.

    Their digests and bands may stay: a match counts only if the page's sketch confirms it.
    """
    keys = np.array(pages, dtype=np.uint64).reshape(-1, 2)
    gone = rows_to_table([KeptRow(0, 0, "", b"", b"")] * len(keys), KeptRow)
    table = _keys(keys[:, 0], keys[:, 1], partitions)
    for name in ("url", "digest", "signature"):
        table = table.append_column(SKETCHES.schema.field(name), gone.column(name))
    return table.append_column(SKETCHES.schema.field("removed"), pa.array([True] * len(keys), pa.bool_()))


def index_update(
    kept: Sequence[pa.Table], removed: Sequence[tuple[int, int]], partitions: int
) -> pa.Table | None:
    """Return what a round adds to a partition's SKETCHES: pages kept, pages that left; None if neither.

    A page that is in both was kept.
    """
    tables = [sketch_rows(table, partitions) for table in kept]
    rows = pa.concat_tables([tombstone_rows(removed, partitions), *tables])
    return rows if rows.num_rows else None


def sketches_of_pages(
    storage: Storage, entries: Sequence[FileEntry], host_keys: runs.Keys, url_keys: runs.Keys, partitions: int
) -> runs.Found:
    """Return the sketches that these pages of one partition have in the index."""
    return runs.lookup(storage, SKETCHES, entries, *page_ids(host_keys, url_keys, partitions))


def sketches_by_id(
    storage: Storage, entries: Sequence[FileEntry], ids: runs.Keys, partitions: int
) -> tuple[runs.Found, runs.Keys]:
    """Return the sketches with these page ids, all of one partition, and the URL key of each row."""
    found = runs.lookup(storage, SKETCHES, entries, ids)
    k1, k2 = (found.rows.column(name).to_numpy() for name in ("k1", "k2"))
    return found, url_keys_of(k1, k2, partitions)


def _keys(host_keys: runs.Keys, url_keys: runs.Keys, partitions: int) -> pa.Table:
    ids, rests = page_ids(host_keys, url_keys, partitions)
    return pa.table({"k1": pa.array(ids, pa.uint64()), "k2": pa.array(rests, pa.uint64())})
