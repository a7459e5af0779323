"""Queries for the engines and their right answers, both computed from all rows of a file as pyarrow
reads them."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_WIDE = Context(prec=76)  # Python's default of 28 digits would round the larger decimals


def present_value(path: Path, column: str) -> Any:
    """Return the value of a row in the middle of the file."""
    values = pq.read_table(path, columns=[column])[column].drop_null().to_pylist()
    return values[len(values) // 2]


def absent_value(path: Path, column: str) -> Any:
    """Return an absent value between the smallest and the largest value of every row group."""
    file = pq.ParquetFile(path)
    groups = [
        file.read_row_group(n, columns=[column])[column].drop_null().to_pylist()
        for n in range(file.num_row_groups)
    ]
    low, high = max(map(min, groups)), min(map(max, groups))
    values = sorted(set().union(*groups))
    for value in values[len(values) // 2 :]:
        candidate = _neighbour(value)
        if low < candidate < high and candidate not in values:
            return candidate
    raise AssertionError(
        f"{path.name}: every value of {column} between the row groups' bounds is taken"
    )


def _neighbour(value: Any) -> Any:
    """Return a close value of the same type and, for bytes, the same length."""
    match value:
        case int():
            return value + 1
        case float():
            return value + 1 / 16  # exact in a float as well, for the fixtures' small numbers
        case str():
            return f"{value}!"
        case bytes():
            return value[:-1] + bytes([value[-1] ^ 1])
        case dt.datetime():
            return value + dt.timedelta(milliseconds=1)
        case dt.date():
            return value + dt.timedelta(days=1)
        case Decimal():
            return _WIDE.add(value, Decimal((0, (1,), value.as_tuple().exponent)))
        case uuid.UUID():
            return uuid.UUID(int=value.int ^ 1)
    raise TypeError(f"no neighbour known for {value!r}")
