"""The changes that resolve a finding, as values."""

from __future__ import annotations

from functools import partial

from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.hints import Fix
from sbbf_tool.rules.facts import ColumnFacts
from sbbf_tool.rules.rule import Limits

_LONGEST_HEADER = 19


def repair(column: ColumnFacts, limits: Limits) -> Fix:
    """Return the fix that changes only the footer."""
    return Fix("repair", (column.changeable_name,), keys=column.keys_path)


def rebuild(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that rebuilds filters from the data, if they exclude stored values or are unusable."""
    if _gets_no_filter(column):
        return remove(column, limits)
    return Fix("repair", (column.changeable_name,), (column.name,), keys=column.keys_path)


def add(column: ColumnFacts, limits: Limits, rebuild: str | None = "all") -> Fix | None:
    """Return the fix that builds a filter in every row group and rebuilds existing filters, or removes those of a BOOLEAN column."""
    if _gets_no_filter(column):
        return remove(column, limits)
    files, columns, fpp = (column.changeable_name,), (column.name,), target_fpp(column, limits)
    return Fix("add_filters", files, columns, rebuild=rebuild, fpp=None if fpp == DEFAULT_FPP else fpp, keys=column.keys_path)


complete = partial(add, rebuild=None)
"""Return the fix that builds the missing filters, and leaves the others as they are."""


def target_fpp(column: ColumnFacts, limits: Limits) -> float:
    """Return the false-positive rate of a new filter: the usual one, unless a limit or a declaration demands less."""
    return min(DEFAULT_FPP, limits.max_fpp or 1, *(chunk.target.fpp for chunk in column.chunks if chunk.target is not None))


def ensure(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that builds the requested filters; None if no filter can be built, or if their sizes differ by row
    group, which no parameter states.
    """
    if _gets_no_filter(column) or any(chunk.encryption is not None for chunk in column.chunks):
        return None
    sizes = {chunk.target for chunk in column.chunks if chunk.target is not None}
    if len(sizes) != 1:
        return None
    (size,) = sizes
    fpp = min(size.fpp, limits.max_fpp or 1)
    return Fix(
        "add_filters",
        (column.changeable_name,),
        (column.name,),
        rebuild="weak" if column.filters and column.judge != "existence" else None,
        fpp=None if fpp == DEFAULT_FPP else fpp,
        ndv=size.ndv,
        max_bytes=None if size.max_bytes >= sizing.MAX_BYTES else size.max_bytes,
        keys=column.keys_path,
    )


def _gets_no_filter(column: ColumnFacts) -> bool:
    return column.column.physical == "BOOLEAN"


def remove(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that removes the filters; None if they are requested and can be built."""
    if any(chunk.target is not None for chunk in column.chunks) and not _gets_no_filter(column):
        return None
    return Fix("remove_filters", (column.changeable_name,), (column.name,), keys=column.keys_path)


def remove_bytes_too(column: ColumnFacts, limits: Limits) -> Fix:
    """Return the fix that also removes the bytes of the filters, because they must not stay in the file."""
    return Fix("remove_filters", (column.changeable_name,), (column.name,), compact=True, keys=column.keys_path)


def shrink(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that shrinks filters to the smallest size that keeps the usual FPP. Filters of drafts are rebuilt in that size."""
    if any(chunk.stored is not None and chunk.stored.header.readings for chunk in column.filters):  # no command resizes a draft
        return rebuild(column, limits)
    return Fix("resize_filters", (column.changeable_name,), (column.name,), fpp=target_fpp(column, limits), keys=column.keys_path)


def shrink_to_portable(column: ColumnFacts, limits: Limits) -> Fix:
    return _resize(column, sizing.MAX_BYTES)


def shrink_to_share(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that shrinks filters to the largest size within their share of the data, or removes them if that size is too small."""
    share = (limits.max_bytes_share or 0) * min(chunk.chunk_bytes for chunk in column.filters)
    most = 1 << max(0, int(share) - _LONGEST_HEADER).bit_length() >> 1
    return remove(column, limits) if most < sizing.MIN_BYTES else _resize(column, most)


def _resize(column: ColumnFacts, num_bytes: int) -> Fix:
    return Fix("resize_filters", (column.changeable_name,), (column.name,), num_bytes=num_bytes, keys=column.keys_path)
