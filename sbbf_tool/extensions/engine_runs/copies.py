"""Copies of files in a temporary folder: without filters, and with zeros in place of some row
groups.

A copy without filters has the bytes of the file, also those of its filters, but its footer refers
to no filter. It has the same length, so that all offsets stay, and what differs between two runs is
only that the engine finds filters.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.numbers import format_size

_BLOCK = 8 << 20


def ensure_room(folder: str, num_bytes: int) -> None:
    """Raise RefusedError if the file system of `folder` has no room for so many bytes."""
    free = shutil.disk_usage(folder).free
    if num_bytes > free:
        raise RefusedError(
            f"the copies without filters take {format_size(num_bytes)}, and {folder} has "
            f"{format_size(free)} free",
            hint="set TMPDIR to a folder with more room, or name fewer files",
        )


def copy_file(file: ParquetFile, path: Path, *, filters: bool) -> None:
    """Copy a file to `path`, with its filters or without. Raises UnreadableError, WriteError."""
    footer = file.footer
    tail = b""
    if not filters:
        without_filters = footer.set_filters(dict.fromkeys(footer.recorded_chunks()))
        tail = b"".join(footer.stored(without_filters))
    # A footer without filters is shorter, so the copy keeps some bytes of the old one before it.
    keep = max(file.source.size - len(tail), footer.start)
    try:
        with path.open("xb") as stream:
            for start in range(0, keep, _BLOCK):
                stream.write(file.source.read(start, min(_BLOCK, keep - start)))
            stream.write(tail)
    except OSError as error:
        raise _write_error(error, path) from error


def copy_delta_table(root: str, target: Path, copies: Mapping[str, str]) -> bool:
    """Make a table of links in `target`: to the log of the table at `root`, and to the copies of
    its data files, by their paths.

    Return whether it can be read: False if a data file is elsewhere. Files that are in no version
    of `copies` are left out.
    """
    if not all(path.startswith(f"{root}/") for path in copies):
        return False
    log = f"{root}/_delta_log"
    for folder, _, names in os.walk(root):
        is_log = log in (folder, os.path.dirname(folder))
        for name in names:
            path = os.path.join(folder, name)
            source = copies.get(path)
            if source is None:
                if name.endswith(".parquet") and not is_log:
                    continue
                source = path
            link = target / os.path.relpath(path, root)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(source)
    return True


def zero_ranges(path: Path, ranges: Iterable[tuple[int, int]]) -> None:
    """Overwrite these bytes, from a start to an end, with zeros. Raises WriteError."""
    try:
        with path.open("r+b") as stream:
            for start, end in ranges:
                stream.seek(start)
                for position in range(start, end, _BLOCK):
                    stream.write(bytes(min(_BLOCK, end - position)))
    except OSError as error:
        raise _write_error(error, path) from error


def page_ranges(
    file: ParquetFile, row_group: int, columns: Iterable[int] | None = None
) -> list[tuple[int, int]]:
    """Return start and end of the pages of these chunks of a row group; of all chunks if `columns`
    is None."""
    indexes = columns
    if indexes is None:
        indexes = [column.index for column in file.footer.columns]
    ranges = [file.footer.chunk_meta(row_group, index).page_range for index in indexes]
    return [(max(start, 4), min(end, file.footer.start)) for start, end in ranges]


def _write_error(error: OSError, path: Path) -> WriteError:
    hint = "set TMPDIR to a folder with more room" if error.errno == errno.ENOSPC else None
    reason = os.strerror(error.errno) if error.errno else str(error)
    return WriteError(reason, file=str(path), hint=hint)
