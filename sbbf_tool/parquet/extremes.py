"""The smallest and the largest of many values of a column, in the column's order (parquet.thrift `ColumnOrder`, TYPE_ORDER).

Integers and bytes are for the kernel; numpy, imported where floats are hashed in any case, knows NaN.
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
"""The smallest and the largest, as plain values."""


def order_of(column: Column) -> str | None:
    """The order of a column's values; None where it is undefined, or not the order of anything that the plain bytes give away."""
    kind = column.logical.kind if column.logical is not None else ""
    if column.doubt or kind in _WITHOUT_ORDER or column.physical == "INT96":
        return None
    if column.physical in ("BOOLEAN", "INT32", "INT64"):
        return SIGNED if column.logical is None or column.logical.signed else UNSIGNED
    if column.physical in ("FLOAT", "DOUBLE") or kind == "FLOAT16":
        return FLOAT
    return DECIMAL if kind == "DECIMAL" else BYTES


def has_extremes(column: Column) -> bool:
    """Whether many values of a column are quickly compared: not those of BOOLEAN, nor a DECIMAL of any length."""
    order = order_of(column)
    return order == BYTES or (order is not None and column.width is not None)


def of_fixed(column: Column, values: memoryview) -> Extremes | None:
    """Of values of the column's width, one after the other; NaN left out. None of no values, and of columns without an order."""
    order = order_of(column)
    if order is None or not len(values) or column.width is None:
        return None
    if order == FLOAT:
        return _of_floats(column, values)
    return kernels.active().extremes_fixed(values, column.width, order)


def of_variable(column: Column, data: Buffer, offsets: Buffer, offset_width: int) -> Extremes | None:
    """Of BYTE_ARRAY values in Arrow's layout."""
    return kernels.active().extremes_variable(data, offsets, offset_width) if order_of(column) == BYTES else None


def of_plain(column: Column, page: memoryview, count: int) -> Extremes | None:
    """Of the values of a page in PLAIN form, after its levels. ValueError where there are not `count`."""
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
