"""The first stage: list the files of a lake from file names, folders, globs, or the addresses in
another system's listing.

Small ones are packed into few tasks by their bytes: starting a task costs more than processing a
small file. The cost of a file is the number of bytes that its work reads, plus a constant for
opening it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool.arguments import as_iterable
from sbbf_tool.errors import SbbfError, UsageError
from sbbf_tool.reports.rows import HUDI_LOG, LINK, OTHER_NAME, SKIPPED, UNFINISHED, ListedFile, Row
from sbbf_tool.storage.places import absolute, entries, is_url, size_and_etag

if TYPE_CHECKING:
    from sbbf_tool.file.partitions import PathPredicate
    from sbbf_tool.storage.listing import Entry

Unit = TypeVar("Unit")

OPENING_COST = 256 << 10
"""Cost of opening a file, parsing its footer and publishing it: decoding this many bytes takes
about as long."""
TASK_COST = 64 << 20
"""Cost of one task: some seconds of work, or 256 nearly empty files."""
MOST_UNITS = 1000
_MOST_INODE = (1 << 63) - 1
"""Rows have signed integers."""


def discover(
    names: Iterable[str], where: PathPredicate | None = None, *, links: bool = False
) -> Iterator[ListedFile]:
    """List the files that the names mean, in order, except those whose partition folders `where`
    rejects.

    Links to folders are not followed but listed as skipped; links to files are followed. Runs that
    change files set `links`: links to files and files with unusual names are then skipped too,
    which `is_unfinished` files always are. A file that several names mean is listed once, unless an
    iterator yields them. Raises UnreadableError (a name that means no file) and UsageError (a
    partition column that a path does not have).
    """
    names = as_iterable(names)
    listed: set[str] | None = None if isinstance(names, Iterator) or not _overlap(names) else set()
    for name in names:
        for entry in entries(os.fsdecode(name)):
            if entry.is_folder or (links and entry.is_link):
                yield ListedFile(entry.path, skipped=LINK)
            elif where is not None and not where.accepts(entry.path):
                continue
            elif reason := _why_skipped(entry, links):
                yield ListedFile(entry.path, skipped=reason)
            elif listed is None:
                yield _list_entry(entry)
            else:
                path = absolute(entry.path)
                if path not in listed:
                    listed.add(path)
                    yield _list_entry(entry)


def _list_entry(entry: Entry) -> ListedFile:
    if entry.bytes is None:
        return list_file(entry.path)
    return ListedFile(entry.path, entry.bytes, etag=entry.etag)


def folders_of(names: Iterable[str]) -> list[str]:
    """Return for each name the folder or file, with a slash, in which all of its files are."""
    from sbbf_tool.storage.globs import literal_base  # 2 ms that a run of one file does not need

    return [literal_base(absolute(name), "").rstrip("/") + "/" for name in names]


def _overlap(names: Iterable[str]) -> bool:
    """Return whether a file may have several of these names; other listings need not be kept."""
    folders = sorted(folders_of(map(os.fsdecode, names)))
    return any(inner.startswith(outer) for outer, inner in pairwise(folders))


def _why_skipped(entry: Entry, links: bool) -> str | None:
    if entry.is_hudi_log:
        return HUDI_LOG
    if entry.is_unfinished:
        return UNFINISHED
    if links and entry.has_other_name:
        return OTHER_NAME
    return None


def list_file(path: str) -> ListedFile:
    """Return a file with length and time, or without them if `stat` fails; processing the file then
    reports the reason."""
    if is_url(path):
        return ListedFile(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ListedFile(path)
    return ListedFile(
        path,
        status.st_size,
        status.st_mtime,
        change_time=status.st_ctime,
        inode=status.st_ino & _MOST_INODE,
    )


def stat_file(path: str) -> ListedFile:
    """Return a file as `list_file` does; request size and ETag of an object from its store."""
    if not is_url(path):
        return list_file(path)
    with suppress(SbbfError):
        size_and_tag = size_and_etag(path)
        if size_and_tag is not None:
            size, etag = size_and_tag
            return ListedFile(path, size, etag=etag)
    return ListedFile(path)


def skip(file: ListedFile) -> Row[Any]:
    """Return the row of a file that is skipped: links to folders and, if files are changed, all
    links and unusual names."""
    return Row(file.path, SKIPPED, file.skipped)


def pack(
    units: Iterable[Unit],
    cost: Callable[[Unit], int],
    task_cost: int = TASK_COST,
    most: int = MOST_UNITS,
) -> Iterator[list[Unit]]:
    """Yield the units in order, packed into tasks of 1 to `most` units and, if possible, a cost of
    at most `task_cost`."""
    task: list[Unit] = []
    task_bytes = 0
    for unit in units:
        weight = cost(unit) + OPENING_COST
        if task and (task_bytes + weight > task_cost or len(task) >= most):
            yield task
            task = []
            task_bytes = 0
        task.append(unit)
        task_bytes += weight
    if task:
        yield task


def path_of(address: str) -> str:
    """Convert an address in a listing to the path or URL that this package uses; Hadoop's schemes
    `s3a` and `s3n` mean `s3`.

    Spark writes a local path as a URI, `file:/a%20b` or `file:///a%20b`, but in some listings as it
    is, `file:/a b`. It is taken as it is if it cannot be a URI, or if there is no file by the URI,
    but one by the path. Raises UsageError if there are both.
    """
    if address.startswith("file:/"):
        from urllib.parse import unquote

        path = address.removeprefix("file:")
        path = f"/{path.lstrip('/')}"
        decoded = unquote(path, errors="surrogateescape")
        if decoded == path or re.search(r"[^!-~]|[\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})", path):
            return path
        if not os.path.lexists(path):
            return decoded
        if os.path.lexists(decoded):
            raise UsageError(
                "the address may mean two files", file=address, hint=f"give {decoded!r} or {path!r}"
            )
        return path
    scheme, colon, rest = address.partition("://")
    return f"s3://{rest}" if colon and scheme in ("s3a", "s3n") else address


def address_of(path: str) -> str:
    """Return the address by which Spark reads a path or URL, whatever its default file system."""
    scheme, colon, rest = path.partition("://")
    if not colon:
        return f"file://{path}"
    return f"s3a://{rest}" if scheme == "s3" else path
