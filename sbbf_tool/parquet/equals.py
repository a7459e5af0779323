"""Bytes that are not stored but that a reader may look up in a filter, because they mean a stored
value.

A filter contains hashes of bytes, a query looks up a value, and some values have several forms. A
builder inserts the other forms too: a filter of a superset of the stored values is always valid,
and protects readers that look up one form only. numpy is imported only if there are numbers to
examine, since most columns have none.

    INT of few bits   the number in the low bits, if the bits above them are not those of its
                      annotation: readers ignore them
    TIME in UTC       the time of day, if the stored number is outside the day: readers wrap it
    FLOAT, DOUBLE,    for 0.0 or -0.0, both; for any NaN, the canonical ones (parquet-format issue
    FLOAT16           407)
    INTERVAL          the normalized form, if a key of DuckDB in the file says so; DuckDB looks up
                      no other form
    INT96             both forms in which writers store an instant before 1970, one form of any
                      other instant (`int96`)
"""

from __future__ import annotations

from array import array as native_array
from typing import TYPE_CHECKING, Any

from sbbf_tool.bloom import hashing
from sbbf_tool.parquet import int96
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.iso8601 import NANOS_PER_DAY, UNIT_NANOS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.parquet.footer import Footer

INTERVAL_KEY = "duckdb.interval_bloom_filter"
INTERVAL_FORM = "normalized-v1"
_DUCKDB = "DuckDB"

_INTEGERS = {"INT32": "<i4", "INT64": "<i8"}
_ZEROS = {
    "<e": ("0000", "0080"),
    "<f": ("00000000", "00000080"),
    "<d": ("0000000000000000", "0000000000000080"),
}
_NANS = {
    "<e": ("007e", "00fe"),
    "<f": ("0000c07f", "0000c0ff"),
    "<d": ("000000000000f87f", "000000000000f8ff"),
}
INTERVAL_BYTES = 12
_INTERVAL = [("months", "<i4"), ("days", "<i4"), ("millis", "<u4")]
_MILLIS_PER_DAY = 86_400_000
_DAYS_PER_MONTH = 30


def is_interval(column: Column) -> bool:
    if column.logical is None or column.logical.kind != "INTERVAL":
        return False
    return column.width == INTERVAL_BYTES


def interval_form(footer: Footer, column: Column) -> str | None:
    """Return the form of INTERVAL values that, according to the file, its filters contain besides
    the stored form. None if the file does not say, and for columns of other types.
    """
    if not is_interval(column):
        return None
    for entry in footer.metadata.key_value_metadata or ():
        if entry.key == INTERVAL_KEY:
            return str(entry.value)
    return None


def has_interval_mark(footer: Footer, column: Column) -> bool:
    """Return whether the file marks the filters of `column` as holding normalised intervals, which
    DuckDB then queries."""
    return interval_form(footer, column) == INTERVAL_FORM


def forms_per_value(footer: Footer, column: Column) -> int:
    """Return the largest number of forms per value in a filter of `column`, on which its size
    depends."""
    if column.physical == "INT96" or interval_form(footer, column) is not None:
        return 2
    return 1


def compares_normalised(footer: Footer, column: Column) -> bool:
    """Return whether `column` has intervals in a file that DuckDB wrote or marked. For DuckDB, 24
    hours equal one day."""
    if not is_interval(column):
        return False
    is_marked = interval_form(footer, column) is not None
    return is_marked or str(footer.metadata.created_by).startswith(_DUCKDB)


def uncertainty(footer: Footer, column: Column) -> str | None:
    """Explain why a value may be stored although a filter of `column` contains none of its queried
    forms; None if this cannot happen."""
    if column.physical == "INT96":
        return int96.unknown_writer(footer)
    if not compares_normalised(footer, column) or interval_form(footer, column) == INTERVAL_FORM:
        return None
    return (
        "DuckDB compares intervals as months, days and hours carried over, and the file's "
        "filters are not known to hold that form"
    )


def narrow_bits(column: Column) -> int | None:
    """Return the bits of an integer that is annotated as narrower than it is stored; None for other
    columns."""
    if column.logical is None or column.logical.kind != "INT":
        return None
    if column.physical not in _INTEGERS:
        return None
    bits = column.logical.bits
    if not bits or bits >= 8 * (column.width or 0):
        return None
    return bits


def times_beside(column: Column, time: int) -> list[int]:
    """Return the numbers that may be stored for a time of day in UTC: a time with an offset may be
    outside the day."""
    day = _day(column)
    assert day is not None
    time_of_day = day if time == day else time % day
    numbers = (time_of_day, time_of_day - day, time_of_day + day)
    return [number for number in numbers if number != time]


def _day(column: Column) -> int | None:
    """Return the length of a day in the unit of a TIME in UTC; None for other columns."""
    if column.logical is None or column.logical.kind != "TIME" or not column.logical.utc:
        return None
    unit = column.logical.unit
    valid_type = "INT32" if unit == "MILLIS" else "INT64"
    if column.physical != valid_type:
        return None
    return NANOS_PER_DAY // UNIT_NANOS[unit]


def usual_numbers(column: Column) -> range | None:
    """Return the stored numbers that a query of narrow integers or times finds by what readers
    show; None for columns of other types."""
    bits = narrow_bits(column)
    if bits is not None:
        return range(-(1 << bits - 1), 1 << bits)
    day = _day(column)
    return None if day is None else range(-day, 2 * day)


def numbers_shown(column: Column, plain: memoryview) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the stored numbers of narrow integers and of times, and the numbers that readers show;
    None for columns of other types."""
    bits = narrow_bits(column)
    day = _day(column)
    if bits is None and day is None:
        return None
    stored = _view(plain, _INTEGERS[column.physical])
    if day is not None:
        times_of_day = stored % day
        times_of_day[stored == day] = day
        return stored, times_of_day
    assert bits is not None
    if column.logical is not None and column.logical.signed:
        unused_bits = 8 * stored.itemsize - bits
        return stored, (stored << unused_bits) >> unused_bits
    return stored, stored & (1 << bits) - 1


def floats(column: Column, plain: memoryview) -> NDArray[Any] | None:
    """Return the numbers of a floating-point column, including FLOAT16; None for columns of other
    types."""
    if column.float_format is None:
        return None
    return _view(plain, column.float_format)


def _view(plain: bytes | memoryview, layout: Any) -> NDArray[Any]:
    """View plain values as an array, in a layout of numpy."""
    # Queries look at columns, but at none of their values, and do not load numpy.
    import numpy as np

    return np.frombuffer(plain, layout)


def of_floats(column: Column, plain: memoryview) -> list[bytes]:
    """Return the other stored forms of floats: both zeros if one occurs, the canonical NaNs if any
    occurs; empty for other types."""
    numbers = floats(column, plain)
    layout = column.float_format
    if numbers is None or layout is None:
        return []
    forms: list[str] = []
    if (numbers == 0).any():
        forms += _ZEROS[layout]
    has_nan = (numbers != numbers).any()
    if has_nan:
        forms += _NANS[layout]
    return [bytes.fromhex(form) for form in forms]


def hashes_of(column: Column, plain: memoryview, *, normalised_intervals: bool) -> memoryview:
    """Hash the other forms of these fixed-width values, in no particular order; most values have
    none."""
    if normalised_intervals:
        return hashing.hash_fixed(normalise_intervals(plain), INTERVAL_BYTES)
    if column.physical == "INT96":
        return hashing.hash_fixed(int96.forms_beside(plain), int96.INT96_BYTES)
    numbers = numbers_shown(column, plain)
    if numbers is not None:
        stored, shown = numbers
        others = shown[shown != stored]
        return hashing.hash_fixed(others.tobytes(), others.itemsize)
    hashes = map(hashing.hash_value, of_floats(column, plain))
    return memoryview(native_array("Q", hashes))


def normalise_intervals(plain: bytes | memoryview) -> bytes:
    """Return the form in which DuckDB compares intervals: 24 hours become a day, 30 days a month.

    This matches DuckDB 2.0 (`ParquetIntervalUtils::HashNormalized`), which also reads months and
    days as signed.
    """
    stored = _view(plain, _INTERVAL)
    carried_days, millis = divmod(stored["millis"].astype("i8"), _MILLIS_PER_DAY)
    carried_months, days = divmod(stored["days"] + carried_days, _DAYS_PER_MONTH)
    months = stored["months"] + carried_months
    whole = months.clip(-(2**31), 2**31 - 1)
    # Carried back if months overflow.
    days += (months - whole) * _DAYS_PER_MONTH
    normalised = stored.copy()
    normalised["months"] = whole
    normalised["days"] = days
    normalised["millis"] = millis
    return normalised.tobytes()
