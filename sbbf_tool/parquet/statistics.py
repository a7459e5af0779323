"""Min and max of a column chunk, as values that compare in the column's order (parquet.thrift `Statistics`, `ColumnOrder`).

A writer may shorten both, min downwards and max upwards: they enclose the values of the chunk but need not occur among them.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.extremes import DECIMAL, FLOAT, SIGNED, UNSIGNED, Extremes, has_extremes, order_of
from sbbf_tool.parquet.footer import Footer

_FLOAT_FORMATS = {"FLOAT": "<f", "DOUBLE": "<d"}


class Bounds(NamedTuple):
    """Keys that compare in the same order as the values of the column; all keys of a column have the same type."""

    low: Any
    high: Any


def bounds(footer: Footer, row_group: int, column: Column) -> Bounds | None:
    """Return the bounds of a chunk's non-null values; None if the footer has no reliable ones."""
    low, high = (_key(column, plain) for plain in stated_bounds(footer, row_group, column) or (None, None))
    return Bounds(low, high) if low is not None and high is not None and low <= high else None


def may_hold(bounds: Bounds, column: Column, plain: bytes) -> bool:
    """Return whether a value, given as its plain bytes, is within the bounds. True for values without an order, such as NaN."""
    key = _key(column, plain)
    return key is None or bool(bounds.low <= key <= bounds.high)


class StatisticsCheck:
    """A comparison of a chunk's values, run by run, with the `min_value`, `max_value` and `null_count` that the footer states.

    The older `min` and `max` are ignored, since their order depends on the writer.
    """

    def __init__(self, footer: Footer, row_group: int, column: Column) -> None:
        meta = footer.chunk(row_group, column.index)
        statistics = meta.statistics if meta is not None else None
        ordered = statistics if statistics is not None and has_extremes(column) and _has_order(footer, column) else None
        self._column = column
        self._low = _key(column, ordered.min_value) if ordered is not None else None
        self._high = _key(column, ordered.max_value) if ordered is not None else None
        self._null_count = statistics.null_count if statistics is not None else None
        self._num_values = (meta.num_values or 0) if meta is not None else 0
        self.smallest: Any = None
        """Key of the smallest value so far; None before the first."""
        self.largest: Any = None

    @property
    def is_complete(self) -> bool:
        """Whether the footer states every statistic that this class compares values with."""
        if self._null_count is None and self._column.max_definition:
            return False
        is_empty = self._null_count is not None and self._null_count == self._num_values
        return is_empty or (self._low is not None and self._high is not None)

    def add(self, extremes: Extremes | None) -> None:
        """Add the extremes of a run of values; None for a run without any."""
        if extremes is None:
            return
        smallest, largest = (_key(self._column, plain) for plain in extremes)
        self.smallest = smallest if self.smallest is None else min(self.smallest, smallest)
        self.largest = largest if self.largest is None else max(self.largest, largest)

    def contradictions(self, values: int | None) -> tuple[str, ...]:
        """Describe how the values contradict the footer. `values` is the number of non-null values; None if it is unknown."""
        contradictions = []
        if self._low is not None and self.smallest is not None and self.smallest < self._low:
            contradictions.append("a value is below min_value")
        if self._high is not None and self.largest is not None and self.largest > self._high:
            contradictions.append("a value is above max_value")
        if values is not None and self._null_count is not None:
            nulls = self._num_values - values
            # Writers disagree on whether an empty list counts as a null.
            if self._null_count > nulls or (self._null_count < nulls and not self._column.max_repetition):
                contradictions.append(f"null_count is {self._null_count:,}, the chunk has {nulls:,} nulls")
        return tuple(contradictions)


def stated_bounds(footer: Footer, row_group: int, column: Column) -> tuple[bytes, bytes] | None:
    """Return min and max as bytes: those in the column's order, or the older ones, which writers compared as signed numbers or bytes."""
    meta = footer.chunk(row_group, column.index)
    if meta is None or meta.statistics is None:
        return None
    statistics = meta.statistics
    if statistics.min_value is not None and statistics.max_value is not None and _has_order(footer, column):
        return statistics.min_value, statistics.max_value
    if statistics.min is None or statistics.max is None:
        return None
    is_signed = column.physical in ("INT32", "INT64", *_FLOAT_FORMATS) and not (column.logical is not None and not column.logical.signed)
    return (statistics.min, statistics.max) if is_signed or statistics.min == statistics.max else None


def _has_order(footer: Footer, column: Column) -> bool:
    """Return whether the column order is known; without it, min_value and max_value mean nothing."""
    orders = footer.metadata.column_orders or ()
    order = orders[column.index] if column.index < len(orders) else None
    return order is not None and any(value is not None for value in vars(order).values())


def _key(column: Column, plain: bytes | None) -> Any:
    """Convert a plain value to a key that Python compares in the column's order; None for values outside the order, such as NaN."""
    order = order_of(column)
    if plain is None or order is None:
        return None
    if order in (SIGNED, UNSIGNED):
        return int.from_bytes(plain, "little", signed=order == SIGNED) if len(plain) == (column.width or 1) else None
    if order == FLOAT:
        try:
            (number,) = struct.unpack(_FLOAT_FORMATS.get(column.physical, "<e"), plain)
        except struct.error:
            return None
        return None if number != number else number
    return int.from_bytes(plain, "big", signed=True) if order == DECIMAL else plain
