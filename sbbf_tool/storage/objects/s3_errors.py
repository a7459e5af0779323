"""The errors of requests to S3: those of botocore, as errors of this package."""

from __future__ import annotations

import re
from collections.abc import Callable

import botocore.exceptions as wrong
from botocore.parsers import ResponseParserError

from sbbf_tool.errors import ArchivedError, MissingError, SbbfError, UnreadableError, UsageError
from sbbf_tool.storage.objects.retries import (
    TEMPORARY_STATUSES,
    SlowError,
    tries_of,
    unreachable_error,
)
from sbbf_tool.storage.objects.store import (
    Answer,
    CredentialsError,
    DeniedError,
    OtherVersionError,
    UnsupportedError,
    with_text_of,
)

_CREDENTIALS = (
    "check AWS_PROFILE, AWS_ACCESS_KEY_ID and the like, or the role; "
    "AWS_NO_SIGN_REQUEST=true reads public buckets"
)
ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
"""The storage classes whose objects cannot be read before they are restored."""
_CODE = re.compile(r"[A-Za-z0-9.]{1,64}")

# botocore parses a response before it checks it: pages, headers or XML of other servers raise one
# of the last six errors.
ERRORS = (
    wrong.BotoCoreError,
    wrong.ClientError,
    ResponseParserError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)
"""The errors that a request by botocore may raise."""


class NotS3Error(UnreadableError):
    """The server's answer does not come from an S3 service."""

    def __init__(self) -> None:
        super().__init__(
            "the server is not an S3 service, or redirects", hint="check AWS_ENDPOINT_URL"
        )


class NoSuchRangeError(UnreadableError):
    """The object ends before the range begins."""


def call(request: Callable[[], Answer], bucket: str) -> Answer:
    """Return the store's answer; convert its errors to errors of this package."""
    try:
        return request()
    except ERRORS as error:
        raise with_text_of(describe(error, bucket), error) from None


_BODY_ERRORS = (
    wrong.ResponseStreamingError,
    wrong.IncompleteReadError,
    wrong.ReadTimeoutError,
    wrong.ConnectionClosedError,
    wrong.ChecksumError,
)
_PROFILE_ERRORS = (
    wrong.ProfileNotFound,
    wrong.ConfigParseError,
    wrong.InvalidConfigError,
    wrong.ConfigNotFound,
)
_REJECTING_CODES = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidToken",
    "TokenRefreshRequired",
)
_REGION_CODES = (
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "TemporaryRedirect",
    "301",
    "307",
)
_TEMPORARY_CODES = (
    "BandwidthLimitExceeded",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestTimeout",
    "SlowDown",
)


def is_unreachable(error: Exception) -> bool:
    """Return whether no answer came from a server."""
    return isinstance(error, wrong.HTTPClientError | wrong.ConnectionError)


def is_temporary(error: Exception) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, SlowError):
        return True
    if isinstance(error, wrong.ClientError):
        status, code = code_of(error)
        return status in TEMPORARY_STATUSES or code in _TEMPORARY_CODES or "Throttl" in code
    return is_unreachable(error) or isinstance(error, _BODY_ERRORS)


def refusal_of(error: Exception) -> str | None:
    """Return the code of an answer that refuses the credentials, as after their time; None for any
    other error. The answer to a HEAD request has no code but its status."""
    if isinstance(error, wrong.ClientError):
        status, code = code_of(error)
        if code in _REJECTING_CODES or (code == str(status) and status in (400, 401, 403)):
            return code
    return None


def code_of(error: wrong.ClientError) -> tuple[int, str]:
    """Return status and code of an error response; the code is the status again if the response has
    no code that S3 could have sent."""
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(error.response.get("Error", {}).get("Code") or status)
    return status, code if _CODE.fullmatch(code) else str(status)


def describe(error: Exception, bucket: str) -> SbbfError:
    """Translate an error of botocore. Of the service's text, only the code is repeated."""
    if isinstance(error, wrong.ClientError):
        return _of_answer(error, bucket)
    if not isinstance(error, wrong.BotoCoreError):
        return NotS3Error()
    if isinstance(error, wrong.ParamValidationError):
        return UsageError(f"{bucket!r} is not a valid bucket name, or the key is empty or too long")
    if isinstance(error, _PROFILE_ERRORS):
        return UnreadableError(
            "the profile named by AWS_PROFILE, or the file it is in, cannot be used "
            f"({type(error).__name__})"
        )
    if is_unreachable(error):
        return unreachable_error(error, "check the network, AWS_ENDPOINT_URL, AWS_REGION")
    kind = type(error).__name__
    if "Credential" in kind or "SSO" in kind or "Token" in kind:
        return CredentialsError(f"no usable credentials ({kind})", hint=_CREDENTIALS)
    return UnreadableError(f"the request to the store failed ({kind})")


def _of_answer(error: wrong.ClientError, bucket: str) -> SbbfError:
    status, code = code_of(error)
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    if 300 <= status < 400 and code == str(status) and "x-amz-bucket-region" not in headers:
        return NotS3Error()
    if code == "NoSuchBucket":
        return MissingError(f"no such bucket: {bucket}")
    if code in _REJECTING_CODES:
        return CredentialsError(f"the store rejects the credentials ({code})", hint=_CREDENTIALS)
    if code == "InvalidObjectState":
        storage_class = str(error.response.get("Error", {}).get("StorageClass"))
        name = f" in storage class {storage_class}" if storage_class in ARCHIVES else ""
        return ArchivedError(f"the object is archived{name}", hint="restore it first")
    return _of_status(error, status, code)


def _of_status(error: wrong.ClientError, status: int, code: str) -> SbbfError:
    if status == 404:
        return MissingError("no such object")
    if status in (401, 403):
        return DeniedError(f"access denied ({code})", hint=_CREDENTIALS)
    if code in ("PreconditionFailed", "ConditionalRequestConflict"):
        return OtherVersionError()
    if (status, code) == (501, "NotImplemented"):
        return UnsupportedError("the store does not support a required operation (NotImplemented)")
    if status == 416:
        return NoSuchRangeError("no such range")
    if status in (301, 307, 400) and code in _REGION_CODES:
        return UnreadableError(f"the bucket is in another region ({code})", hint="set AWS_REGION")
    answer = f"{status}" if code == str(status) else f"{status} {code}"
    tries = tries_of(error)
    if tries > 1:
        answer += f", {tries} tries"
    return UnreadableError(f"the store answered {answer}")
