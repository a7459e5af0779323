"""Values written as text, parsed into the keys that Paimon hashes for the type of a column.

| type                   | written                                                                                             |
|------------------------|-----------------------------------------------------------------------------------------------------|
| CHAR VARCHAR STRING    | unchanged; no blanks are added or removed                                                           |
| BINARY VARBINARY BYTES | 0x and an even number of hexadecimal digits                                                         |
| integers               | decimal                                                                                             |
| FLOAT DOUBLE           | decimal, optionally with an exponent, NaN, Infinity, -Infinity; rounded once, as in Java            |
| DATE                   | 2024-02-29; years after 9999 with a sign                                                            |
| TIME                   | 23:59[:59[.999999999]]                                                                              |
| TIMESTAMP              | a date, T or a blank, a time; Z allowed. A date alone means midnight                                |
| TIMESTAMP_LTZ          | the same, with an offset such as +02:00; without one, UTC                                           |

Digits finer than the hashed unit are rounded down, as in Paimon.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon.data_types import INTEGER_BITS, DataType
from sbbf_tool.extensions.paimon.fast_hash import Hashes, HashForm, double_keys, float_keys, hash_bytes, hash_longs, key_of
from sbbf_tool.parquet import iso8601

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_FLOATING = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_NANOS_PER_MILLI = 1_000_000


@dataclass(frozen=True, slots=True)
class HashLiteral:
    """Value in the form in which it is hashed: `key` is bytes for text and binary, and a signed 64-bit integer for other types."""

    key: bytes | int

    @property
    def hashes(self) -> Hashes:
        """The hash, as an array of length 1 for a filter."""
        return hash_bytes([self.key]) if isinstance(self.key, bytes) else hash_longs(np.array([self.key], np.int64))

    @property
    def hash64(self) -> int:
        return int(self.hashes[0])


def parse_literal(text: str, data_type: DataType) -> HashLiteral:
    """Parse a value of a type. Raises UsageError if the text is not a value of the type, or the type has no hash in Paimon."""
    kind = key_of(data_type)
    if kind is None:
        raise UsageError(f"Paimon has no hash for type {data_type}")
    if kind is HashForm.BYTES:
        return HashLiteral(_parse_binary(text) if data_type.root in ("BINARY", "VARBINARY") else _encode_text(text))
    if kind is HashForm.INTEGER:
        return HashLiteral(_parse_integer(text, data_type))
    if kind is HashForm.FLOAT:
        return HashLiteral(int(float_keys(np.array([_parse_float(text)], np.float32))[0]))
    if kind is HashForm.DOUBLE:
        return HashLiteral(int(double_keys(np.array([_parse_double(text)], np.float64))[0]))
    per_key = 1000 if kind is HashForm.MICROS else _NANOS_PER_MILLI
    try:
        if kind is HashForm.DATE:
            return HashLiteral(iso8601.parse_date(text))
        time = (iso8601.parse_time if kind is HashForm.TIME else iso8601.parse_timestamp)(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r:.60} is not a {data_type} in ISO 8601") from None
    if kind is HashForm.TIME and (time.zoned or not 0 <= time.nanos < iso8601.NANOS_PER_DAY):
        raise UsageError(f"{text!r:.60} is not a time of day")
    if data_type.root == "TIMESTAMP" and time.zoned and not text.endswith("Z"):
        raise UsageError(f"{text!r:.60} has an offset, but a TIMESTAMP has no time zone", hint="remove the offset")
    return HashLiteral(_check_range(time.nanos // per_key, 64, text, data_type))


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!r:.60} cannot be encoded as UTF-8") from None


def _parse_binary(text: str) -> bytes:
    if not re.fullmatch(r"0[xX](?:[0-9a-fA-F]{2})*", text):
        raise UsageError(f"{text!r:.60} is not a binary value", hint="write 0x and two hexadecimal digits per byte")
    return bytes.fromhex(text[2:])


def _parse_integer(text: str, data_type: DataType) -> int:
    if not _INTEGER.fullmatch(text):
        raise UsageError(f"{text!r:.60} is not a value of type {data_type}")
    return _check_range(int(text), INTEGER_BITS[data_type.root], text, data_type)


def _check_range(value: int, bits: int, text: str, data_type: DataType) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise UsageError(f"{text!r:.60} is out of the range of {data_type}")
    return value


def _parse_double(text: str) -> float:
    if special := re.fullmatch(r"([+-]?)(nan|inf|infinity)", text.lower()):
        value = math.nan if special[2] == "nan" else math.inf
        return -value if special[1] == "-" else value
    if not _FLOATING.fullmatch(text):
        raise UsageError(f"{text!r:.60} is not a number")
    value = float(text)
    if math.isinf(value):
        raise UsageError(f"{text!r:.60} is out of the range of DOUBLE")
    return value


def _parse_float(text: str) -> np.float32:
    """Parse the float nearest to the decimal, as pyarrow does; a conversion through a double could round twice."""
    import pyarrow as pa

    double = _parse_double(text)
    nearest = pa.scalar(text.lstrip("+")).cast(pa.float32()).as_py() if math.isfinite(double) else double
    if math.isinf(nearest) and math.isfinite(double):
        raise UsageError(f"{text!r:.60} is out of the range of FLOAT")
    return np.float32(nearest)
