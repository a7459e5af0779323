"""S3 and what speaks like it, by botocore: the one client that finds credentials wherever the AWS command line does, and that has the
part copy with which the store moves the old bytes itself.

Configured as other tools are: `AWS_PROFILE`, `AWS_ACCESS_KEY_ID` and the rest, `~/.aws/config`, single sign-on, web identity, the roles of
containers and machines; `AWS_ENDPOINT_URL` (or `AWS_ENDPOINT_URL_S3`) for another service than Amazon's, then with the bucket in the
path; `AWS_REGION`; `AWS_NO_SIGN_REQUEST=true` for public buckets without credentials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import botocore.config
import botocore.exceptions as wrong
import botocore.session
from botocore import UNSIGNED

from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.storage.objects.location import Location
from sbbf_tool.storage.objects.source import IN_FLIGHT
from sbbf_tool.storage.objects.store import (
    CONNECT_SECONDS,
    READ_SECONDS,
    TRIES,
    Answer,
    DeniedError,
    MissingError,
    OtherVersionError,
    Version,
    tried,
)
from sbbf_tool.storage.source import Bytes, Source

_CREDENTIALS = "check AWS_PROFILE, AWS_ACCESS_KEY_ID and the like, or the role; AWS_NO_SIGN_REQUEST=true reads public buckets"
_BODY_ERRORS = (wrong.ResponseStreamingError, wrong.IncompleteReadError, wrong.ReadTimeoutError, wrong.ConnectionClosedError)
_PAGE_KEYS = 1000
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class S3Store:
    """See `ObjectStore`."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.client = answered(lambda: client(os.getpid()), bucket)

    def tail(self, key: str, length: int) -> tuple[bytes, Version]:
        try:
            return self._ranged(key, f"bytes=-{length}")
        except _NoSuchRangeError:
            # So S3 answers for an object without bytes.
            version = self.version(key)
            if version is None:
                raise MissingError("no such object") from None
            return b"", version

    def get(self, key: str, offset: int, length: int, version: Version) -> bytes:
        try:
            data, found = self._ranged(key, f"bytes={offset}-{offset + length - 1}", IfMatch=version.tag)
        except _NoSuchRangeError:
            raise OtherVersionError from None
        if found != version:
            raise OtherVersionError
        return data

    def _ranged(self, key: str, wanted: str, **pinned: Any) -> tuple[bytes, Version]:
        def ask() -> tuple[bytes, Version]:
            answer = self.client.get_object(Bucket=self.bucket, Key=key, Range=wanted, **pinned)
            size, found = answer["ContentLength"], _RANGE.fullmatch(answer.get("ContentRange", ""))
            if found is not None:
                first, last, size = (int(number) for number in found.groups())
                if last - first + 1 != answer["ContentLength"] or not wanted.startswith((f"bytes={first}-", "bytes=-")):
                    raise UnreadableError(f"the store answered with bytes {first} to {last} where {wanted} were asked for")
            elif not wanted.startswith("bytes=-") or size > int(wanted.removeprefix("bytes=-")):
                answer["Body"].close()
                raise UnreadableError("the store cannot give a part of an object: it answered with the whole")
            return answer["Body"].read(), Version(size, answer.get("ETag"))

        return answered(lambda: tried(ask, lambda error: isinstance(error, _BODY_ERRORS)), self.bucket)

    def version(self, key: str) -> Version | None:
        try:
            found = self.head(key)
        except MissingError:
            return None
        return Version(found["ContentLength"], found.get("ETag"))

    def head(self, key: str) -> dict[str, Any]:
        """All that the store tells of an object. Raises MissingError."""
        found: dict[str, Any] = answered(lambda: self.client.head_object(Bucket=self.bucket, Key=key), self.bucket)
        return found

    def keys(self, prefix: str, limit: int | None = None) -> Iterator[str]:
        asked = {"Bucket": self.bucket, "Prefix": prefix, "MaxKeys": min(limit or _PAGE_KEYS, _PAGE_KEYS)}
        while limit is None or limit > 0:
            page: dict[str, Any] = answered(lambda: self.client.list_objects_v2(**asked), self.bucket)
            found = [entry["Key"] for entry in page.get("Contents", ())]
            yield from found[:limit]
            if not page.get("IsTruncated") or not page.get("NextContinuationToken"):
                return
            limit = None if limit is None else limit - len(found)
            asked["ContinuationToken"] = page["NextContinuationToken"]

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        from sbbf_tool.storage.objects import s3_publish

        s3_publish.ensure_writable(self, target, in_place)

    def replace(self, source: Source, target: Location, keep: int, pieces: tuple[Bytes, ...]) -> list[str]:
        from sbbf_tool.storage.objects import s3_publish

        return s3_publish.replace(self, source, target, keep, pieces)


@cache
def client(process: int) -> Any:
    """The client of this process, for all buckets: it follows each to its region."""
    session = botocore.session.get_session()
    unsigned = os.environ.get("AWS_NO_SIGN_REQUEST", "").lower() in ("1", "true", "yes")
    # Other stores than Amazon's stumble over the checksums that botocore would add; ours go along as Content-MD5, which all of them know.
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


class _NoSuchRangeError(UnreadableError):
    """The object ends before the range begins."""


def answered(ask: Callable[[], Answer], bucket: str) -> Answer:
    """What the store answers, or its error as one of this package's."""
    try:
        return ask()
    except (wrong.BotoCoreError, wrong.ClientError) as error:
        raise told(error, bucket) from error


def code_of(error: wrong.ClientError) -> tuple[int, str]:
    """Status and code of an answer that is an error; the code is the status again where there was no body."""
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return status, str(error.response.get("Error", {}).get("Code") or status)


def told(error: wrong.BotoCoreError | wrong.ClientError, bucket: str) -> SbbfError:
    """The error in this package's words; of what the service wrote only its code is repeated."""
    if isinstance(error, wrong.ClientError):
        return _of_answer(*code_of(error), bucket)
    if isinstance(error, wrong.ParamValidationError):
        return UsageError(f"{bucket!r} cannot be a bucket's name, or the key is empty or too long")
    if isinstance(error, wrong.ProfileNotFound | wrong.ConfigParseError | wrong.InvalidConfigError | wrong.ConfigNotFound):
        return UnreadableError(f"the profile named by AWS_PROFILE, or the file it is in, cannot be used ({type(error).__name__})")
    if isinstance(error, wrong.HTTPClientError | wrong.ConnectionError):
        name = type(error).__name__.removesuffix("Error")
        return UnreadableError(
            f"the store cannot be reached ({name}, {TRIES} tries)", hint="check the network, AWS_ENDPOINT_URL, AWS_REGION"
        )
    if "Credential" in type(error).__name__ or "SSO" in type(error).__name__ or "Token" in type(error).__name__:
        return DeniedError(f"no credentials that can be used ({type(error).__name__})", hint=_CREDENTIALS)
    return UnreadableError(f"the store cannot be asked ({type(error).__name__})")


def _of_answer(status: int, code: str, bucket: str) -> SbbfError:
    if code == "NoSuchBucket":
        return MissingError(f"no such bucket: {bucket}")
    if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"):
        return DeniedError(f"the store does not take the credentials ({code})", hint=_CREDENTIALS)
    if code == "InvalidObjectState":
        return UnreadableError("the object is archived", hint="restore it first")
    if status == 404:
        return MissingError("no such object")
    if status in (401, 403):
        return DeniedError(f"access denied ({code})", hint=_CREDENTIALS)
    if code in ("PreconditionFailed", "ConditionalRequestConflict"):
        return OtherVersionError()
    if status == 416:
        return _NoSuchRangeError("no such range")
    if status in (301, 307, 400) and code in ("PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect", "301", "307"):
        return UnreadableError(f"the bucket is in another region ({code})", hint="set AWS_REGION")
    tries = f", {TRIES} tries" if status >= 500 else ""
    return UnreadableError(f"the store answered {status}{'' if code == str(status) else ' ' + code}{tries}")
