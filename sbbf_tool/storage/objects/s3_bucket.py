"""S3 and compatible services, through botocore.

botocore is the only client that finds credentials wherever the AWS command line does, and that
supports UploadPartCopy, with which the store copies the old bytes itself.

It is configured like other tools: `AWS_PROFILE`, `AWS_ACCESS_KEY_ID` and the rest, `~/.aws/config`,
single sign-on, web identity, the roles of containers and machines; `AWS_ENDPOINT_URL` (or
`AWS_ENDPOINT_URL_S3`) for a service other than Amazon's, then with the bucket in the path;
`AWS_REGION`; `AWS_NO_SIGN_REQUEST=true` for public buckets without credentials;
`AWS_REQUEST_PAYER=requester` for buckets whose requests the reader pays; `AWS_MAX_ATTEMPTS`,
without which `retries` decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple

import botocore.config
import botocore.exceptions as wrong
import botocore.session
import urllib3
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse

from sbbf_tool.errors import MissingError, UnreadableError
from sbbf_tool.storage.objects.answers import read_answer
from sbbf_tool.storage.objects.lease import LeasePart
from sbbf_tool.storage.objects.paging import Listed, endless_error, list_once
from sbbf_tool.storage.objects.retries import (
    IN_FLIGHT,
    Budget,
    Retries,
    retries_of,
    seconds_for,
    within,
)
from sbbf_tool.storage.objects.s3_errors import (
    NoSuchRangeError,
    call,
    is_temporary,
    is_unreachable,
    refusal_of,
)
from sbbf_tool.storage.objects.s3_errors import NotS3Error as NotS3Error
from sbbf_tool.storage.objects.s3_keys import LeasedCredentials, S3Keys
from sbbf_tool.storage.objects.store import (
    CONNECT_SECONDS,
    READ_SECONDS,
    Answer,
    ObjectStore,
    OtherVersionError,
    Version,
)

COPIED_ATTRIBUTES = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "Metadata",
    "WebsiteRedirectLocation",
    "StorageClass",
    "ServerSideEncryption",
    "SSEKMSKeyId",
    "BucketKeyEnabled",
)
"""The attributes of an object that its new version keeps, by their names in requests and
answers."""
_ATTRIBUTES = (*COPIED_ATTRIBUTES, "ObjectLockMode", "ObjectLockLegalHoldStatus")
_PAGE_KEYS = 1000
_USUAL_ANSWER_BYTES = 1 << 20
"""Length of a long list or a head, of which no request states the length."""
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class S3Bucket(ObjectStore):
    """The reading half of `ObjectStore` for a bucket; `s3_publish` has the writing half."""

    def __init__(self, bucket: str, lease: LeasePart[S3Keys] | None = None) -> None:
        """Without a lease, the credentials are those of the environment."""
        self.bucket = bucket
        self.lease = lease
        process = os.getpid()
        tries = call(lambda: budget(process), bucket)
        if lease is None:
            self.client = call(lambda: client(process), bucket)
            self.retries = retries_of(process, "s3", bucket, tries)
        else:
            self.client = call(lambda: make_client(lease), bucket)
            self.retries = Retries(tries)

    def send(self, request: Callable[[], Answer]) -> Answer:
        """Return the answer to a request by botocore, which is repeated while its errors are
        temporary, and once with renewed credentials. Raises errors of this package."""
        repeat = partial(self.retries.call, request, is_temporary, is_unreachable)
        if self.lease is not None:
            repeat = partial(self.lease.call, repeat, refusal_of)
        return call(repeat, self.bucket)

    def _read(self, request: Callable[[], Answer], length: int = _USUAL_ANSWER_BYTES) -> Answer:
        """Return the answer to a request that changes nothing, as `send` does, within the time for
        so many bytes."""
        return self.send(lambda: within(seconds_for(length), request))

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
        conditions = {}
        if version.strong_tag is not None:
            conditions["IfMatch"] = version.strong_tag
        try:
            data, current = self._get_range(
                key, f"bytes={offset}-{offset + length - 1}", **conditions
            )
        except NoSuchRangeError:
            raise OtherVersionError from None
        if current != version:
            raise OtherVersionError
        return data

    def _get_range(self, key: str, range_header: str, **conditions: Any) -> tuple[bytes, Version]:
        def request() -> tuple[bytes, Version]:
            answer = self.client.get_object(
                Bucket=self.bucket, Key=key, Range=range_header, **conditions
            )
            with closing(answer["Body"]) as body:
                length, size = _parse_range(answer, range_header)
                # A body may go on for ever, whatever its headers say. A read at its end verifies
                # its length and checksum.
                data = body.read(length)
                if body.read(1) or len(data) != length:
                    raise UnreadableError(
                        f"the store sent more or less than the {length:,} bytes that it states"
                    )
            attributes = {name: answer[name] for name in _ATTRIBUTES if answer.get(name)}
            return data, Version(size, answer.get("ETag"), attributes=attributes)

        first, _, last = range_header.removeprefix("bytes=").partition("-")
        return self._read(request, int(last) - int(first or 0) + 1)

    def version(self, key: str) -> Version | None:
        try:
            metadata: dict[str, Any] = self._read(
                lambda: self.client.head_object(Bucket=self.bucket, Key=key)
            )
        except MissingError:
            return None
        if "ContentLength" not in metadata:
            raise UnreadableError("the store does not state the length of the object")
        instant = metadata.get("LastModified")
        time = instant.timestamp() if isinstance(instant, datetime) else None
        return Version(metadata["ContentLength"], metadata.get("ETag"), time=time)

    def objects(
        self, prefix: str, limit: int | None = None, after: str = ""
    ) -> Iterator[tuple[str, Version]]:
        most = min(limit or _PAGE_KEYS, _PAGE_KEYS)
        yield from islice(list_once(lambda: self._pages(prefix, after, most)), limit)

    def _pages(self, prefix: str, after: str, most: int) -> Iterator[list[Listed]]:
        """Yield the pages of a list. Raises UnreadableError if it does not go on where it should.

        Servers that know only the first version of the protocol answer with it: their lists go on
        after a key (`marker`), and so do those that state no token (`start-after`).
        """
        request = {"Bucket": self.bucket, "Prefix": prefix, "MaxKeys": most}
        first = {**request, "StartAfter": after} if after else request
        page = self._page(self.client.list_objects_v2, **first)
        tokens = set[str]()
        while True:
            # Servers of the first version do not know `StartAfter`.
            yield [listed for listed in page.objects if listed[0] > after]
            if page.is_last:
                return
            token = page.token
            if token in tokens:
                raise endless_error("the store lists the same objects again and again")
            if token:
                tokens.add(token)
                page = self._page(self.client.list_objects_v2, **request, ContinuationToken=token)
            elif page.objects:
                mark = max(after, *(key for key, _ in page.objects))
                page = self._page_after(mark, page.is_first_version, **request)
            else:
                raise self._unfinished_error()

    def _page_after(self, mark: str, is_first_version: bool, **request: Any) -> _ListPage:
        """Return the page of a list that begins after a key. Raises UnreadableError if the server
        can only begin at its first key."""
        ways = [
            (self.client.list_objects_v2, {"StartAfter": mark}),
            (self.client.list_objects, {"Marker": mark}),
        ]
        if is_first_version:
            ways.reverse()
        for operation, start in ways:
            page = self._page(operation, **request, **start)
            keys = [key for key, _ in page.objects]
            is_end = page.is_last and all(key == mark for key in keys)
            if is_end or any(key > mark for key in keys):
                return page
        raise self._unfinished_error()

    def _page(self, operation: Callable[..., dict[str, Any]], **request: Any) -> _ListPage:
        return self._read(lambda: _parse_page(operation(**request)))

    def _unfinished_error(self) -> UnreadableError:
        return endless_error(
            f"the server {self.client.meta.endpoint_url} states that its list goes on, but neither "
            "how nor what comes next (it ignores marker and start-after)"
        )


class _ListPage(NamedTuple):
    objects: list[Listed]
    is_last: bool
    token: str
    """What the request for the next page must state; empty if the server states none."""
    is_first_version: bool
    """Whether the answer is one of the first version of the protocol."""


def _parse_page(answer: dict[str, Any]) -> _ListPage:
    objects = [
        (str(entry["Key"]), Version(entry.get("Size", 0), entry.get("ETag")))
        for entry in answer.get("Contents", ())
    ]
    is_last = not answer.get("IsTruncated")
    token = answer.get("NextContinuationToken") or ""
    return _ListPage(objects, is_last, token, is_first_version="KeyCount" not in answer)


def _parse_range(answer: dict[str, Any], range_header: str) -> tuple[int, int]:
    """Return how many bytes an answer states, and how many the object has. Raises UnreadableError
    if they are not those of the range that was requested."""
    length = answer.get("ContentLength")
    match = _RANGE.fullmatch(answer.get("ContentRange", ""))
    if match is None:
        is_end = range_header.startswith("bytes=-")
        if length is None or not is_end or length > int(range_header.removeprefix("bytes=-")):
            raise UnreadableError(
                "the store does not support range requests: it sent the whole object"
            )
        return length, length
    first, last, size = (int(number) for number in match.groups())
    stated_length = last - first + 1
    is_expected = (first, last) == _expected_range(range_header, size)
    if not is_expected or length not in (None, stated_length):
        raise UnreadableError(f"the store sent bytes {first} to {last} instead of {range_header}")
    return stated_length, size


def _expected_range(range_header: str, size: int) -> tuple[int, int]:
    """Return the first and last byte that a `Range` header selects in an object of `size` bytes."""
    first, _, last = range_header.removeprefix("bytes=").partition("-")
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1)


@cache
def budget(process: int) -> Budget:
    """Return when a request is given up: `AWS_MAX_ATTEMPTS`, or the profile, may state a number of
    tries."""
    tries = botocore.session.get_session().get_config_variable("max_attempts")
    return Budget() if tries is None else Budget.of_tries(tries)


@cache
def client(process: int) -> Any:
    """Return the client of this process for all buckets, with the credentials of the
    environment."""
    return make_client()


def make_client(lease: LeasePart[S3Keys] | None = None) -> Any:
    """Make a client, which follows redirects to a bucket's region. What a lease does not state is
    as in the environment."""
    session = botocore.session.get_session()
    region = os.environ.get("AWS_REGION") or session.get_config_variable("region") or "us-east-1"
    options = {}
    settings: dict[str, Any] = {}
    if lease is not None:
        keys = lease.keys
        # The client takes the credentials of its session, and signs each request with the newest.
        session._credentials = LeasedCredentials(lease)
        region = keys.region or region
        if keys.endpoint:
            options["endpoint_url"] = keys.endpoint
        if keys.path_style is not None:
            settings["s3"] = {"addressing_style": "path" if keys.path_style else "virtual"}
    elif os.environ.get("AWS_NO_SIGN_REQUEST", "").lower() in ("1", "true", "yes"):
        settings["signature_version"] = UNSIGNED
    # Stores other than Amazon's fail on the checksums that botocore adds by default. All of them
    # support Content-MD5, which is sent instead.
    for setting in ("request_checksum_calculation", "response_checksum_validation"):
        settings[setting] = os.environ.get(f"AWS_{setting.upper()}", "when_required")
    config = botocore.config.Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=IN_FLIGHT,
        user_agent_extra="sbbf",
        # `S3Bucket.send` repeats requests.
        retries={"mode": "standard", "total_max_attempts": 1},
        **settings,
    )
    client = session.create_client("s3", region_name=region, config=config, **options)
    if os.environ.get("AWS_REQUEST_PAYER", "").lower() in ("requester", "true", "1"):
        client.meta.events.register("before-sign.s3", _accept_costs)
    client.meta.events.register("before-send.s3", partial(_send, client._endpoint.http_session))
    return client


def _accept_costs(request: Any, **_: Any) -> None:
    request.headers["x-amz-request-payer"] = "requester"


def _send(http: Any, request: Any, **_: Any) -> AWSResponse:
    """Send a request of botocore. Answers that botocore would read as a whole, such as listings and
    errors, are read up to a limit."""
    is_stream = request.stream_output
    request.stream_output = True
    answer: AWSResponse = http.send(request)
    if is_stream and answer.status_code < 300:
        return answer
    try:
        body = read_answer(answer.raw)
    except urllib3.exceptions.HTTPError as error:
        raise wrong.ConnectionClosedError(endpoint_url=request.url, request=request) from error
    return AWSResponse(answer.url, answer.status_code, answer.headers, body)
