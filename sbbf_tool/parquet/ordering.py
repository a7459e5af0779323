"""Where a written value stands among the values of a column: its key in the column's order
(parquet.thrift `ColumnOrder`), which compares with `statistics.Bounds` and with stored values.

A number need not be one that the column can store: 5.5 is between 5 and 6 in a column of integers.
A fraction may stand for several numbers of a floating-point column, because engines round it to
single or to double precision before they compare.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from sbbf_tool.parquet import equals, literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.notation import DECIMALS, FLOATS, INTEGERS
from sbbf_tool.parquet.statistics import BYTES, FLOAT, UNSIGNED, key_of, order_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from sbbf_tool.parquet.values import PlainValues

_WIDTHS = {"<e": ("<e", "<f"), "<f": ("<f",), "<d": ()}
"""The narrower precisions to which a literal may be rounded, by the layout of a column."""


class KeyRange(NamedTuple):
    """The keys that a written value may have; usually one."""

    low: Any
    high: Any
    note: str | None = None
    """How the value was read."""

    @property
    def is_exact(self) -> bool:
        return bool(self.low == self.high)


class Sides(NamedTuple):
    """Which values of a column are certainly below a written value, and which above it. NaN is
    above all numbers, as in most query engines."""

    below: NDArray[Any]
    above: NDArray[Any]


def find_keys(column: Column, text: str, kind: str, *, is_strict: bool) -> KeyRange | None:
    """Return the keys of a written value; None if the column has no order, or readers convert the
    value in ways of their own. Unless `is_strict`, a DOUBLE may be a FLOAT in other files.

    `kind` is that of `predicates.Constant`. Raises UsageError if it is no value
    of the column.
    """
    reading = column.reading
    is_converted = reading.char_length or reading.table_type
    is_shifted = reading.is_hybrid or reading.is_shifted or reading.doubt
    if order_of(column) is None or is_converted or is_shifted:
        return None
    if kind != "text" and literals.may_be_text(column):
        return None
    if (kind == "boolean") != (column.physical == "BOOLEAN") and kind != "text":
        return None
    if column.physical == "BOOLEAN":
        literals.parse(column, text)
        return _one_key(column, literals.BOOLEAN_FORMS.get(text.lower()))
    number = literals.parse_number(text)
    notation = literals.notation_of(column)
    if number is not None and notation in (INTEGERS, DECIMALS):
        scale = 0
        if notation is DECIMALS and column.logical is not None:
            scale = column.logical.scale
        key = Fraction(number) * 10**scale
        if kind != "number" and key.denominator > 1:
            # Engines round text to a value of the column, a number they compare as it is.
            return None
        return KeyRange(key, key)
    if number is not None and notation is FLOATS:
        return _find_floats(column, text, is_strict=is_strict)
    literal = literals.parse(column, text)
    ranges = {_one_key(column, form) for form in literal.forms}
    if len(ranges) != 1:
        return None
    (keys,) = ranges
    return keys and keys._replace(note=literal.note)


def _one_key(column: Column, plain: bytes | None) -> KeyRange | None:
    key = key_of(column, plain)
    if key is None:
        return None
    return KeyRange(key, key)


def _find_floats(column: Column, text: str, *, is_strict: bool) -> KeyRange | None:
    double = float(text)
    if double in (float("inf"), float("-inf")):
        return None
    layouts = _WIDTHS[column.float_format or "<e"]
    if not is_strict:
        layouts = (*layouts, "<f")
    numbers = [double]
    for layout in layouts:
        with suppress(OverflowError):
            plain = struct.pack(layout, double)
            numbers += struct.unpack(layout, plain)
    return KeyRange(min(numbers), max(numbers))


def find_sides(values: PlainValues, keys: KeyRange) -> Sides:
    """Compare stored values of the column with a written value."""
    import numpy as np

    column = values.column
    order = order_of(column)
    if order == FLOAT:
        floats = equals.floats(column, values.fixed())
        assert floats is not None
        numbers = floats.astype(np.float64)
        return Sides(numbers < keys.low, (numbers > keys.high) | np.isnan(numbers))
    if order == BYTES:
        return _compare_bytes(values.array(), keys)
    integers = _find_integers(values, order == UNSIGNED)
    if integers is None:
        below = [key_of(column, values[at]) < keys.low for at in range(len(values))]
        above = [key_of(column, values[at]) > keys.high for at in range(len(values))]
        return Sides(np.array(below, np.bool_), np.array(above, np.bool_))
    return _compare_integers(integers, keys)


def _find_integers(values: PlainValues, is_unsigned: bool) -> NDArray[Any] | None:
    """Return the values as integers; None for decimals that are stored as bytes."""
    import numpy as np

    column = values.column
    if column.physical == "BOOLEAN":
        return np.frombuffer(values.fixed(), np.uint8)
    if column.physical not in ("INT32", "INT64"):
        return None
    shown = equals.numbers_shown(column, values.fixed())
    if shown is not None:
        return shown[1]
    sign = "u" if is_unsigned else "i"
    return np.frombuffer(values.fixed(), f"<{sign}{column.width}")


def _compare_integers(integers: NDArray[Any], keys: KeyRange) -> Sides:
    import numpy as np

    limits = np.iinfo(integers.dtype)
    # An integer is below a fraction if it is below the next integer.
    least = -(-keys.low // 1)
    most = keys.high // 1
    below = np.full(len(integers), least > limits.max)
    if limits.min <= least <= limits.max:
        below = integers < integers.dtype.type(least)
    above = np.full(len(integers), most < limits.min)
    if limits.min <= most <= limits.max:
        above = integers > integers.dtype.type(most)
    return Sides(below, above)


def _compare_bytes(array: pa.Array, keys: KeyRange) -> Sides:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.DictionaryArray):
        entries = _compare_bytes(array.dictionary, keys)
        indices = np.asarray(array.indices)
        return Sides(entries.below[indices], entries.above[indices])
    # Fixed widths are no obstacle to an order of bytes.
    array = array.cast(pa.large_binary())
    low = pa.scalar(keys.low, pa.large_binary())
    high = pa.scalar(keys.high, pa.large_binary())
    return Sides(np.asarray(pc.less(array, low)), np.asarray(pc.greater(array, high)))
