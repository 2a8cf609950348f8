"""Storage in S3, or in a compatible store that AWS_ENDPOINT_URL names."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from connectors.files.base import StorageError, Versioned
from connectors.files.objects import Listed, ObjectStorage, Passing, Tail

# 409: another conditional write of the key was in flight; S3 asks to try again.
PASSING_CODES = frozenset({"ConditionalRequestConflict", "RequestTimeout", "SlowDown", "InternalError"})


@functools.lru_cache(maxsize=4)
def _client(process: int, endpoint: str | None) -> Any:
    """Return this process's client; a client must not cross a fork."""
    try:
        from boto3.session import Session
        from botocore.config import Config
    except ImportError as error:
        raise StorageError(f"s3:// needs more packages: pip install 'roundcrawl[aws]' ({error})") from error
    once = Config(
        retries={"total_max_attempts": 1}, connect_timeout=10, read_timeout=60, max_pool_connections=32
    )
    return Session().client("s3", endpoint_url=endpoint, config=once)


class S3Storage(ObjectStorage):
    """Objects of a bucket; create-only is If-None-Match, a version is an ETag."""

    def _client(self) -> Any:
        return _client(os.getpid(), os.environ.get("AWS_ENDPOINT_URL"))

    def _get(self, key: str, offset: int, length: int | None) -> bytes:
        span = {} if length is None else {"Range": f"bytes={offset}-{offset + length - 1}"}
        with self._explained(key):
            answer = self._client().get_object(Bucket=self.bucket, Key=key, **span)
            return bytes(answer["Body"].read())

    def _get_tail(self, key: str, length: int) -> Tail:
        with self._explained(key):
            answer = self._client().get_object(Bucket=self.bucket, Key=key, Range=f"bytes=-{length}")
            data = bytes(answer["Body"].read())
        whole = answer.get("ContentRange", "").rpartition("/")[2]
        return Tail(data, int(whole) if whole.isdigit() else len(data))

    def _get_versioned(self, key: str) -> Versioned:
        with self._explained(key):
            answer = self._client().get_object(Bucket=self.bucket, Key=key)
            return Versioned(bytes(answer["Body"].read()), answer["ETag"])

    def _head(self, key: str) -> int:
        with self._explained(key):
            return int(self._client().head_object(Bucket=self.bucket, Key=key)["ContentLength"])

    def _put(self, key: str, source: BinaryIO, size: int, version: str | None) -> str:
        condition = {} if version is None else {"IfMatch": version} if version else {"IfNoneMatch": "*"}
        with self._explained(key):
            answer = self._client().put_object(
                Bucket=self.bucket,
                Key=key,
                Body=source,
                ContentLength=size,
                ContentType="application/octet-stream",
                **condition,
            )
            return str(answer["ETag"])

    def _copy(self, old: str, new: str) -> None:
        source = {"Bucket": self.bucket, "Key": old}
        with self._explained(old):
            self._client().copy_object(Bucket=self.bucket, Key=new, CopySource=source)

    def _delete(self, key: str) -> None:
        with self._explained(key):
            self._client().delete_object(Bucket=self.bucket, Key=key)

    def _list(self, prefix: str, *, folders_only: bool) -> Listed:
        delimiter = {"Delimiter": "/"} if folders_only else {}
        objects: list[tuple[str, int, float | None]] = []
        folders: list[str] = []
        with self._explained(prefix):
            pages = self._client().get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.bucket, Prefix=prefix, **delimiter):
                objects += [
                    (item["Key"], int(item["Size"]), item["LastModified"].timestamp())
                    for item in page.get("Contents", ())
                ]
                folders += [item["Prefix"] for item in page.get("CommonPrefixes", ())]
        return Listed(objects, folders)

    @contextlib.contextmanager
    def _explained(self, key: str) -> Iterator[None]:
        """Turn what the client library raises into the answers that ObjectStorage knows."""
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionError,
            HTTPClientError,
            IncompleteReadError,
        )
        from urllib3.exceptions import HTTPError

        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in PASSING_CODES:
                raise Passing(str(error)) from error
            status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
            raise self._answer(status, str(error), bucket_missing=code == "NoSuchBucket") from error
        except (HTTPClientError, ConnectionError, IncompleteReadError, HTTPError) as error:
            raise Passing(str(error)) from error
        except BotoCoreError as error:
            raise StorageError(f"s3://{self.bucket}/{key}: {error}; check the AWS settings") from error
