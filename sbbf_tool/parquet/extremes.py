"""The smallest and the largest of many values of a column, in the column's order (parquet.thrift `ColumnOrder`, TYPE_ORDER).

The kernel compares integers and bytes; numpy, which is imported for hashing floats anyway, handles NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sbbf_tool.bloom import kernels
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.columns import Column

if TYPE_CHECKING:
    from typing_extensions import Buffer

FLOAT, SIGNED, UNSIGNED, BYTES, DECIMAL = "float", "signed", "unsigned", "bytes", "decimal"
_WITHOUT_ORDER = ("INTERVAL", "GEOMETRY", "GEOGRAPHY", "UNKNOWN")


Extremes: TypeAlias = tuple[bytes, bytes]
"""The smallest and the largest value, in PLAIN form."""


def order_of(column: Column) -> str | None:
    """Return the order of a column's values; None if it is undefined, or cannot be derived from the plain bytes."""
    kind = column.logical.kind if column.logical is not None else ""
    if column.doubt or kind in _WITHOUT_ORDER or column.physical == "INT96":
        return None
    if column.physical in ("BOOLEAN", "INT32", "INT64"):
        return SIGNED if column.logical is None or column.logical.signed else UNSIGNED
    if column.physical in ("FLOAT", "DOUBLE") or kind == "FLOAT16":
        return FLOAT
    return DECIMAL if kind == "DECIMAL" else BYTES


def has_extremes(column: Column) -> bool:
    """Return whether extremes can be found quickly in a column: it has an order, and is neither BOOLEAN nor a BYTE_ARRAY DECIMAL."""
    order = order_of(column)
    return order == BYTES or (order is not None and column.width is not None)


def of_fixed(column: Column, values: memoryview) -> Extremes | None:
    """Find the extremes of values of the column's width, stored back to back. Ignores NaN. None for no values or no order."""
    order = order_of(column)
    if order is None or not len(values) or column.width is None:
        return None
    if order == FLOAT:
        return _of_floats(column, values)
    return kernels.active().extremes_fixed(values, column.width, order)


def of_variable(column: Column, data: Buffer, offsets: Buffer, offset_width: int) -> Extremes | None:
    """Find the extremes of BYTE_ARRAY values in Arrow's layout."""
    return kernels.active().extremes_variable(data, offsets, offset_width) if order_of(column) == BYTES else None


def of_plain(column: Column, page: memoryview, count: int) -> Extremes | None:
    """Find the extremes of the `count` values of a page in PLAIN form, without its levels. Raises ValueError for another number."""
    if column.width is not None:
        return of_fixed(column, page)
    return kernels.active().extremes_length_prefixed(page, count) if order_of(column) == BYTES else None


def _of_floats(column: Column, values: memoryview) -> Extremes | None:
    numbers = equals.floats(column, values)
    if numbers is None:
        return None
    import numpy as np

    smallest, largest = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    return None if np.isnan(smallest) else (smallest.tobytes(), largest.tobytes())
