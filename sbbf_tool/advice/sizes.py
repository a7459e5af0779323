"""The false-positive rate of new filters, chosen by what their size saves.

The size of a filter is a power of two, so it has often a far lower rate than the target, and the
next smaller size one that is hardly higher. A lookup of an absent value reads the filter of each
row group that min and max leave, and the row groups that its filter does not exclude: the smaller
size is chosen if that takes fewer bytes. Readers are assumed to read filters whole, as parquet-java
and DuckDB do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sbbf_tool.advice.totals import Totals
from sbbf_tool.advice.verdicts import Lookup
from sbbf_tool.bloom import sizing
from sbbf_tool.frozen import Frozen

_LEAST_BYTES = 64 << 10
"""Fewer bytes of filters that a smaller size would save are not worth a word."""


class SizeOption(Frozen):
    """What all advised filters cost at one target."""

    fpp: float
    filter_bytes: int
    """Bytes of all filters."""
    lookup_bytes: int
    """Bytes of filters and row groups that a lookup of one absent value in each of the columns
    reads."""


class AdvisedColumn(NamedTuple):
    """A column that gets filters."""

    totals: Totals
    lookup: Lookup


def list_options(columns: Sequence[AdvisedColumn], fpp: float) -> tuple[SizeOption, ...]:
    """Return what the filters cost at the target and, if a next smaller size is near and saves
    something, at the FPP of that size."""
    options = [_cost_at(columns, fpp)]
    for smaller_fpp in sorted(_list_near(columns, fpp)):
        option = _cost_at(columns, smaller_fpp)
        if options[0].filter_bytes - option.filter_bytes >= _LEAST_BYTES:
            options.append(option)
    return tuple(options)


def choose_fpp(options: Iterable[SizeOption]) -> float:
    """Return the FPP with which lookups read the least."""
    return min(options, key=lambda option: option.lookup_bytes).fpp


def _list_near(columns: Iterable[AdvisedColumn], fpp: float) -> set[float]:
    """Return the FPPs of the next smaller sizes that are near, of the largest filter of each
    column."""
    near = set()
    for totals, _ in columns:
        ndv = max(1.0, totals.ndv or 1.0)
        smaller_fpp = sizing.fpp_of_half(ndv, sizing.bytes_for(ndv, fpp), fpp)
        if smaller_fpp is not None:
            near.add(smaller_fpp)
    return near


def _cost_at(columns: Iterable[AdvisedColumn], fpp: float) -> SizeOption:
    filter_bytes = 0
    lookup_bytes = 0.0
    for totals, lookup in columns:
        cost = totals.estimate_cost(fpp)
        if cost is None:
            continue
        filter_bytes += cost.all_filters
        read_bytes = cost.all_filters + cost.mean_fpp * totals.row_group_bytes
        lookup_bytes += lookup.after_statistics / lookup.row_groups * read_bytes
    return SizeOption(fpp, filter_bytes, round(lookup_bytes))
