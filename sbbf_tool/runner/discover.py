"""The first stage: which files a lake has, by name, folder, glob, or the addresses that another system's listing gives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.arguments import as_iterable
from sbbf_tool.reports.rows import LINK, SKIPPED, FileRow, FoundFile
from sbbf_tool.storage.places import entries, is_url

if TYPE_CHECKING:
    from sbbf_tool.runner.partitions import Predicate

Row = TypeVar("Row", bound=FileRow)


def discover(names: Iterable[str], where: Predicate | None = None, *, links: bool = False) -> Iterator[FoundFile]:
    """The files that the names mean, in order, those alone whose partition folders `where` accepts.

    Links to files are followed. Whoever changes files asks for `links`: then they are marked, and links to folders come too. Raises
    UnreadableError (a name that means no file) and UsageError (a partition column that a path does not have).
    """
    for name in as_iterable(names):
        for entry in entries(os.fsdecode(name), linked_folders=links):
            if links and entry.is_link:
                yield FoundFile(entry.path, is_link=True)
            elif where is None or where.accepts(entry.path):
                yield listed(entry.path)


def listed(path: str) -> FoundFile:
    """A file with length and time; without, where it cannot be asked: who works on it will be told why."""
    if is_url(path):
        return FoundFile(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return FoundFile(path)
    return FoundFile(path, status.st_size, status.st_mtime)


def skip_link(row: type[Row], path: str) -> Row:
    """The row of a link that commands which change files skip."""
    return row(path=path, status=SKIPPED, reason=LINK, exit_code=0, seconds=0.0)


def path_of(address: str) -> str:
    """The path that an address of a listing means here.

    Hadoop writes a path of the local file system as `file:/a b`, and a URI as `file:///a%20b`; its names `s3a` and `s3n` are `s3`.
    """
    if address.startswith("file:///"):
        from urllib.parse import unquote

        return unquote(address.removeprefix("file://"))
    if address.startswith("file:/"):
        return address.removeprefix("file:")
    scheme, colon, rest = address.partition("://")
    return f"s3://{rest}" if colon and scheme in ("s3a", "s3n") else address
