"""Min and max of a column chunk, as values that compare in the column's order (parquet.thrift
`Statistics`, `ColumnOrder`).

A writer may shorten both, min downwards and max upwards: they enclose the values of the chunk but
need not occur among them.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sbbf_tool.bloom import kernels
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.equals import usual_numbers
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.idl.ttypes import Statistics
from sbbf_tool.parquet.logical import SHIFTED

if TYPE_CHECKING:
    from typing_extensions import Buffer

FLOAT = "float"
SIGNED = "signed"
UNSIGNED = "unsigned"
BYTES = "bytes"
DECIMAL = "decimal"
_WITHOUT_ORDER = ("INTERVAL", "GEOMETRY", "GEOGRAPHY", "UNKNOWN")


Extremes: TypeAlias = tuple[bytes, bytes]
"""The smallest and the largest value, in PLAIN form."""


def order_of(column: Column) -> str | None:
    """Return the order of a column's values; None if it is undefined, or cannot be derived from the
    plain bytes."""
    kind = column.logical.kind if column.logical is not None else ""
    if column.doubt or kind in _WITHOUT_ORDER or column.physical == "INT96":
        return None
    if column.physical in ("BOOLEAN", "INT32", "INT64"):
        return SIGNED if column.logical is None or column.logical.signed else UNSIGNED
    if column.physical in ("FLOAT", "DOUBLE") or kind == "FLOAT16":
        return FLOAT
    return DECIMAL if kind == "DECIMAL" else BYTES


def has_extremes(column: Column) -> bool:
    """Return whether extremes can be found quickly in a column: it has an order, and is neither
    BOOLEAN nor a BYTE_ARRAY DECIMAL."""
    order = order_of(column)
    return order == BYTES or (order is not None and column.width is not None)


def of_fixed(column: Column, values: memoryview) -> Extremes | None:
    """Find the extremes of values of the column's width, stored back to back. Ignores NaN. None for
    no values or no order."""
    order = order_of(column)
    if order is None or not len(values) or column.width is None:
        return None
    if order == FLOAT:
        return _of_floats(column, values)
    return kernels.active().extremes_fixed(values, column.width, order)


def of_variable(
    column: Column, data: Buffer, offsets: Buffer, offset_width: int
) -> Extremes | None:
    """Find the extremes of BYTE_ARRAY values in Arrow's layout."""
    if order_of(column) != BYTES:
        return None
    return kernels.active().extremes_variable(data, offsets, offset_width)


def of_plain(column: Column, page: memoryview, count: int) -> Extremes | None:
    """Find the extremes of the `count` values of a page in PLAIN form, without its levels. Raises
    ValueError for another number."""
    if column.width is not None:
        return of_fixed(column, page)
    if order_of(column) != BYTES:
        return None
    return kernels.active().extremes_length_prefixed(page, count)


def _of_floats(column: Column, values: memoryview) -> Extremes | None:
    numbers = equals.floats(column, values)
    if numbers is None:
        return None
    import numpy as np

    smallest = np.fmin.reduce(numbers)
    largest = np.fmax.reduce(numbers)
    if np.isnan(smallest):
        return None
    return smallest.tobytes(), largest.tobytes()


NO_ROW_LOST = "no row is lost"
"""End of the description of a contradiction by which no reader loses a row."""
# parquet-mr up to 1.7 reused the buffers of bytes, and could state the last value as both bounds
# (PARQUET-251).
_RELIABLE_FOR_BYTES = (
    r"(parquet-mr version (1\.([89]|\d\d)|[2-9])\."
    r"|((parquet-cpp|fastparquet)\S*|parquet-rs|impala|DuckDB) version )"
)

NEWER = "newer"
"""Bounds in `min_value` and `max_value`, in a footer with the column's order."""
NEWER_UNORDERED = "newer_unordered"
"""Bounds in `min_value` and `max_value`, in a footer without the column's order."""
OLDER = "older"
"""Bounds in `min` and `max` alone, in a footer without the column's order."""
OLDER_ORDERED = "older_ordered"
"""Bounds in `min` and `max` alone, in a footer with the column's order."""
OLDER_EQUAL = "older_equal"
"""Bounds in `min` and `max` alone that are equal."""
OLDER_CROSSED = "older_crossed"
"""Bounds in `min` and `max` alone whose minimum is above the maximum."""
OLDER_REUSED = "older_reused"
"""Equal bounds of bytes in `min` and `max` alone, by a writer that may have stated its last value
as both."""


class Bounds(NamedTuple):
    """Keys that compare in the same order as the values of the column; all keys of a column have
    the same type."""

    low: Any
    high: Any


def bounds(footer: Footer, row_group: int, column: Column) -> Bounds | None:
    """Return the bounds of a chunk's non-null values; None if the footer has no reliable ones.

    Older writers compare decimals as bytes (PARQUET-1655). Bounds of both signs then contradict
    each other, but not those of decimals of different lengths.
    """
    stated = stated_bounds(footer, row_group, column)
    if stated is None:
        return None
    return reliable_bounds(column, stated)


def reliable_bounds(column: Column, stated: tuple[bytes, bytes]) -> Bounds | None:
    """Return what `stated_bounds` has returned as bounds; None if it is not reliable."""
    if order_of(column) == DECIMAL and column.width is None:
        return None
    keys = _keys_of(column, *stated)
    return keys if keys is not None and keys.low <= keys.high else None


def bounds_by_form(footer: Footer, row_group: int, column: Column) -> dict[str, Bounds]:
    """Return the bounds of a chunk as its footer states them, reliable or not, by their form.

    Readers differ in the forms that they trust. Newer bounds that contradict each other have no
    form.
    """
    meta = footer.chunk(row_group, column.index)
    if meta is None or meta.statistics is None:
        return {}
    statistics = meta.statistics
    has_order = _has_order(footer, column)
    forms = {}
    newer = _keys_of(column, statistics.min_value, statistics.max_value)
    if newer is not None and newer.low <= newer.high:
        forms[NEWER if has_order else NEWER_UNORDERED] = newer
    has_newer = statistics.min_value is not None or statistics.max_value is not None
    older = _keys_of(column, statistics.min, statistics.max)
    if older is not None and not has_newer:
        is_reliable = _is_reliable_for(footer, column)
        forms[_form_of_older(older, has_order=has_order, is_reliable=is_reliable)] = older
    return forms


def _form_of_older(older: Bounds, *, has_order: bool, is_reliable: bool) -> str:
    if has_order:
        return OLDER_ORDERED
    if older.low == older.high:
        return OLDER_EQUAL if is_reliable else OLDER_REUSED
    return OLDER if older.low < older.high else OLDER_CROSSED


def _keys_of(column: Column, low: bytes | None, high: bytes | None) -> Bounds | None:
    low_key = key_of(column, low)
    high_key = key_of(column, high)
    if low_key is None or high_key is None:
        return None
    return Bounds(low_key, high_key)


class StatisticsCheck:
    """A comparison of a chunk's values, run by run, with the bounds and the `null_count` that the
    footer states.

    The older `min` and `max` are used if the newer fields are missing, and both without regard to
    the column's order: DuckDB and DataFusion prune by them on every type.
    """

    def __init__(self, footer: Footer, row_group: int, column: Column) -> None:
        meta = footer.chunk(row_group, column.index)
        self._column = column
        self._num_values = 0
        self._null_count: int | None = None
        self._has_newer = False
        self._names = ("min", "max")
        self._low: Any = None
        self._high: Any = None
        if meta is not None:
            self._num_values = meta.num_values or 0
            if meta.statistics is not None:
                self._take(meta.statistics)
        self.smallest: Any = None
        """Key of the smallest value so far; None before the first."""
        self.largest: Any = None

    def _take(self, statistics: Statistics) -> None:
        self._null_count = statistics.null_count
        self._has_newer = statistics.min_value is not None or statistics.max_value is not None
        if self._has_newer:
            self._names = ("min_value", "max_value")
        if has_extremes(self._column):
            low_name, high_name = self._names
            self._low = key_of(self._column, getattr(statistics, low_name))
            self._high = key_of(self._column, getattr(statistics, high_name))

    @property
    def states_nothing(self) -> bool:
        """Whether the footer states no statistic that values could contradict."""
        return self._low is None and self._high is None and self._null_count is None

    @property
    def is_complete(self) -> bool:
        """Whether the footer states every statistic that this class compares values with."""
        if self._null_count is None and self._column.max_definition:
            return False
        is_empty = self._null_count is not None and self._null_count == self._num_values
        has_both = self._low is not None and self._high is not None
        return is_empty or (self._has_newer and has_both)

    def add(self, extremes: Extremes | None) -> None:
        """Add the extremes of a run of values; None for a run without any."""
        if extremes is None:
            return
        smallest, largest = (key_of(self._column, plain) for plain in extremes)
        self.smallest = smallest if self.smallest is None else min(self.smallest, smallest)
        self.largest = largest if self.largest is None else max(self.largest, largest)

    def contradictions(self, values: int | None) -> tuple[str, ...]:
        """Describe how the values contradict the footer, and what follows. `values` is the number
        of non-null values; None if unknown."""
        contradictions = []
        if self._low is not None and self.smallest is not None and self.smallest < self._low:
            contradictions.append(f"a value is below {self._names[0]}")
        if self._high is not None and self.largest is not None and self.largest > self._high:
            contradictions.append(f"a value is above {self._names[1]}")
        if values is not None:
            of_nulls = self._contradiction_of_nulls(self._num_values - values)
            if of_nulls is not None:
                contradictions.append(of_nulls)
        elif self.smallest is not None and self._null_count == self._num_values:
            # A dictionary has a value, which may be unused.
            contradictions.append("null_count is that of all values: queries for a value lose rows")
        return tuple(contradictions)

    def _contradiction_of_nulls(self, nulls: int) -> str | None:
        stated = self._null_count
        if stated is None or stated == nulls:
            return None
        if stated < nulls and self._column.max_repetition:
            # Writers disagree on whether an empty list counts as a null.
            return None
        # Readers compare the count with 0 and with the number of values.
        harm = f"counts of nulls are wrong, but {NO_ROW_LOST}"
        if stated == self._num_values:
            harm = "queries for a value lose rows"
        elif stated == 0:
            harm = "queries for null lose rows"
        return f"null_count is {stated:,}, the chunk has {nulls:,} nulls: {harm}"


def stated_bounds(footer: Footer, row_group: int, column: Column) -> tuple[bytes, bytes] | None:
    """Return min and max as bytes: those in the column's order, or the older ones, which writers
    compared as signed numbers or bytes.

    Equal bounds need no order, but are those of bytes only if the writer is known to be reliable.
    """
    meta = footer.chunk(row_group, column.index)
    if meta is None or meta.statistics is None:
        return None
    statistics = meta.statistics
    has_newer = statistics.min_value is not None and statistics.max_value is not None
    if has_newer and _has_order(footer, column):
        return statistics.min_value, statistics.max_value
    if statistics.min is None or statistics.max is None:
        return None
    if not _has_order_of_older(column) and statistics.min != statistics.max:
        return None
    if not _is_reliable_for(footer, column):
        return None
    return statistics.min, statistics.max


class TrustedBounds(NamedTuple):
    """Which bounds of a column's chunks `stated_bounds` returns, if a chunk states them."""

    newer: bool
    """Those in `min_value` and `max_value`, if both are there."""
    older: bool
    """Otherwise those in `min` and `max`."""
    only_equal: bool
    """Of the older ones, only those that are equal."""


def trusted_bounds(footer: Footer, column: Column) -> TrustedBounds:
    """Return which bounds of a column count in a file, whatever a chunk states."""
    return TrustedBounds(
        newer=_has_order(footer, column),
        older=_is_reliable_for(footer, column),
        only_equal=not _has_order_of_older(column),
    )


def _has_order_of_older(column: Column) -> bool:
    """Return whether older bounds, which writers compared as signed numbers or bytes, have the
    order of the column."""
    is_number = column.physical in ("INT32", "INT64", "FLOAT", "DOUBLE")
    return is_number and (column.logical is None or column.logical.signed)


def _is_reliable_for(footer: Footer, column: Column) -> bool:
    """Return whether the writer of a file is known not to reuse buffers of bytes, or the column
    holds no bytes."""
    if column.physical not in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return True
    return re.match(_RELIABLE_FOR_BYTES, str(footer.metadata.created_by)) is not None


def doubt_of_numbers(footer: Footer, row_group: int, column: Column) -> str | None:
    """Explain why numbers of a chunk may be stored in other forms than those that are queried; None
    if its bounds do not show it."""
    usual = usual_numbers(column)
    is_date = _may_be_shifted(footer, column)
    if usual is None and not is_date:
        return None
    for plain in stated_bounds(footer, row_group, column) or ():
        number = int.from_bytes(plain, "little", signed=True)
        if usual is not None and number not in usual:
            return (
                "its min and max are so far outside the range of the type that readers "
                "show them as other values"
            )
        if is_date and number > _LAST_USUAL_DAY:
            return f"its min or max is a date after the year 4999, so it may be that {SHIFTED}"
    return None


def undoubted_numbers(footer: Footer, column: Column) -> range | None:
    """Return the numbers that, as min and max, give `doubt_of_numbers` no reason to doubt; None if
    any number does not."""
    usual = usual_numbers(column)
    if usual is None and _may_be_shifted(footer, column):
        return range(-(1 << 63), _LAST_USUAL_DAY + 1)
    return usual


_LAST_USUAL_DAY = 1_106_685
"""5000-01-01. Drill takes later days for shifted ones, if the file does not name its writer."""


def _may_be_shifted(footer: Footer, column: Column) -> bool:
    """Return whether days of a column may be those of the oldest releases of Drill, which did not
    write their version."""
    is_date = column.logical is not None and column.logical.kind == "DATE"
    return is_date and footer.metadata.created_by in (None, "parquet-mr")


def _has_order(footer: Footer, column: Column) -> bool:
    """Return whether the column order is known, without which min_value and max_value mean
    nothing."""
    orders = footer.metadata.column_orders or ()
    if column.index >= len(orders):
        return False
    order = orders[column.index]
    return order is not None and any(member is not None for member in vars(order).values())


def key_of(column: Column, plain: bytes | None) -> Any:
    """Convert a plain value to a key that Python compares in the column's order; None for values
    outside the order, such as NaN."""
    order = order_of(column)
    if plain is None or order is None:
        return None
    if order in (SIGNED, UNSIGNED):
        if len(plain) != (column.width or 1):
            return None
        return int.from_bytes(plain, "little", signed=order == SIGNED)
    if order == FLOAT:
        try:
            (number,) = struct.unpack(column.float_format or "<e", plain)
        except struct.error:
            return None
        return None if number != number else number
    if order == DECIMAL:
        return int.from_bytes(plain, "big", signed=True)
    return plain
