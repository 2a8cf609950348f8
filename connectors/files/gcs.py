"""Storage in Google Cloud Storage, or in an emulator that STORAGE_EMULATOR_HOST names."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from connectors.files.base import StorageError, Versioned
from connectors.files.objects import Listed, ObjectStorage, Passing, Refused, Tail

TIMEOUT_SECONDS = (10, 60)
EMULATOR = "STORAGE_EMULATOR_HOST"


@functools.lru_cache(maxsize=4)
def _client(process: int, emulator: str | None) -> Any:
    """Return this process's client; a client must not cross a fork."""
    try:
        from google.auth.credentials import AnonymousCredentials
        from google.auth.exceptions import DefaultCredentialsError
        from google.cloud import storage
    except ImportError as error:
        raise StorageError(f"gs:// needs more packages: pip install 'roundcrawl[gcp]' ({error})") from error
    if emulator:
        return storage.Client(project="emulator", credentials=AnonymousCredentials())
    try:
        return storage.Client()
    except (DefaultCredentialsError, OSError) as error:
        raise StorageError(
            f"gs:// needs credentials: gcloud auth application-default login ({error})"
        ) from error


class GcsStorage(ObjectStorage):
    """Objects of a bucket; create-only is a write at generation 0, a version is a generation."""

    def _bucket(self) -> Any:
        return _client(os.getpid(), os.environ.get(EMULATOR)).bucket(self.bucket)

    def _blob(self, key: str) -> Any:
        return self._bucket().blob(key)

    def _get(self, key: str, offset: int, length: int | None) -> bytes:
        start, end = (None, None) if length is None else (offset, offset + length - 1)
        with self._explained(key):
            data = self._blob(key).download_as_bytes(
                start=start, end=end, raw_download=True, retry=None, timeout=TIMEOUT_SECONDS
            )
        return bytes(data)

    def _get_tail(self, key: str, length: int) -> Tail:
        with self._explained(key):
            data = self._blob(key).download_as_bytes(
                start=-length, raw_download=True, retry=None, timeout=TIMEOUT_SECONDS
            )
        return Tail(bytes(data), len(data) if len(data) < length else None)

    def _get_versioned(self, key: str) -> Versioned:
        try:
            with self._explained(key):
                blob = self._blob(key)
                blob.reload(retry=None, timeout=TIMEOUT_SECONDS)
                generation = blob.generation
                data = blob.download_as_bytes(
                    if_generation_match=generation, raw_download=True, retry=None, timeout=TIMEOUT_SECONDS
                )
        except Refused as error:
            raise Passing("replaced while it was read") from error
        return Versioned(bytes(data), str(generation))

    def _head(self, key: str) -> int:
        with self._explained(key):
            blob = self._blob(key)
            blob.reload(retry=None, timeout=TIMEOUT_SECONDS)
        return int(blob.size)

    def _put(self, key: str, source: BinaryIO, size: int, version: str | None) -> str:
        with self._explained(key, bucket_missing=version in ("", None)):
            blob = self._blob(key)
            blob.upload_from_file(
                source,
                size=size,
                content_type="application/octet-stream",
                if_generation_match=None if version is None else int(version or 0),
                retry=None,
                timeout=TIMEOUT_SECONDS,
            )
        return str(blob.generation)

    def _copy(self, old: str, new: str) -> None:
        source, target = self._blob(old), self._blob(new)
        token: str | None = None
        with self._explained(old):
            while True:
                token, _, _ = target.rewrite(
                    source, token=token, if_generation_match=0, retry=None, timeout=TIMEOUT_SECONDS
                )
                if token is None:
                    return

    def _delete(self, key: str) -> None:
        with self._explained(key):
            self._blob(key).delete(retry=None, timeout=TIMEOUT_SECONDS)

    def _list(self, prefix: str, *, folders_only: bool) -> Listed:
        with self._explained(prefix, bucket_missing=True):
            listing = self._bucket().list_blobs(
                prefix=prefix,
                delimiter="/" if folders_only else None,
                fields="items(name,size,updated),prefixes,nextPageToken",
                retry=None,
                timeout=TIMEOUT_SECONDS,
            )
            objects = [(blob.name, int(blob.size), blob.updated.timestamp()) for blob in listing]
            return Listed(objects, listing.prefixes)

    @contextlib.contextmanager
    def _explained(self, key: str, *, bucket_missing: bool = False) -> Iterator[None]:
        """Turn what the client library raises into the answers that ObjectStorage knows."""
        from google.api_core.exceptions import GoogleAPICallError
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        try:
            yield
        except GoogleAPICallError as error:
            no_bucket = bucket_missing or "bucket does not exist" in str(error)
            raise self._answer(int(error.code or 0), str(error), bucket_missing=no_bucket) from error
        except InvalidResponse as error:
            status = int(error.response.status_code)
            raise self._answer(status, str(error), bucket_missing=bucket_missing) from error
        except (RequestException, HTTPError, TransportError, DataCorruption, ConnectionError) as error:
            raise Passing(str(error)) from error
        except GoogleAuthError as error:
            raise StorageError(f"gs://{self.bucket}/{key}: no valid credentials ({error})") from error
