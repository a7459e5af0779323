"""The smallest and the largest of many values of a column, in the column's order (parquet.thrift `ColumnOrder`, TYPE_ORDER).

Integers and bytes are for the kernel; numpy, imported where floats are hashed in any case, knows NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom import kernels
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.columns import Column

if TYPE_CHECKING:
    from typing_extensions import Buffer

FLOAT, SIGNED, UNSIGNED, BYTES, DECIMAL = "float", "signed", "unsigned", "bytes", "decimal"
_WITHOUT_ORDER = ("INTERVAL", "GEOMETRY", "GEOGRAPHY", "UNKNOWN")


class Extremes(NamedTuple):
    """Two plain values."""

    smallest: bytes
    largest: bytes


def order_of(column: Column) -> str | None:
    """The order of a column's values; None where it has none, or none that many values are quickly compared by."""
    kind = column.logical.kind if column.logical is not None else ""
    if column.doubt or kind in _WITHOUT_ORDER or column.physical in ("BOOLEAN", "INT96"):
        return None
    if column.physical in ("INT32", "INT64"):
        return SIGNED if column.logical is None or column.logical.signed else UNSIGNED
    if column.physical in ("FLOAT", "DOUBLE") or kind == "FLOAT16":
        return FLOAT
    if kind == "DECIMAL":
        return DECIMAL if column.width is not None else None
    return BYTES


def of_fixed(column: Column, values: memoryview) -> Extremes | None:
    """Of values of the column's width, one after the other; NaN left out. None of no values, and of columns without an order."""
    order = order_of(column)
    if order is None or not len(values) or column.width is None:
        return None
    if order == FLOAT:
        return _of_floats(column, values)
    return _named(kernels.active().extremes_fixed(values, column.width, order))


def of_variable(column: Column, data: Buffer, offsets: Buffer, offset_width: int) -> Extremes | None:
    """Of BYTE_ARRAY values in Arrow's layout."""
    return None if order_of(column) is None else _named(kernels.active().extremes_variable(data, offsets, offset_width))


def of_plain(column: Column, page: memoryview, count: int) -> Extremes | None:
    """Of the values of a page in PLAIN form, after its levels. ValueError where there are not `count`."""
    if column.width is not None:
        return of_fixed(column, page)
    return None if order_of(column) is None else _named(kernels.active().extremes_length_prefixed(page, count))


def _of_floats(column: Column, values: memoryview) -> Extremes | None:
    numbers = equals.floats(column, values)
    if numbers is None:
        return None
    import numpy as np

    smallest, largest = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    return None if np.isnan(smallest) else Extremes(smallest.tobytes(), largest.tobytes())


def _named(pair: tuple[bytes, bytes] | None) -> Extremes | None:
    return None if pair is None else Extremes(*pair)
