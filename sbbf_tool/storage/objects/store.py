"""The interface of a service, what all services have in common, and the parts of a URL."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from sbbf_tool.display import redact, redact_answer
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.hints import install_extra

if TYPE_CHECKING:
    from sbbf_tool.storage.source import PlannedSource, Source


CONNECT_SECONDS = 10
READ_SECONDS = 60

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object. Versions are equal if everything that the service reports about
    them is equal."""

    size: int
    tag: str | None
    """The ETag, quotes included; a weak one begins with `W/`."""
    modified: str | None = None
    generation: str | None = None
    """Google's number of the version; None for other services, and in listings."""
    time: float | None = field(default=None, compare=False)
    """When the object was written, in seconds since 1970, if the request was for this version alone
    and the service states it."""
    attributes: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What else the service reported with the first bytes, such as metadata and storage class, by
    its own names; often empty."""

    @property
    def strong_tag(self) -> str | None:
        """The ETag that a conditional request can state; None if it is weak, which never matches
        (RFC 9110, section 13.1.1)."""
        if self.tag is None or self.tag.startswith("W/"):
            return None
        return self.tag


class OtherVersionError(UnreadableError):
    """The object is no longer the requested version."""

    def __init__(self) -> None:
        super().__init__("the object changed while it was worked on", hint="run the command again")


class DeniedError(UnreadableError):
    """The service denies access with these credentials, or without credentials."""


class CredentialsError(DeniedError):
    """There are no usable credentials, or the store rejects them, whatever the request is."""


class UnsupportedError(UnreadableError):
    """The service does not implement a request."""


Described = TypeVar("Described", bound=SbbfError)


def with_text_of(error: Described, cause: Exception) -> Described:
    """Return the error with the text of a library's one as a note, which a traceback shows.

    Raise it `from None`: the text of the library's error may be a server's, which may repeat the
    request with its secrets. They are redacted in the note.
    """
    error.add_note(f"{type(cause).__name__}: {redact_answer(str(cause))}")
    return error


class ObjectStore(ABC):
    """A bucket, container, host or cluster. It raises errors of this package, in one line, that
    name neither file nor secret. A service that sbbf only reads refuses to write.

    Requests are repeated as `retries` describes, and each try waits at most CONNECT_SECONDS and
    READ_SECONDS. Threads may share a store.
    """

    service_name: str

    @abstractmethod
    def tail(self, key: str, length: int) -> tuple[bytes, Version]:
        """Read the last `length` bytes of the object (all if it has fewer) and their version, in
        one request."""

    @abstractmethod
    def get(self, key: str, offset: int, length: int, version: Version) -> bytes:
        """Read a range of this version. Raises OtherVersionError if the object has changed."""

    @abstractmethod
    def version(self, key: str) -> Version | None:
        """Return the present version, or None if the object does not exist."""

    @abstractmethod
    def objects(
        self, prefix: str, limit: int | None = None, after: str = ""
    ) -> Iterator[tuple[str, Version]]:
        """Yield the objects whose keys start with `prefix` and sort after `after`, or the first
        `limit` of them, in order.

        The version is as far as a listing states it.
        """

    def create(self, key: str, data: bytes) -> None:
        """Store an object in one request on the condition that none exists. Raises FileExistsError
        if one exists.

        Raises RefusedError if the service has no such condition or denies access, and
        UncertainWriteError if the request may have succeeded, or may still succeed.
        """
        raise RefusedError(f"sbbf cannot write to {self.service_name}")

    def remove(self, key: str) -> None:
        """Remove an object if it exists. Raises RefusedError and WriteError."""
        raise RefusedError(f"sbbf cannot write to {self.service_name}")

    def replace(self, source: Source, target: Location, planned_source: PlannedSource) -> list[str]:
        """Make `target` in this store the new version that is planned for `source`, in one step;
        return warnings as text.

        If `target` is the source itself, it must still be the version that was read; otherwise
        `target` must not exist. Raises RefusedError and WriteError; in both cases nothing is
        changed and nothing is left behind.
        """
        self.ensure_writable(target, in_place=False)
        raise AssertionError("it refuses")

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        """Raise RefusedError if `replace` would, as far as this can be checked before the object is
        opened."""
        hint = "write to a local file, verify it, and copy it there"
        raise RefusedError(f"sbbf cannot write to {self.service_name}", hint=hint)

    def ensure_version_replaceable(self, version: Version) -> None:
        """Raise RefusedError if this version, which `tail` returned, is of a kind that cannot be
        replaced."""
        return


def list_keys(
    store: ObjectStore, prefix: str, limit: int | None = None, after: str = ""
) -> Iterator[str]:
    """Yield the keys of the same objects as `ObjectStore.objects`."""
    return (key for key, _ in store.objects(prefix, limit, after))


@contextmanager
def naming_the_extra(service: str) -> Iterator[None]:
    """Raise UsageError if a package is missing that this service needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        extra = {"s3": "s3", "azure": "azure", "gs": "gcs"}.get(service, "objects")
        raise UsageError(
            f"{service} needs the package {error.name}", hint=install_extra(extra)
        ) from error


_SERVICES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "wasb", "wasbs", "adl"), "azure"),
    **dict.fromkeys(("http", "https"), "http"),
    **dict.fromkeys(("hdfs", "viewfs"), "hdfs"),
}
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(?:/(.*))?", re.DOTALL)


class Location(NamedTuple):
    service: str
    """`s3`, `gs`, `azure`, `http` or `hdfs`."""
    root: str
    """Scheme and bucket, container, host or cluster: `s3://bucket`."""
    bucket: str
    key: str
    """Key without a leading slash. It is not decoded: `%20` is three characters, except to an HTTP
    server."""
    secret: str = ""
    """The query of an HTTP URL, which may be a signature; it is never shown."""

    @property
    def url(self) -> str:
        """The URL including its secret."""
        url = f"{self.root}/{self.key}"
        return f"{url}?{self.secret}" if self.secret else url

    @property
    def name(self) -> str:
        """The URL without its secret, for messages."""
        return redact(self.url)

    def with_key(self, key: str) -> Location:
        return self._replace(key=key, secret="")


def parse_location(url: str) -> Location:
    """Parse a URL. Raises UsageError if it names nothing that this package can read."""
    match = _URL.fullmatch(url)
    scheme = match[1].lower() if match else ""
    service = _SERVICES.get(scheme)
    if match is None or service is None:
        schemes = ", ".join(f"{name}://" for name in _SERVICES)
        hint = f"the schemes are {schemes}; give a local file as a path"
        if scheme == "dbfs":
            hint = "on Databricks, the path is /dbfs/..."
        raise UsageError(f"unknown URL scheme {scheme}://", hint=hint)
    if service == "http":
        return _parse_http(url)
    bucket = match[2]
    if _has_password(service, bucket):
        raise UsageError(
            f"{scheme}: a URL must not contain a password",
            hint="sbbf takes credentials from the environment, profiles and roles",
        )
    key = match[3] or ""
    if bucket.startswith("arn:") and bucket.endswith(":accesspoint"):
        # The name of an access point follows its ARN after a slash, or after a colon.
        point, _, key = key.partition("/")
        bucket = f"{bucket}:{point}"
    if not bucket and service != "hdfs":
        raise UsageError(f"the URL names no bucket: {url}", hint=f"{scheme}://BUCKET/KEY")
    if service in ("s3", "gs"):
        # Different schemes of one service name the same bucket.
        scheme = service
    return Location(service, f"{scheme}://{bucket}", bucket, key)


def _has_password(service: str, bucket: str) -> bool:
    """Return whether the part of a URL that names the bucket states credentials."""
    if "@" in bucket and ":" in bucket.rpartition("@")[0]:
        return True
    # In S3, only the name of an access point has a colon; any other colon separates an access key
    # from its secret.
    if service not in ("s3", "gs") or bucket.startswith("arn:"):
        return False
    return ":" in bucket or "@" in bucket


def _parse_http(url: str) -> Location:
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        raise UsageError("not a valid HTTP URL", hint="https://HOST/PATH") from None
    if not host:
        raise UsageError("the URL names no host", hint="https://HOST/PATH")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"{parts.scheme}://{host}: a URL must not contain a password", hint="use a signed URL"
        )
    root = f"{parts.scheme.lower()}://" + (f"[{host}]" if ":" in host else host)
    if port:
        root += f":{port}"
    return Location("http", root, host, parts.path.lstrip("/"), parts.query)
