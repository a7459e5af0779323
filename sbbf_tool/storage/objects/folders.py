"""The files of a table in an object store: the twin of `storage.folders.LocalFolders` for URLs.

An object appears in one request and only under an unused key, if the service supports conditional requests: S3 by `If-None-Match: *`,
Google Cloud Storage and Azure by their own conditions. Some stores accept the condition and ignore it, which `ensure_exclusive` detects.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from sbbf_tool.errors import ErrorPlace, MissingError, RefusedError
from sbbf_tool.storage.objects.location import parse_location
from sbbf_tool.storage.objects.store import list_keys
from sbbf_tool.storage.objects.stores import store_of

_MOST = 1 << 62


class ObjectFolders:
    """Read and publish objects below prefixes. A path is a URL.

    Missing and existing objects raise FileNotFoundError and FileExistsError as in local folders; other errors are those of this package.
    """

    def read(self, path: str, most: int | None = None) -> bytes:
        """Read the whole object. Raises FileNotFoundError if it does not exist, and OSError if it has more than `most` bytes."""
        location = parse_location(path)
        with ErrorPlace(location.name):
            try:
                data, version = store_of(location).tail(location.key, _MOST if most is None else most + 1)
            except MissingError:
                raise FileNotFoundError(errno.ENOENT, "no such object", location.name) from None
        if most is not None and version.size > most:
            raise OSError(errno.EFBIG, f"has {version.size:,} bytes, more than the limit of {most:,}", location.name)
        return data

    def list(self, directory: str, prefix: str = "", after: str = "") -> Sequence[str]:
        """Return the names directly below a prefix that start with `prefix` and sort after `after`, in order; no names of folders."""
        location = parse_location(directory)
        folder = f"{location.key.rstrip('/')}/" if location.key else ""
        with ErrorPlace(location.name):
            keys = list_keys(store_of(location), folder + prefix, after=folder + after if after else "")
            return [name for name in (key[len(folder) :] for key in keys) if "/" not in name]

    def create(self, path: str, data: bytes) -> None:
        """Create an object in one request. Raises FileExistsError if it exists, RefusedError, and UncertainWriteError."""
        location = parse_location(path)
        with ErrorPlace(location.name):
            store_of(location).create(location.key, data)

    def ensure_exclusive(self, folder: str) -> None:
        """Raise RefusedError unless this store creates an object only if none exists; creates and removes an object to find out."""
        location = parse_location(folder)
        trial = location.with_key(f"{location.key.rstrip('/')}/sbbf-conditional-put-{os.urandom(8).hex()}".lstrip("/"))
        store = store_of(location)
        with ErrorPlace(location.name):
            store.create(trial.key, b"")
            try:
                store.create(trial.key, b"")
            except FileExistsError:
                return
            finally:
                store.remove(trial.key)
        raise RefusedError(
            "the store ignores the condition of conditional writes, so two writers could commit the same version", file=location.name
        )

    def remove(self, path: str) -> None:
        """Remove an object if it exists."""
        location = parse_location(path)
        with ErrorPlace(location.name):
            store_of(location).remove(location.key)
