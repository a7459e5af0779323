"""S3 and compatible services, through botocore.

botocore is the only client that finds credentials wherever the AWS command line does, and that supports UploadPartCopy, with which the
store copies the old bytes itself.

It is configured like other tools: `AWS_PROFILE`, `AWS_ACCESS_KEY_ID` and the rest, `~/.aws/config`, single sign-on, web identity, the
roles of containers and machines; `AWS_ENDPOINT_URL` (or `AWS_ENDPOINT_URL_S3`) for a service other than Amazon's, then with the bucket
in the path; `AWS_REGION`; `AWS_NO_SIGN_REQUEST=true` for public buckets without credentials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

import botocore.config
import botocore.exceptions as wrong
import botocore.session
from botocore import UNSIGNED

from sbbf_tool.errors import MissingError, UnreadableError
from sbbf_tool.storage.objects.s3_errors import NoSuchRangeError, NotS3Error, call
from sbbf_tool.storage.objects.store import (
    CONNECT_SECONDS,
    IN_FLIGHT,
    READ_SECONDS,
    TRIES,
    OtherVersionError,
    Version,
    retry,
)

_BODY_ERRORS = (wrong.ResponseStreamingError, wrong.IncompleteReadError, wrong.ReadTimeoutError, wrong.ConnectionClosedError)
_PAGE_KEYS = 1000
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class S3Bucket:
    """The reading half of `ObjectStore` for a bucket; `s3_publish` has the writing half."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.client = call(lambda: client(os.getpid()), bucket)

    def tail(self, key: str, length: int) -> tuple[bytes, Version]:
        try:
            return self._get_range(key, f"bytes=-{length}")
        except NoSuchRangeError:
            # S3 returns this error for an empty object.
            version = self.version(key)
            if version is None:
                raise MissingError("no such object") from None
            return b"", version

    def get(self, key: str, offset: int, length: int, version: Version) -> bytes:
        try:
            data, current = self._get_range(key, f"bytes={offset}-{offset + length - 1}", IfMatch=version.tag)
        except NoSuchRangeError:
            raise OtherVersionError from None
        if current != version:
            raise OtherVersionError
        return data

    def _get_range(self, key: str, range_header: str, **conditions: Any) -> tuple[bytes, Version]:
        def request() -> tuple[bytes, Version]:
            answer = self.client.get_object(Bucket=self.bucket, Key=key, Range=range_header, **conditions)
            size, length = answer["ContentLength"], answer["ContentLength"]
            if (match := _RANGE.fullmatch(answer.get("ContentRange", ""))) is not None:
                first, last, size = (int(number) for number in match.groups())
                if (first, last) != _expected_range(range_header, size) or last - first + 1 != length:
                    answer["Body"].close()
                    raise UnreadableError(f"the store sent bytes {first} to {last} instead of {range_header}")
            elif not range_header.startswith("bytes=-") or size > int(range_header.removeprefix("bytes=-")):
                answer["Body"].close()
                raise UnreadableError("the store does not support range requests: it sent the whole object")
            return answer["Body"].read(), Version(size, answer.get("ETag"))

        return call(lambda: retry(request, lambda error: isinstance(error, _BODY_ERRORS)), self.bucket)

    def version(self, key: str) -> Version | None:
        try:
            metadata = self.head(key)
        except MissingError:
            return None
        return Version(metadata["ContentLength"], metadata.get("ETag"))

    def modified(self, key: str) -> float | None:
        try:
            instant = self.head(key).get("LastModified")
        except MissingError:
            return None
        return instant.timestamp() if isinstance(instant, datetime) else None

    def head(self, key: str) -> dict[str, Any]:
        """Return all metadata that the store reports for an object. Raises MissingError."""
        metadata: dict[str, Any] = call(lambda: self.client.head_object(Bucket=self.bucket, Key=key), self.bucket)
        return metadata

    def keys(self, prefix: str, limit: int | None = None, after: str = "") -> Iterator[str]:
        return (key for key, _ in self.objects(prefix, limit, after))

    def objects(self, prefix: str, limit: int | None = None, after: str = "") -> Iterator[tuple[str, Version]]:
        request: dict[str, Any] = {"Bucket": self.bucket, "Prefix": prefix, "MaxKeys": min(limit or _PAGE_KEYS, _PAGE_KEYS)}
        if after:
            request["StartAfter"] = after
        while limit is None or limit > 0:
            objects, next_token = call(lambda: self._request_page(request), self.bucket)
            yield from objects[:limit]
            if next_token is None:
                return
            if next_token == request.get("ContinuationToken"):
                raise NotS3Error  # The same page would be returned forever.
            limit = None if limit is None else limit - len(objects)
            request["ContinuationToken"] = next_token

    def _request_page(self, request: dict[str, Any]) -> tuple[list[tuple[str, Version]], str | None]:
        """Request one page of a listing: its keys with their versions, and the token of the next page."""
        page = self.client.list_objects_v2(**request)
        next_token = page.get("NextContinuationToken") if page.get("IsTruncated") else None
        return [(entry["Key"], Version(entry.get("Size", 0), entry.get("ETag"))) for entry in page.get("Contents", ())], next_token


def _expected_range(range_header: str, size: int) -> tuple[int, int]:
    """Return the first and last byte that a `Range` header selects in an object of `size` bytes."""
    first, _, last = range_header.removeprefix("bytes=").partition("-")
    return (int(first), min(int(last), size - 1)) if first else (max(0, size - int(last)), size - 1)


@cache
def client(process: int) -> Any:
    """Return the client of this process for all buckets; it follows redirects to a bucket's region."""
    session = botocore.session.get_session()
    unsigned = os.environ.get("AWS_NO_SIGN_REQUEST", "").lower() in ("1", "true", "yes")
    # Stores other than Amazon's fail on the checksums that botocore adds by default. All of them support Content-MD5, which is sent
    # instead.
    checksums = {
        setting: os.environ.get(f"AWS_{setting.upper()}", "when_required")
        for setting in ("request_checksum_calculation", "response_checksum_validation")
    }
    config = botocore.config.Config(
        retries={"mode": "standard", "total_max_attempts": TRIES},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=2 * IN_FLIGHT,
        user_agent_extra="sbbf",
        **({"signature_version": UNSIGNED} if unsigned else {}),
        **checksums,
    )
    region = os.environ.get("AWS_REGION") or session.get_config_variable("region") or "us-east-1"
    return session.create_client("s3", region_name=region, config=config)
