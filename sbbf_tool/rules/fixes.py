"""The changes that resolve a finding, as values."""

from __future__ import annotations

from functools import partial
from typing import Any

from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.hints import Fix
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts
from sbbf_tool.rules.rule import Limits
from sbbf_tool.rules.satisfaction import FPP_TOLERANCE

_LONGEST_HEADER = 19


def repair(column: ColumnFacts, limits: Limits) -> Fix:
    """Return the fix that changes only the footer."""
    return Fix("repair", (column.changeable_name,), keys=column.keys_path)


def _fix_of(column: ColumnFacts, action: str, **options: Any) -> Fix:
    """Return the fix that changes the filters of a column."""
    return Fix(action, (column.changeable_name,), (column.name,), keys=column.keys_path, **options)


def rebuild(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that rebuilds filters from the data, if they exclude stored values or are
    unusable."""
    if _gets_no_filter(column):
        return remove(column, limits)
    return _fix_of(column, "repair")


def add(column: ColumnFacts, limits: Limits, rebuild: str | None = "all") -> Fix | None:
    """Return the fix that builds a filter in every row group and rebuilds existing filters, or
    removes those of a BOOLEAN column; None if no filter meets the limits.
    """
    if _gets_no_filter(column):
        return remove(column, limits)
    fpp = target_fpp(column, limits)
    max_bytes = _most_bytes(column, limits)
    if max_bytes is not None:
        highest = worst_fpp(column, limits)
        if not max_bytes or not all(_fits(chunk, max_bytes, highest) for chunk in column.filters):
            return None
    return _fix_of(
        column,
        "add_filters",
        rebuild=rebuild,
        fpp=None if fpp == DEFAULT_FPP else fpp,
        max_bytes=max_bytes,
    )


complete = partial(add, rebuild=None)
"""Return the fix that builds the missing filters, and leaves the others as they are."""


def target_fpp(column: ColumnFacts, limits: Limits) -> float:
    """Return the false-positive rate of a new filter: the usual one, unless a limit or a
    declaration demands less."""
    return min(DEFAULT_FPP, limits.max_fpp or 1, *(size.fpp for size in column.targets))


def worst_fpp(column: ColumnFacts, limits: Limits) -> float:
    """Return the highest false-positive rate that a smaller filter may have: that of limits,
    declarations, and filters worth writing."""
    highest = min(sizing.SATURATED_FPP, limits.max_fpp or 1)
    if column.judge == "existence":
        return highest
    return min([highest, *(FPP_TOLERANCE * size.fpp for size in column.targets)])


def _most_bytes(column: ColumnFacts, limits: Limits) -> int | None:
    """Return the largest size with which filters of all row groups keep their share of the data; 0
    without one, None without a limit."""
    if limits.max_bytes_share is None:
        return None
    data_bytes = sum(chunk.chunk_bytes for chunk in column.chunks)
    share = limits.max_bytes_share * data_bytes / len(column.chunks)
    bitset_bytes = max(0, int(share) - _LONGEST_HEADER)
    power_of_two = 1 << bitset_bytes.bit_length() >> 1
    if power_of_two < sizing.MIN_BYTES:
        return 0
    return min(sizing.MAX_BYTES, power_of_two)


def _fits(chunk: ChunkFacts, num_bytes: int, fpp: float) -> bool:
    """Return whether a new filter of this size has at most this FPP, whichever bits its values
    set."""
    ndv: float = chunk.meta.most_values
    bits = chunk.bits
    if bits is not None and bits.ndv is not None and not bits.identical_blocks:
        ndv = max(1.0, bits.ndv)
    return FPP_TOLERANCE * sizing.fpp_of(ndv, num_bytes) <= fpp


def ensure(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that builds the requested filters; None if no filter can be built, or if their
    sizes differ by row group, which no parameter states.
    """
    if _gets_no_filter(column) or any(chunk.encryption is not None for chunk in column.chunks):
        return None
    if len(column.targets) != 1:
        return None
    (size,) = column.targets
    rebuild = None
    if column.filters and column.judge != "existence":
        rebuild = "weak"
    return _fix_of(
        column,
        "add_filters",
        rebuild=rebuild,
        fpp=None if size.fpp == DEFAULT_FPP else size.fpp,
        ndv=size.ndv,
        max_bytes=None if size.max_bytes >= sizing.MAX_BYTES else size.max_bytes,
    )


def _gets_no_filter(column: ColumnFacts) -> bool:
    return column.column.physical == "BOOLEAN"


def remove(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that removes the filters; None if they are requested and can be built."""
    if column.targets and not _gets_no_filter(column):
        return None
    return _fix_of(column, "remove_filters")


def remove_bytes_too(column: ColumnFacts, limits: Limits) -> Fix:
    """Return the fix that also removes the bytes of the filters, because they must not stay in the
    file."""
    return _fix_of(column, "remove_filters", compact=True)


def shrink(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that shrinks filters to the smallest size that keeps the usual FPP. Filters of
    drafts are rebuilt in that size."""
    for chunk in column.filters:
        # No command resizes a draft.
        if chunk.stored is not None and chunk.stored.header.readings:
            return rebuild(column, limits)
    return _fix_of(column, "resize_filters", fpp=target_fpp(column, limits))


def shrink_to_portable(column: ColumnFacts, limits: Limits) -> Fix:
    return _fix_of(column, "resize_filters", max_bytes=sizing.MAX_BYTES)


def shrink_to_share(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that shrinks filters to the largest size within their share of the data, or
    removes them if that size is too small; None if a filter would miss another limit.
    """
    most = _most_bytes(column, limits)
    if not most:
        return remove(column, limits)
    highest = worst_fpp(column, limits)
    is_too_high = False
    for chunk in column.filters:
        rate = _folded_fpp(chunk, most)
        if rate is None:
            return add(column, limits)
        is_too_high |= rate > highest
    if is_too_high:
        return None
    return _fix_of(column, "resize_filters", max_bytes=most)


def _folded_fpp(chunk: ChunkFacts, most: int) -> float | None:
    """Return the FPP of the filter at this size, or at its own if that is smaller; None if no
    command resizes it so."""
    if chunk.bits is None or chunk.stored is None or chunk.stored.header.readings:
        return None
    folds = chunk.bits.folds
    num_bytes, fpp = folds[0]
    if num_bytes < most:
        return fpp
    return dict(folds).get(most)
