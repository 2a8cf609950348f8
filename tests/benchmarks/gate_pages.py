"""Pages without number for the benchmarks of the content gate: each is a hash of its number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from connectors.rows import row_schema
from crawler.ranks import mix
from schemas.page import SketchRow

PAGES_A_HOST = 50
_SECTIONS = ("news", "product", "blog", "archive", "wiki", "forum/thread", "en/article", "item")


class Pages:
    """Pages by number: everything about one is a hash of its number, so that none need be remembered."""

    def __init__(self, numbers: np.ndarray, texts: np.ndarray | None = None) -> None:
        self.numbers = numbers.astype(np.uint64)
        self.texts = self.numbers if texts is None else texts.astype(np.uint64)
        self.host_keys = mix(self.numbers // np.uint64(PAGES_A_HOST) + np.uint64(1 << 40))
        self.url_keys = mix(self.numbers + np.uint64(1 << 41))

    def urls(self) -> list[str]:
        """Return URLs of about 60 characters."""
        hosts = [f"www.site-{n // PAGES_A_HOST:x}.example" for n in self.numbers.tolist()]
        return [
            f"https://{host}/{_SECTIONS[n % 8]}/{n * 2654435761 % 2**32:x}/page-{n}.html"
            for host, n in zip(hosts, self.numbers.tolist(), strict=True)
        ]

    def digests(self) -> np.ndarray:
        """Return the text digests as rows of 16 bytes."""
        halves = [mix(self.texts + np.uint64(1 << 42)), mix(self.texts + np.uint64(1 << 43))]
        return np.stack(halves, axis=1).astype(">u8").view(np.uint8)

    def signatures(self) -> np.ndarray:
        """Return the signatures as rows of 64 bytes."""
        places = self.texts[:, None] * np.uint64(8) + np.arange(8, dtype=np.uint64)
        return np.ascontiguousarray(mix(places + np.uint64(1 << 44))).view(np.uint8)

    def bands(self) -> np.ndarray:
        """Return the 16 band hashes of each page; the n-th band of all pages lies in partition n mod 64."""
        return band_hashes(self.texts[:, None] * np.uint64(16) + np.arange(16, dtype=np.uint64))


def band_hashes(numbers: np.ndarray) -> np.ndarray:
    """Return the hash of the n-th band of all pages: its first six bits are n's last."""
    return numbers << np.uint64(58) | mix(numbers + np.uint64(1 << 45)) >> np.uint64(6)


def as_binary(rows: np.ndarray) -> pa.Array:
    """Return the rows of a matrix of bytes as byte strings."""
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(rows.shape[1]), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows))]
    )
    return fixed.cast(pa.binary())


def kept_table(pages: Pages) -> pa.Table:
    """Return pages as rows of KeptRow."""
    return pa.table(
        {
            "host_key": pa.array(pages.host_keys),
            "url_key": pa.array(pages.url_keys),
            "url": pages.urls(),
            "digest": as_binary(pages.digests()[:, 8:]),
            "signature": as_binary(pages.signatures()),
        }
    )


def sketch_table(pages: Pages, digests: np.ndarray, signatures: np.ndarray, bands: np.ndarray) -> pa.Table:
    """Return pages as rows of SketchRow."""
    count, urls = len(pages.numbers), pages.urls()
    columns = {
        "host_key": pa.array(pages.host_keys),
        "url_key": pa.array(pages.url_keys),
        "url": urls,
        "surt_key": urls,
        "registered_domain": [url.split("/")[2].removeprefix("www.") for url in urls],
        "depth": [1] * count,
        "canonical_url": pa.nulls(count, pa.string()),
        "text_digest": as_binary(digests),
        "words": [600] * count,
        "signature": as_binary(signatures),
        "bands": pa.ListArray.from_arrays(
            np.arange(count + 1, dtype=np.int32) * 16, pa.array(bands.ravel(), pa.uint64())
        ),
    }
    return pa.table(columns).select(row_schema(SketchRow).names).cast(row_schema(SketchRow))
