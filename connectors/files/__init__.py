"""Files of a crawl, wherever they lie: a local folder, Google Cloud Storage or S3.

``open_storage(root)`` is the way in; ``Storage`` says what one can do. Local paths import
no cloud library, and nothing here imports Beam.
"""

from __future__ import annotations

import os

from connectors.files.base import (
    AlreadyThere,
    FileInfo,
    NotAFolder,
    Storage,
    StorageError,
    VersionChanged,
    Versioned,
    digest_of,
    disk_full,
    is_disk_full,
)
from connectors.files.local import LocalStorage

__all__ = [
    "AlreadyThere",
    "FileInfo",
    "NotAFolder",
    "Storage",
    "StorageError",
    "VersionChanged",
    "Versioned",
    "digest_of",
    "disk_full",
    "is_disk_full",
    "open_storage",
]


def open_storage(root: str) -> Storage:
    """Return the storage of a local folder, gs://bucket/prefix or s3://bucket/prefix.

    Opens nothing yet: a missing folder or bucket shows at the first use. Raises StorageError for
    another scheme.
    """
    scheme, mark, rest = root.partition("://")
    if not mark:
        return LocalStorage(os.path.abspath(root))  # noqa: PTH100
    if scheme not in ("gs", "s3") or not rest.strip("/"):
        raise StorageError(
            f"{root}: a crawl lies in a local folder, gs://bucket/prefix or s3://bucket/prefix"
        )
    if scheme == "gs":
        from connectors.files.gcs import GcsStorage

        return GcsStorage(root.rstrip("/"))
    from connectors.files.s3 import S3Storage

    return S3Storage(root.rstrip("/"))
