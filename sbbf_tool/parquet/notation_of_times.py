"""The notation of dates, times, instants and intervals (LogicalTypes.md, "Temporal Types").

A time finer than a column's unit is absent, as any value that the column cannot store: see
`notation`.
"""

from __future__ import annotations

import re
import struct

from sbbf_tool.parquet import equals, int96, iso8601
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.logical import HYBRID, SHIFTED
from sbbf_tool.parquet.notation import (
    ABSENT,
    CANNOT_SAY,
    Literal,
    Notation,
    logical_of,
    width_of,
)

_GREGORIAN = -141_427
"""1582-10-15, the first day after the change of the calendar."""
_FROM_1900 = -2_208_988_800 * iso8601.NANOS_PER_SECOND
"""Before 1900, the conversion between the calendars also depends on time zones."""
_AS_UTC = "read as UTC"
_NANOS = (
    "the writer may store digits below a microsecond, which DuckDB, Spark and Trino do not show: "
    "query nine digits of the second"
)
_NINE_DIGITS = r"(?a)[.,]\d{9}"
_INFINITIES = ("infinity", "-infinity")
"""DuckDB stores them in columns of dates and instants, as the largest number and its negative."""


def _signed(plain: bytes) -> int:
    return int.from_bytes(plain, "little", signed=True)


def _infinity(column: Column, text: str) -> Literal:
    width = width_of(column)
    number = (1 << 8 * width - 1) - 1
    if text.startswith("-"):
        number = -number
    return Literal(text, (number.to_bytes(width, "little", signed=True),))


def _parse_date(column: Column, text: str) -> Literal:
    if column.reading.is_shifted:
        iso8601.parse_date(text)
        return Literal(text, verdict=CANNOT_SAY, note=SHIFTED)
    if text.lower() in _INFINITIES:
        return _infinity(column, text)
    days = iso8601.parse_date(text)
    if column.reading.is_hybrid and days < _GREGORIAN:
        return Literal(text, verdict=CANNOT_SAY, note=HYBRID)
    return Literal(text, (days.to_bytes(4, "little", signed=True),))


def _count_units(column: Column, text: str, instant: iso8601.Instant) -> Literal:
    """Convert a time to the stored number of the column's units."""
    logical = logical_of(column)
    if instant.zoned and not logical.utc:
        raise ValueError
    if instant.in_unit(logical.unit) is None:
        return _finer(text, logical.unit)
    if column.reading.is_hybrid and instant.nanos < _FROM_1900:
        return Literal(text, verdict=CANNOT_SAY, note=HYBRID)
    counts = [nanos // iso8601.UNIT_NANOS[logical.unit] for nanos in instant.each]
    if logical.kind == "TIME" and logical.utc:
        counts = [*counts, *equals.times_beside(column, counts[0])]
    note = None
    if logical.kind == "TIMESTAMP" and logical.utc and not instant.zoned:
        note = _AS_UTC
    width = width_of(column)
    forms = tuple(count.to_bytes(width, "little", signed=True) for count in counts)
    return Literal(text, forms, note=note)


def _finer(text: str, unit: str) -> Literal:
    return Literal(
        text, verdict=ABSENT, note=f"more precise than the column's unit, {unit.lower()}"
    )


def _parse_timestamp(column: Column, text: str) -> Literal:
    if text.lower() in _INFINITIES:
        return _infinity(column, text)
    return _count_units(column, text, iso8601.parse_timestamp(text))


def _format_timestamp(column: Column, plain: bytes) -> str:
    logical = logical_of(column)
    return iso8601.format_timestamp(_signed(plain), logical.unit, utc=logical.utc)


def _expect_time(column: Column) -> str:
    logical = logical_of(column)
    zone = "" if logical.utc else ", without a zone"
    form = "HH:MM:SS" if logical.kind == "TIME" else "YYYY-MM-DDTHH:MM:SS"
    return f"{form} with fractions to {logical.unit.lower()}{zone}"


def _parse_int96(column: Column, text: str) -> Literal:
    instant = iso8601.parse_timestamp(text)
    if instant.finer:
        return _finer(text, "NANOS")
    if column.reading.is_hybrid and instant.nanos < _FROM_1900:
        return Literal(text, verdict=CANNOT_SAY, note=HYBRID)
    has_whole_micros = not instant.nanos % 1000 and not re.search(_NINE_DIGITS, text)
    if column.reading.has_nanos and has_whole_micros:
        return Literal(text, verdict=CANNOT_SAY, note=_NANOS)
    forms: list[bytes] = []
    for nanos in instant.each:
        forms += int96.forms_of(nanos)
    note = None if instant.zoned else _AS_UTC
    return Literal(text, tuple(forms), note=note)


def _format_int96(column: Column, plain: bytes) -> str:
    instant = int96.instant_of(plain)
    if plain not in int96.forms_of(instant):
        raise ValueError
    return iso8601.format_timestamp(instant, "NANOS", utc=True)


def _parse_interval(column: Column, text: str) -> Literal:
    parts = iso8601.parse_duration(text)
    if parts is None:
        return _finer(text, "MILLIS")
    # Months and days have no sign in the format; DuckDB stores and shows them as signed.
    plain = b"".join(part.to_bytes(4, "little", signed=part < 0) for part in parts)
    return Literal(text, tuple(dict.fromkeys((plain, equals.normalise_intervals(plain)))))


def _format_interval(column: Column, plain: bytes) -> str:
    months, days, millis = struct.unpack("<III", plain)
    return iso8601.format_duration(months, days, millis)


DATES = Notation(
    _parse_date,
    lambda column, plain: iso8601.format_date(_signed(plain)),
    lambda column: "a date as YYYY-MM-DD",
)
TIMES = Notation(
    lambda column, text: _count_units(column, text, iso8601.parse_time(text)),
    lambda column, plain: iso8601.format_time(_signed(plain), logical_of(column).unit),
    _expect_time,
)
TIMESTAMPS = Notation(_parse_timestamp, _format_timestamp, _expect_time)
INT96 = Notation(
    _parse_int96,
    _format_int96,
    lambda column: "YYYY-MM-DDTHH:MM:SS with fractions to nanos, or 12 bytes as 0x..",
)
INTERVALS = Notation(
    _parse_interval,
    _format_interval,
    lambda column: "an ISO 8601 duration to milliseconds, such as P1M2DT3.004S",
)
