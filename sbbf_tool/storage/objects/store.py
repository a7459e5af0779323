"""What each service is asked, and what its answers have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar

from sbbf_tool.errors import UnreadableError, UsageError

if TYPE_CHECKING:
    from sbbf_tool.storage.objects.location import Location
    from sbbf_tool.storage.source import Source

TRIES = 3
CONNECT_SECONDS, READ_SECONDS = 10, 60

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object. Two are the same where all that the service tells of them is."""

    size: int
    tag: str | None
    """The ETag, quotes included."""
    modified: str | None = None


class OtherVersionError(UnreadableError):
    """The object is no longer the version that was asked for."""

    def __init__(self) -> None:
        super().__init__("the object changed while it was worked on", hint="run the command again")


class MissingError(UnreadableError):
    """There is no such object."""


class DeniedError(UnreadableError):
    """The service knows who asks, or that nobody is named, and says no."""


class ObjectStore(Protocol):
    """A bucket, container, host or cluster. Errors are of this package, in one line, and name neither file nor secret.

    A question is put TRIES times at most, and each waits no longer than CONNECT_SECONDS and READ_SECONDS. Threads may share a store.
    """

    def tail(self, key: str, length: int) -> tuple[bytes, Version]:
        """The last `length` bytes of the object (all, where it has fewer), and which version they are of; one request."""

    def get(self, key: str, offset: int, length: int, version: Version) -> bytes:
        """A range of this version. Raises OtherVersionError where there is another by now."""

    def version(self, key: str) -> Version | None:
        """The version that is there now; None where there is none."""

    def keys(self, prefix: str, limit: int | None = None) -> Iterator[str]:
        """All keys that start with `prefix`, or the first `limit` of them, in order."""

    def replace(self, source: Source, target: Location, keep: int, pieces: tuple[bytes | bytearray | memoryview, ...]) -> list[str]:
        """Make `target`, of this store, the first `keep` bytes of `source` followed by `pieces`, in one step; warnings in words.

        Where `target` is the source itself, the version that was read must still be there; otherwise no object may be. Raises
        RefusedError and WriteError; where it does, nothing was changed and nothing is left behind.
        """

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        """Raises RefusedError where `replace` would, as far as can be told without the bytes."""


def store_of(location: Location) -> ObjectStore:
    """The store that a location is in. Raises UsageError where the package that speaks to it is missing."""
    # Of the web each URL is a store of its own, since it is escaped and perhaps signed as a whole.
    path = location.key if location.service == "http" else ""
    # A process that was forked must not use its parent's connections.
    return _store(os.getpid(), location.service, location.root, location.bucket, path, location.secret)


@lru_cache(256)
def _store(process: int, service: str, root: str, bucket: str, path: str, secret: str) -> ObjectStore:
    try:
        return _opened(service, root, bucket, path, secret)
    except ModuleNotFoundError as error:
        raise UsageError(f"{service} needs the package {error.name}", hint="pip install 'sbbf-tool[objects]'") from error


def _opened(service: str, root: str, bucket: str, path: str, secret: str) -> ObjectStore:
    if service == "s3":
        from sbbf_tool.storage.objects.s3 import S3Store

        return S3Store(bucket)
    if service == "hdfs":
        from sbbf_tool.storage.objects.arrow import ArrowStore

        return ArrowStore.of_hdfs(root)
    from sbbf_tool.storage.objects.cloud import CloudStore

    return CloudStore(service, root, path, secret)


def tried(ask: Callable[[], Answer], again: Callable[[Exception], bool]) -> Answer:
    """`ask`, TRIES times at most, as long as `again` says that another try may help."""
    for _ in range(TRIES - 1):
        try:
            return ask()
        except Exception as error:
            if not again(error):
                raise
    return ask()
