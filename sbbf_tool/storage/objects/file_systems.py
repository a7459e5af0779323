"""Files of a pyarrow file system that the caller gives: opened and listed as objects are, with paths in place of URLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sbbf_tool.display import redact
from sbbf_tool.storage.objects import listing
from sbbf_tool.storage.objects.arrow import ArrowStore
from sbbf_tool.storage.objects.location import Location
from sbbf_tool.storage.objects.source import ObjectSource

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


class _PathIn(Location):
    """Path in a file system that the caller gave, which is no part of the name."""

    @property
    def url(self) -> str:
        return self.key

    @property
    def name(self) -> str:
        return redact(self.key)


class _FileInSource(ObjectSource):
    can_reopen = False


def open_in(files: FileSystem, path: str) -> ObjectSource:
    """Open a file of a pyarrow file system. Raises UnreadableError."""
    return _FileInSource(ArrowStore(files, ""), _PathIn("arrow", "", "", path))


def parquet_files_in(files: FileSystem, path: str) -> Iterator[str]:
    """Yield the path itself, or the Parquet files below a folder, or those that match a glob. Raises UnreadableError if there is none."""
    return (entry.path for entry in listing.entries_in(ArrowStore(files, ""), _PathIn("arrow", "", "", path)))
