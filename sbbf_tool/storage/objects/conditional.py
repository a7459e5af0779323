"""The steps that publications to all services share: parts are sent concurrently, and one
conditional request makes the object visible.

`CloudWriter` is the rest of what Azure and Google share: requests by the services' libraries, their
repetition, and errors in one line.

S3's rules for parts: a part has 5 MiB to 5 GiB, except that the last may be smaller; an upload has
at most 10,000 parts.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sbbf_tool.errors import (
    MissingError,
    RefusedError,
    SbbfError,
    UncertainWriteError,
    UnreadableError,
    UsageError,
    WriteError,
    exists_error,
)
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.numbers import format_count
from sbbf_tool.storage.objects.lease import LeasePart
from sbbf_tool.storage.objects.retries import (
    TEMPORARY_STATUSES,
    Retries,
    tries_of,
    unreachable_error,
)
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import (
    Answer,
    DeniedError,
    Location,
    ObjectStore,
    OtherVersionError,
    UnsupportedError,
    Version,
    with_text_of,
)
from sbbf_tool.storage.source import PlannedSource, Source
from sbbf_tool.storage.threads import (
    STOP_SECONDS,
    DaemonThreads,
    ensure_running,
    result_of,
    stoppable,
    waiting,
)

MIB = 1 << 20
LEAST_PART = 5 * MIB
MOST_PARTS = 10_000

# A part that the store copies takes no memory of this process; several large parts are faster than
# one.
_COPY_PART = 512 * MIB

UNTOUCHED = "the old object is untouched"
PARQUET_TYPE = "application/vnd.apache.parquet"
"""Content type of a new object that is not made from another."""
UPLOAD_PART = 16 * MIB
"""Length of a part that is uploaded, in bytes."""
WHOLE_BYTES = 256 << 10
"""Objects of up to this size are uploaded as a whole where the service has no minimum length for
parts: it takes fewer requests."""

_PARTS_IN_FLIGHT = 4

Numbered = TypeVar("Numbered")
Tags = TypeVar("Tags")


class Part(NamedTuple):
    """Bytes `start` to `end` of the new object. If `is_copy`, the store copies them from the same
    offset of the old object."""

    start: int
    end: int
    is_copy: bool


def plan_parts(keep: int, size: int, can_copy: bool) -> tuple[Part, ...] | None:
    """Plan the parts of an object of `size` bytes that keeps the first `keep` bytes of the old one;
    None if a single request is enough."""
    if can_copy and keep >= LEAST_PART:
        return (*_split(0, keep, _COPY_PART, True), *_split(keep, size, UPLOAD_PART, False))
    if size < LEAST_PART:
        return None
    return tuple(_split(0, size, UPLOAD_PART, False))


def _split(start: int, end: int, usual: int, is_copy: bool) -> Iterator[Part]:
    """Split a range into parts of nearly the same size, so that each has the minimum size."""
    size = end - start
    if not size:
        return
    # At most half of the parts, since the object also has parts of the other kind.
    least = _divide_up(size, MOST_PARTS // 2)
    count = _divide_up(size, max(usual, least))
    for number in range(count):
        yield Part(start + size * number // count, start + size * (number + 1) // count, is_copy)


def _divide_up(number: int, divisor: int) -> int:
    return -(-number // divisor)


class Upload:
    """The upload of one object to a `store`; each service has its own `write`."""

    def __init__(
        self, store: Any, source: Source, target: Location, planned_source: PlannedSource
    ) -> None:
        self.store = store
        self.target = target
        self.planned_source = planned_source
        self.old: ObjectSource | None = None
        """The source if it is an object of this service, whose bytes the service may copy."""
        if isinstance(source, ObjectSource) and source.location.service == target.service:
            self.old = source
        self.replaced: Version | None = None
        """The version of the target that is replaced; None if the target must not exist."""
        if self.old is not None and self.old.location == target:
            self.replaced = self.old.version
        self.in_place = self.replaced is not None
        self.warnings: list[str] = []

    def publish(self) -> list[str]:
        """Upload the object: see `ObjectStore.replace`."""
        call_to_write(self.write)
        return self.warnings

    def write(self) -> None:
        """Store the object, or raise an error and leave nothing behind."""
        raise NotImplementedError

    def read_all(self) -> bytes:
        return self.planned_source.read(0, self.planned_source.size)

    def send(self, request: Callable[[], Answer]) -> Answer:
        """Return the answer to a request. Raises OtherVersionError if an object that is changed in
        place does not exist any more."""
        try:
            return self.store.send(request)  # type: ignore[no-any-return]
        except MissingError:
            if self.in_place:
                raise OtherVersionError from None
            raise

    def read_tags(self, read: Callable[[], Tags], permission: str) -> Tags | None:
        """Return the tags of the old object; None with a warning if a new object beside it has to
        do without them."""
        try:
            return read()
        except DeniedError as error:
            if self.in_place:
                message = "the object's tags cannot be read, so the new version would lack them"
                raise RefusedError(message, hint=f"allow {permission}, or {ELSEWHERE}") from error
            self.warnings.append(
                "the old object's tags could not be read, so the new object lacks them"
            )
            return None


def ensure_free(store: ObjectStore, target: Location, in_place: bool) -> None:
    """Raise UsageError if the URL names a prefix, and RefusedError if a new object would have the
    key of another one."""
    if not target.key or target.key.endswith("/"):
        raise UsageError("the URL names a prefix, not an object")
    if not in_place and store.version(target.key) is not None:
        raise exists_error()


def create(put: Callable[[], object], key: str) -> None:
    """Send the request that creates an object: see `ObjectStore.create`."""
    try:
        put()
    except OtherVersionError:
        raise FileExistsError(errno.EEXIST, "the object exists", key) from None
    except UnsupportedError as error:
        raise RefusedError("the store has no conditional writes (NotImplemented)") from error
    except (DeniedError, UsageError, MissingError) as error:
        raise RefusedError(
            f"the object cannot be written: {error.message}", hint=error.hint
        ) from error
    except UnreadableError as error:
        raise UncertainWriteError(error.message) from error


def remove(delete: Callable[[], object]) -> None:
    """Send the request that removes an object: see `ObjectStore.remove`."""
    try:
        delete()
    except MissingError:
        return
    except UnreadableError as error:
        raise WriteError(
            f"the object cannot be removed: {error.message}", hint=error.hint
        ) from error


def md5_of(data: bytes) -> str:
    """Return the MD5 hash of bytes in Base64, with which services compare the bytes that they
    get."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def call_to_write(request: Callable[[], Answer]) -> Answer:
    """Return the service's answer; convert the errors of reading to those of writing."""
    try:
        return request()
    except OtherVersionError:
        raise
    except DeniedError as error:
        raise RefusedError(
            f"the object cannot be written: {error.message}", hint=error.hint
        ) from error
    except UnsupportedError as error:
        raise RefusedError(error.message, hint=UNTOUCHED) from error
    except UnreadableError as error:
        hint = error.hint or ""
        if not hint.startswith(UNTOUCHED):
            hint = UNTOUCHED
        raise WriteError(error.message, hint=hint) from error


def write_parts(write: Callable[[Numbered], Answer], parts: Iterable[Numbered]) -> list[Answer]:
    """Call `write` for each part, several concurrently; return its results in order."""

    def write_part(part: Numbered) -> Answer:
        ensure_running()
        return write(part)

    pool = DaemonThreads(_PARTS_IN_FLIGHT, "sbbf-put")
    seconds: float | None = None
    try:
        with stoppable():
            futures = [pool.submit(write_part, part) for part in parts]
            with waiting():
                return [result_of(future) for future in futures]
    except BaseException as error:
        # A part that arrives after the clean-up would stay in the store: wait for the parts in
        # flight, after an interrupt not for long.
        if not isinstance(error, Exception):
            seconds = STOP_SECONDS / 2
        raise
    finally:
        with waiting():
            pool.close(seconds)


def write_once(write: Callable[[], object], is_stored: Callable[[], bool], in_place: bool) -> None:
    """Send the conditional request that makes an object visible.

    If its response was lost, it may have succeeded, and a retry then finds the new object in place
    of the old one: `is_stored` recognises that object. Raises OtherVersionError, RefusedError if
    the target exists, the errors of `write`, and UncertainWriteError if the object cannot be looked
    at.
    """
    try:
        write()
    except SbbfError as error:
        try:
            if is_stored():
                return
        except MissingError:
            pass
        except SbbfError as reason:
            if not isinstance(error, DeniedError | RefusedError | UsageError):
                hint = "verify the object, and run the command again"
                raise UncertainWriteError(
                    f"it is unknown whether the object was written ({reason.message})", hint=hint
                ) from error
        if isinstance(error, OtherVersionError):
            if in_place:
                raise OtherVersionError from None
            raise exists_error() from None
        raise


AZURE_HINT = "check AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY and the like"
GOOGLE_HINT = "check GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login"
_CODE = re.compile(r"[A-Za-z0-9.]{1,64}")
_PARSING_ERRORS = (ValueError, TypeError, AttributeError, LookupError)
"""The libraries raise them for an answer that the service would not give."""
_NO_SERVICE = "the answer is not that of such a service"


@contextmanager
def understanding_answers() -> Iterator[None]:
    """Raise WriteError for an answer that a library parses only when a part of it is used."""
    try:
        yield
    except _PARSING_ERRORS as error:
        problem = WriteError(_NO_SERVICE, hint="check the endpoint, and verify the object")
        raise with_text_of(problem, error) from None


class CloudWriter:
    """The writing half of an `ObjectStore`."""

    upload: type[Upload]
    hint: str
    """The settings of credentials."""
    errors: tuple[type[Exception], ...]
    """The errors of the library."""
    connection_errors: tuple[type[Exception], ...]
    """Those that mean that the service has not answered, or that its answer broke off."""

    def __init__(self, retries: Retries, lease: LeasePart[Any] | None = None) -> None:
        self._retries = retries
        self._lease = lease

    def ensure_object_replaceable(self, key: str) -> None:
        """Raise RefusedError if the object is of a kind that cannot be replaced."""
        raise NotImplementedError

    def status_of(self, error: Any) -> tuple[int, str]:
        """Return the status of an answer that an error of the library describes, or 0, and the
        service's name of the error."""
        raise NotImplementedError

    def send(self, request: Callable[[], Answer], once: bool = False) -> Answer:
        """Return the answer to a request by the library, which is repeated while its errors are
        temporary.

        A request that removes what a run leaves is sent once, also after an interrupt. Raises
        errors of this package without secrets.
        """
        repeat = partial(self._retries.call, request, self._is_temporary, self._is_unreachable)
        if self._lease is not None:
            repeat = partial(self._lease.call, repeat, self._refusal_of)
        try:
            if once:
                return request()
            return repeat()
        except (*self.errors, *self.connection_errors, *_PARSING_ERRORS) as error:  # type: ignore[misc]
            raise self.describe(error) from None

    def describe(self, error: Exception) -> SbbfError:
        """Translate an error of the library. The service's text is not repeated, because it may
        contain the URL."""
        status, code = self.status_of(error)
        if not _CODE.fullmatch(code):
            code = ""
        if isinstance(error, _PARSING_ERRORS):
            return UnreadableError(_NO_SERVICE, hint="check the endpoint")
        if self._is_unreachable(error):
            return unreachable_error(error, "check the network and the endpoint")
        if not status:
            return DeniedError(f"no usable credentials ({type(error).__name__})", hint=self.hint)
        if status == 404:
            return MissingError("no such object")
        if status in (401, 403):
            return DeniedError(
                f"access denied ({code})" if code else "access denied", hint=self.hint
            )
        if status == 412:
            return OtherVersionError()
        answer = f"{status} {code}" if code else f"{status}"
        if status in TEMPORARY_STATUSES:
            answer += f", {format_count(tries_of(error), 'try', 'tries')}"
        return UnreadableError(f"the service answered {answer}")

    def _refusal_of(self, error: Exception) -> str | None:
        """Return the kind of an answer that refuses the credentials; None for other errors."""
        status, code = self.status_of(error)
        if code == "AuthenticationFailed":
            return code
        return f"{status}" if status == 401 or (status == 403 and not code) else None

    def _is_temporary(self, error: Exception) -> bool:
        return self._is_unreachable(error) or self.status_of(error)[0] in TEMPORARY_STATUSES

    def _is_unreachable(self, error: Exception) -> bool:
        # The error of requests for JSON is both.
        return isinstance(error, self.connection_errors) and not isinstance(error, ValueError)
