"""The first stage: which files a lake has, by name, folder, glob, or the addresses that another system's listing gives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from sbbf_tool.operations.arguments import as_iterable
from sbbf_tool.operations.lake.partitions import Predicate
from sbbf_tool.reports.lake import LakeFile
from sbbf_tool.storage.listing import parquet_files


def discover(names: Iterable[str], where: Predicate | None = None) -> Iterator[LakeFile]:
    """The files that the names mean, in order, those alone whose partition folders `where` accepts.

    Raises UnreadableError (a name that means no file) and UsageError (a partition column that a path does not have).
    """
    for name in as_iterable(names):
        for path in parquet_files(os.fsdecode(name)):
            if where is None or where.accepts(path):
                yield listed(path)


def listed(path: str) -> LakeFile:
    """A file with length and time; without, where it cannot be asked: who works on it will be told why."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return LakeFile(path)
    return LakeFile(path, status.st_size, status.st_mtime)


def path_of(address: str) -> str:
    """The path that an address of a listing means here.

    Hadoop writes a path of the local file system as `file:/a b`, and a URI as `file:///a%20b`; its names `s3a` and `s3n` are `s3`.
    """
    if address.startswith("file:///"):
        return unquote(address.removeprefix("file://"))
    if address.startswith("file:/"):
        return address.removeprefix("file:")
    scheme, colon, rest = address.partition("://")
    return f"s3://{rest}" if colon and scheme in ("s3a", "s3n") else address
