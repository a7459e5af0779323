"""The input of rules about a whole file: its bytes to which nothing refers, as far as the extent of
everything else is known."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from sbbf_tool.file.layout import OLD_FOOTER, UNKNOWN, Range, gaps_between, unreferenced_ranges
from sbbf_tool.file.own_tail import find_own_tail, last_addition
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts

LEAST_BYTES = 64 << 10
"""Fewer unreferenced bytes than these are not worth a rewrite."""
LEAST_SHARE = 0.01
"""A smaller share of the file is not worth a rewrite either."""

_NUMBER = re.compile(r"(?<![\w.+/-])\d{1,19}(?![\w.+/=-])")
"""A number in the value of a key-value entry, but no digits of a text in base64."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as a whole."""

    name: str
    num_bytes: int
    unreferenced: tuple[Range, ...] = ()
    """Ranges to which nothing in the file refers; empty if `are_many` is false for what they could
    be at most."""
    unknown: str | None = None
    """Why it is not known which bytes are unreferenced."""


def are_many(unreferenced_bytes: int, file_bytes: int) -> bool:
    return unreferenced_bytes >= max(LEAST_BYTES, LEAST_SHARE * file_bytes)


def gather_file(file: ParquetFile, columns: Sequence[ColumnFacts]) -> FileFacts:
    """Gather the facts about a file, of which `columns` are all columns, gathered at least as far
    as FILTERS.

    Ranges are read, to see what they are, only if there may be many unreferenced bytes.
    """
    size = file.source.size
    unknown = _find_unknown(file, columns)
    if unknown:
        return FileFacts(file.name, size, unknown=unknown)
    chunks = chain.from_iterable(column.filters for column in columns)
    filters = [chunk.stored for chunk in chunks if chunk.stored is not None]
    gap_bytes = sum(end - start for start, end in gaps_between(file, filters))
    if not are_many(gap_bytes, size):
        return FileFacts(file.name, size)
    return FileFacts(file.name, size, tuple(_find_unreferenced(file, filters)))


def _find_unknown(file: ParquetFile, columns: Sequence[ColumnFacts]) -> str | None:
    if file.footer.has_locked_chunks():
        return "the metadata of a column is encrypted, so its pages and filters cannot be located"
    for column in columns:
        for chunk in column.chunks:
            place = f"column {column.name}, row group {chunk.row_group}"
            if not _is_extent_known(chunk):
                return f"the length of the filter of {place}, is unknown"
            if chunk.chunk_bytes <= 0 and chunk.meta.values != 0:
                return f"the length of the pages of {place}, is unknown"
    return None


def _is_extent_known(chunk: ChunkFacts) -> bool:
    """Return whether a filter's header states its length; for a filter whose key is missing, the
    footer must."""
    if chunk.place is None:
        return True
    if chunk.stored is None:
        is_intact = chunk.encryption is not None and chunk.module_defect is None
        return is_intact and chunk.place.length is not None
    return chunk.stored.header.unsupported_reason is None


def _find_unreferenced(file: ParquetFile, filters: list[StoredFilter]) -> Iterator[Range]:
    """Yield the unreferenced ranges without what another program may find by a key-value entry, and
    what undoes a change.

    Truncating the file to the footer before its own tail undoes all changes by this package, and to
    the last one in it the last change. Footers between the two, which repeated appends leave, are
    dead.
    """
    last = last_addition(file)
    undo_ends = {find_own_tail(file).start, *(() if last is None else (last.before.end,))}
    unused_ranges = list(unreferenced_ranges(file, filters))
    numbers = array("Q")
    if any(unused_range.kind == UNKNOWN for unused_range in unused_ranges):
        for entry in file.footer.key_values():
            numbers.extend(map(int, _NUMBER.findall(str(entry.value))))
    for unused_range in unused_ranges:
        is_for_undo = unused_range.kind == OLD_FOOTER and unused_range.end in undo_ends
        is_named = unused_range.kind == UNKNOWN and any(
            unused_range.start <= number < unused_range.end for number in numbers
        )
        if not is_for_undo and not is_named:
            yield unused_range
