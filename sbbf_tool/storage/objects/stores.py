"""Objects by their URLs: how to open them, to replace them, and to read and create the metadata
files of a table.

A new version is verified before any byte is sent, assembled by the store in one step, and read
back. An unfinished upload cannot be read, so the plan is verified: the old bytes, pinned to the
version that was read, and the new bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from sbbf_tool.errors import (
    ChangedError,
    ErrorPlace,
    MissingError,
    RefusedError,
    SbbfError,
    WriteError,
)
from sbbf_tool.storage import access
from sbbf_tool.storage.objects.lease import LeasePart
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import (
    Location,
    ObjectStore,
    OtherVersionError,
    list_keys,
    naming_the_extra,
    parse_location,
)
from sbbf_tool.storage.source import Piece, PlannedSource, Source


def open_object(url: str) -> ObjectSource:
    """Open the object that a URL names. Raises UsageError if the URL cannot name an object, and
    UnreadableError if it cannot be read."""
    location = parse_location(url)
    return ObjectSource(store_of(location), location)


def store_of(location: Location) -> ObjectStore:
    """Return the store of a location, with the credentials of the present work if it has any for
    it. Raises UsageError if the required package is missing."""
    service = location.service
    # For HTTP, each URL has its own store, since URLs are escaped and perhaps signed as a whole.
    path = location.key if service == "http" else ""
    with ErrorPlace(location.name):
        store = access.find_store(location)
        if store is not None:
            return store
        # A forked process must not use its parent's connections.
        return _store(os.getpid(), service, location.root, location.bucket, path, location.secret)


@lru_cache(256)
def _store(
    process: int, service: str, root: str, bucket: str, path: str, secret: str
) -> ObjectStore:
    with naming_the_extra(service):
        return open_store(Location(service, root, bucket, path, secret))


def open_store(location: Location, lease: LeasePart[Any] | None = None) -> ObjectStore:
    """Open the store of a location, with the credentials of the environment if there is no
    lease."""
    # Each service imports the library of its vendor.
    service = location.service
    if service == "s3":
        from sbbf_tool.storage.objects.s3_publish import S3Store

        return S3Store(location.bucket, lease)
    if service == "hdfs":
        from sbbf_tool.storage.objects.arrow import ArrowStore

        return ArrowStore.of_hdfs(location.root)
    from sbbf_tool.storage.objects.cloud import CloudStore

    return CloudStore(service, location.root, location.key, location.secret, lease)


_COMPARED_BYTES = 64 << 10
_BLOCK_BYTES = 8 << 20


def ensure_writable(target: str, in_place: bool) -> None:
    """Raise RefusedError if the target cannot be written, as far as this can be checked in
    advance."""
    location = parse_location(target)
    with ErrorPlace(location.name):
        store_of(location).ensure_writable(location, in_place)


def ensure_version_replaceable(source: Source) -> None:
    """Raise RefusedError if the open version of an object is of a kind that cannot be replaced."""
    if isinstance(source, ObjectSource):
        with ErrorPlace(source.name):
            source.store.ensure_version_replaceable(source.version)


def replace_object(
    source: Source,
    target: str,
    keep: int,
    pieces: tuple[Piece, ...],
    verify: Callable[[Source], None],
) -> list[str]:
    """Replace an object: see `places.replace_file`. Warnings do not name the object, so that those
    with one cause are equal."""
    location = parse_location(target)
    with PlannedSource(location.name, source, keep, pieces) as planned_source:
        verify(planned_source)
        # Read in advance: once the object is replaced, its old version can no longer be read.
        samples = [
            _sample(planned_source, 0, 8),
            _sample(planned_source, keep - _COMPARED_BYTES, keep),
        ]
        try:
            with ErrorPlace(location.name):
                warnings = store_of(location).replace(source, location, planned_source)
        except OtherVersionError as error:
            raise ChangedError(error.message, file=location.name, hint=error.hint) from error
        _read_back(target, planned_source, samples)
    return warnings


def _sample(planned_source: PlannedSource, start: int, end: int) -> tuple[int, bytes]:
    first = max(0, start)
    length = min(end, planned_source.size) - first
    return first, planned_source.read(first, length)


def _read_back(
    target: str, planned_source: PlannedSource, samples: list[tuple[int, bytes]]
) -> None:
    """Compare the store's object with the plan: length, first bytes, last old bytes, all new
    bytes."""
    try:
        with open_object(target) as new_object:
            is_same = _is_as_planned(new_object, planned_source, samples)
    except SbbfError as error:
        hint = "it was verified before it was written; verify it again"
        raise WriteError(
            f"the new object could not be read back ({error.message})",
            file=planned_source.name,
            hint=hint,
        ) from error
    if not is_same:
        hint = "another process may have written it at the same time; verify it"
        raise WriteError(
            "the object does not have the bytes that were written to it",
            file=planned_source.name,
            hint=hint,
        )


def _is_as_planned(
    new_object: Source, planned_source: PlannedSource, samples: list[tuple[int, bytes]]
) -> bool:
    if new_object.size != planned_source.size:
        return False
    new_blocks = (
        _sample(planned_source, start, start + _BLOCK_BYTES)
        for start in range(planned_source.keep, planned_source.size, _BLOCK_BYTES)
    )
    return all(
        new_object.read(start, len(data)) == data for start, data in chain(samples, new_blocks)
    )


_MOST = 1 << 62


class ObjectFolders:
    """Read and publish objects below prefixes. A path is a URL.

    Missing and existing objects raise FileNotFoundError and FileExistsError as in local folders;
    other errors are those of this package.
    """

    def read(self, path: str, most: int | None = None) -> bytes:
        """Read the whole object. Raises FileNotFoundError if it does not exist, and OSError if it
        has more than `most` bytes."""
        location = parse_location(path)
        length = _MOST if most is None else most + 1
        with ErrorPlace(location.name):
            try:
                data, version = store_of(location).tail(location.key, length)
            except MissingError:
                raise FileNotFoundError(errno.ENOENT, "no such object", location.name) from None
        if most is not None and version.size > most:
            raise OSError(
                errno.EFBIG,
                f"has {version.size:,} bytes, more than the limit of {most:,}",
                location.name,
            )
        return data

    def list(self, directory: str, prefix: str = "", after: str = "") -> Sequence[str]:
        """Return the names directly below a prefix that start with `prefix` and sort after `after`,
        in order; no names of folders."""
        location = parse_location(directory)
        folder = f"{location.key.rstrip('/')}/" if location.key else ""
        after_key = folder + after if after else ""
        with ErrorPlace(location.name):
            keys = list_keys(store_of(location), folder + prefix, after=after_key)
            names = (key[len(folder) :] for key in keys)
            return [name for name in names if "/" not in name]

    def create(self, path: str, data: bytes) -> None:
        """Create an object in one request. Raises FileExistsError if it exists, RefusedError, and
        UncertainWriteError."""
        location = parse_location(path)
        with ErrorPlace(location.name):
            store_of(location).create(location.key, data)

    def ensure_exclusive(self, folder: str) -> None:
        """Raise RefusedError unless this store creates an object only if none exists; creates and
        removes an object to find out."""
        location = parse_location(folder)
        name = f"sbbf-conditional-put-{os.urandom(8).hex()}"
        trial_key = f"{location.key.rstrip('/')}/{name}".lstrip("/")
        store = store_of(location)
        with ErrorPlace(location.name):
            try:
                for _ in range(2):
                    store.create(trial_key, b"")
            except FileExistsError:
                return
            finally:
                store.remove(trial_key)
        raise RefusedError(
            "the store ignores the condition of conditional writes, so two writers could commit "
            "the same version",
            file=location.name,
        )

    def remove(self, path: str) -> None:
        """Remove an object if it exists."""
        location = parse_location(path)
        with ErrorPlace(location.name):
            store_of(location).remove(location.key)
