"""Paimon's hash of a value, by type (fileindex/bloomfilter/FastHash.java).

| type                         | key                                                  | hash  |
|------------------------------|------------------------------------------------------|-------|
| CHAR VARCHAR STRING          | the UTF-8 bytes as stored                            | XXH64 |
| BINARY VARBINARY BYTES       | the bytes                                            | XXH64 |
| TINYINT SMALLINT INT BIGINT  | the value as a 64-bit integer                        | Wang  |
| DATE                         | days since 1970-01-01                                | Wang  |
| TIME                         | milliseconds of the day, at every precision          | Wang  |
| TIMESTAMP, TIMESTAMP_LTZ     | milliseconds up to precision 3, microseconds from 4  | Wang  |
|                              | on, both rounded down                                |       |
| FLOAT DOUBLE                 | the IEEE 754 bits, sign-extended; every NaN as the   | Wang  |
|                              | canonical NaN                                        |       |
| MAP, for the entry           | the key of the map's value type                      |       |
| `column[key]`                |                                                      |       |

Other types (BOOLEAN, DECIMAL, nested types, VARIANT, BLOB, VECTOR, ...) have no hash in Paimon, and
therefore no filter. The two zeros have different bits, and therefore different hashes. Nulls are
not hashed. XXH64 uses seed 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from sbbf_tool.extensions.paimon.table_schema import DataType, IndexedColumn
from sbbf_tool.frozen import Frozen

Longs = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Keys = Longs | list[bytes]

_FLOAT_NAN = 0x7FC00000
_DOUBLE_NAN = 0x7FF8000000000000


class HashForm(Enum):
    """Form in which a value is hashed."""

    BYTES = "bytes"
    INTEGER = "integer"
    DATE = "days"
    TIME = "milliseconds of day"
    MILLIS = "epoch milliseconds"
    MICROS = "epoch microseconds"
    FLOAT = "float bits"
    DOUBLE = "double bits"


_KEYS = {
    **dict.fromkeys(("CHAR", "VARCHAR", "BINARY", "VARBINARY"), HashForm.BYTES),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), HashForm.INTEGER),
    "DATE": HashForm.DATE,
    "TIME": HashForm.TIME,
    "FLOAT": HashForm.FLOAT,
    "DOUBLE": HashForm.DOUBLE,
}


def key_of(data_type: DataType) -> HashForm | None:
    """Return the form in which values of a type are hashed; None if Paimon has no hash for it."""
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return HashForm.MILLIS if data_type.precision <= 3 else HashForm.MICROS
    return _KEYS.get(data_type.root)


def hash_bytes(values: Iterable[bytes]) -> Hashes:
    """Compute XXH64 with seed 0 of each value, as uint64."""
    return np.fromiter((xxhash.xxh64_intdigest(value) for value in values), np.uint64)


def hash_longs(keys: Longs) -> Hashes:
    """Compute Thomas Wang's mix of each 64-bit key, as uint64.

    This is `bloom64_spec.wang_hash` for many keys. Right shifts keep the sign.
    """
    key = ~keys + (keys << 21)
    key ^= key >> 24
    key = key + (key << 3) + (key << 8)
    key ^= key >> 14
    key = key + (key << 2) + (key << 4)
    key ^= key >> 28
    hashes: Hashes = (key + (key << 31)).view(np.uint64)
    return hashes


def hash_keys(keys: Keys) -> Hashes:
    """Compute the hash of each key: XXH64 of bytes, Wang's mix of integers."""
    return hash_bytes(keys) if isinstance(keys, list) else hash_longs(keys)


def float_keys(values: NDArray[np.float32]) -> Longs:
    """Compute Float.floatToIntBits of each value, sign-extended: every NaN becomes 0x7fc00000."""
    bits = values.view(np.int32).astype(np.int64)
    bits[np.isnan(values)] = _FLOAT_NAN
    return bits


def double_keys(values: NDArray[np.float64]) -> Longs:
    """Compute Double.doubleToLongBits of each value: every NaN becomes 0x7ff8000000000000."""
    bits = values.view(np.int64).copy()
    bits[np.isnan(values)] = _DOUBLE_NAN
    return bits


def timestamp_keys(counts: Longs, per_second: int, key: HashForm) -> Longs:
    """Convert epoch counts to the unit of `key`, MILLIS or MICROS, rounding down.

    The counts have `per_second` units per second: 1, 10**3, 10**6 or 10**9.
    """
    target_per_second = 1000 if key is HashForm.MILLIS else 1_000_000
    if per_second <= target_per_second:
        return counts * (target_per_second // per_second)
    return counts // (per_second // target_per_second)


ColumnTypes = Mapping[IndexedColumn, DataType | None]
"""The requested columns, each with the type of its values (for an entry of a map, the map's value
type), or None if the type is unknown."""


class HashBatch(Frozen):
    """Hashes of some rows of one column."""

    rows: int
    nulls: int
    """Rows without a value: null, or a map without the key."""
    hashes: Hashes
    """The hashes of the values that are not null; a repeated value may occur once or several
    times."""
    values: Sequence[Any]
    """The hashed values, in the same order, as the reader of the format returns them."""
    keys: Keys
    """The same values in the form in which Paimon hashes them: bytes, or 64-bit integers."""


class ColumnHashes(Frozen):
    """Columns of an open data file; iterating over `batches` reads the file."""

    types: dict[IndexedColumn, DataType]
    batches: Iterator[dict[IndexedColumn, HashBatch]]
