"""Which keys of a DataFrame equal values of a column by their own value when Spark joins them.

The answers are those of a join of Spark on the key and the column, whatever the zone and the
settings of the session are: where Spark would convert the key or the column in a way that depends
on them, or that rounds, filters cannot say anything.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from sbbf_tool.frozen import Frozen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHOLE_NUMBERS = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (20, 0)}
"""Precision and scale that Spark gives the types as decimals."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38
_CANONICAL = re.compile(r"0|-?[1-9]\d{0,17}")
"""Text that every way of casting reads as the same number."""
EXACT_INTEGERS = {"FLOAT": 1 << 24, "DOUBLE": 1 << 53}
"""Integers up to this one are not rounded."""
GREGORIAN = date(1582, 10, 15)
"""Spark may read older dates as those of another calendar."""
_SINCE_LEGACY_ZONES = datetime(1900, 1, 2)
"""Spark may read older times with the offsets of other zones."""
_SAME = {
    "BOOLEAN": ("boolean",),
    "STRING": ("string", "binary"),
    "ENUM": ("string",),
    "JSON": ("string",),
    "UUID": ("string",),
    "BYTE_ARRAY": ("binary",),
    "FIXED_LEN_BYTE_ARRAY": ("binary",),
}
"""Types of keys that are compared by their own bytes, by the logical type of the column, or else
the physical one."""


class KeyTypes(Frozen):
    """What decides how Spark compares keys."""

    key_type: str
    """Type of the keys in Spark."""
    infers_local_times: bool
    """Whether Spark reads times without a zone as TIMESTAMP_NTZ."""

    @classmethod
    def of(cls, keys: DataFrame) -> KeyTypes:
        """Return those of a column `key`."""
        setting = keys.sparkSession.conf.get("spark.sql.parquet.inferTimestampNTZ.enabled", "true")
        infers_local_times = setting is not None and setting.lower() == "true"
        return cls(keys.schema["key"].dataType.simpleString(), infers_local_times)

    def compare(self, column: Any) -> bool | Callable[[object], bool]:
        """Return which keys equal values of a column by their own value: see `compare_in_spark`."""
        return compare_in_spark(self.key_type, self.infers_local_times, column)


def compare_in_spark(
    key_type: str, infers_local_times: bool, column: Any
) -> bool | Callable[[object], bool]:
    """Return which keys of a type of Spark equal the values of a column by their own value: all,
    none, or those that a function accepts."""
    if column.doubt:
        return False
    logical = column.logical
    kind = column.physical if logical is None else logical.kind
    if kind in ("INT32", "INT64", "INT") and key_type == "string":
        return lambda key: _CANONICAL.fullmatch(str(key)) is not None
    if kind in ("INT32", "INT64", "INT"):
        return _fits_in_decimals(_digits_of(key_type), _WHOLE_NUMBERS["bigint"])
    if kind == "DECIMAL" and logical is not None:
        return _fits_in_decimals(_digits_of(key_type), (logical.precision, logical.scale))
    if kind in EXACT_INTEGERS:
        return _compare_with_floats(key_type, kind)
    if kind == "DATE" and key_type == "date":
        return lambda key: isinstance(key, date) and key >= GREGORIAN
    if kind == "TIMESTAMP" and logical is not None and logical.unit != "NANOS":
        if logical.utc:
            is_same_type = key_type == "timestamp"
        else:
            is_same_type = key_type == "timestamp_ntz" and infers_local_times
        return _is_of_todays_zones if is_same_type else False
    return key_type in _SAME.get(kind, ())


def _digits_of(key_type: str) -> tuple[int, int] | None:
    """Return precision and scale of a type of keys as decimals; None for other types."""
    decimal = _DECIMAL.fullmatch(key_type)
    if decimal is not None:
        return int(decimal[1]), int(decimal[2])
    return _WHOLE_NUMBERS.get(key_type)


def _fits_in_decimals(key: tuple[int, int] | None, column: tuple[int, int]) -> bool:
    """Return whether Spark compares both, given as precision and scale, without rounding: it has 38
    digits, and rounds if both together need more."""
    if key is None:
        return False
    whole_digits = max(precision - scale for precision, scale in (key, column))
    return whole_digits + max(key[1], column[1]) <= _MOST_DIGITS


def _compare_with_floats(key_type: str, kind: str) -> bool | Callable[[object], bool]:
    """Return which keys equal a FLOAT or DOUBLE by their own value."""
    if key_type in _WHOLE_NUMBERS:
        return lambda key: isinstance(key, int) and abs(key) <= EXACT_INTEGERS[kind]
    if key_type == "double" and kind == "FLOAT":
        return lambda key: isinstance(key, float) and _is_single(key)
    return key_type in ("float", "double")


def _is_of_todays_zones(key: object) -> bool:
    return isinstance(key, datetime) and key.replace(tzinfo=None) >= _SINCE_LEGACY_ZONES


def _is_single(number: float) -> bool:
    """Return whether a number is the same in single precision; infinities and NaN are."""
    if not math.isfinite(number):
        return True
    try:
        return bool(struct.unpack("<f", struct.pack("<f", number))[0] == number)
    except OverflowError:
        return False
