"""The values of a file of the corpus as text, read by an engine that did not write it.

The texts are formatted here, from integers and by the rules of ISO 8601 and of SQL, and not by the
package's own formatter, because the tests check the package's parser with them.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from interop.corpus_writers import Style

OTHER_READER = {
    "pyarrow": "datafusion",
    "datafusion": "duckdb",
    "duckdb": "datafusion",
    "spark": "duckdb",
}

_READ_BY_PYARROW = {"datafusion": {"dec76"}, "duckdb": {"span", "variant"}, "spark": {"variant"}}
"""Columns of these writers that the other reader takes for something else: wide decimals for
DOUBLE, INTERVAL, VARIANT."""

_UNITS_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


Texts = dict[tuple[str, ...], list[str]]
"""For each leaf, by its path without the scaffolding of lists and maps, the text of every non-null
value."""


def written_values(path: Path, style: Style) -> Texts:
    """Return the values of the file as read by an engine that did not write it."""
    names = pq.read_schema(path).names
    apart = [name for name in names if name in _READ_BY_PYARROW.get(style.writer, ())]
    rest = _read_with(
        OTHER_READER[style.writer], path, [name for name in names if name not in apart]
    )
    return texts_of(rest) | texts_of(_read_with("pyarrow", path, apart))


def texts_of(table: pa.Table) -> Texts:
    texts: Texts = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        for chunk in column.chunks:
            for leaf, array in _leaves((name,), chunk):
                texts.setdefault(leaf, []).extend(_texts(array, is_interval=name == "span"))
    return texts


def _read_with(reader: str, path: Path, columns: list[str]) -> pa.Table:
    if reader == "pyarrow":
        return pq.read_table(path, columns=columns)
    query = "SELECT {} FROM".format(", ".join(f'"{name}"' for name in columns))
    if reader == "duckdb":
        import duckdb

        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.sql(f"{query} '{path}'").to_arrow_table()
    from datafusion import SessionContext

    context = SessionContext()
    context.register_parquet("t", str(path))
    return context.sql(f"{query} t").to_arrow_table()


def _leaves(path: tuple[str, ...], array: pa.Array) -> Iterator[tuple[tuple[str, ...], pa.Array]]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _leaves(path, array.storage)
    elif pa.types.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from _leaves((*path, field.name), child)
    elif pa.types.is_map(kind):
        yield from _leaves(path, _as_list(array))
    elif pa.types.is_nested(kind):
        yield from _leaves(path, array.flatten())
    elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        yield (
            path,
            array.cast(pa.string() if pa.types.is_string_view(kind) else pa.binary()).drop_null(),
        )
    elif not pa.types.is_boolean(kind):
        yield path, array.drop_null()


def _as_list(array: pa.MapArray) -> pa.ListArray:
    """Return a map as the list of structs that it is in memory."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return pa.Array.from_buffers(
        pa.list_(entries.type),
        len(array),
        array.buffers()[:2],
        offset=array.offset,
        children=[entries],
    )


def _texts(array: pa.Array, *, is_interval: bool) -> list[str]:
    kind = array.type
    if is_interval and pa.types.is_fixed_size_binary(kind):
        return [_interval(value) for value in array.to_pylist()]
    if pa.types.is_date(kind):
        return [
            (dt.date(1970, 1, 1) + dt.timedelta(days=days)).isoformat()
            for days in array.cast(pa.int32()).to_pylist()
        ]
    if pa.types.is_time(kind):
        counts = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        return [_time(count, _UNITS_PER_SECOND[kind.unit]) for count in counts]
    if pa.types.is_timestamp(kind):
        counts = array.cast(pa.int64()).to_pylist()
        return [
            _timestamp(count, _UNITS_PER_SECOND[kind.unit], utc=kind.tz is not None)
            for count in counts
        ]
    if pa.types.is_duration(kind):
        return [str(count) for count in array.cast(pa.int64()).to_pylist()]
    return [_text(value) for value in array.to_pylist()]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return (
        f"{value:f}"
        if hasattr(value, "scaleb")
        else repr(float(value))
        if isinstance(value, float)
        else str(value)
    )


def _time(count: int, per_second: int) -> str:
    seconds, rest = divmod(count, per_second)
    digits = len(str(per_second)) - 1
    fraction = f".{rest:0{digits}d}" if digits else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def _timestamp(count: int, per_second: int, *, utc: bool) -> str:
    days, rest = divmod(count, 86_400 * per_second)
    date = (dt.date(1970, 1, 1) + dt.timedelta(days=days)).isoformat()
    return f"{date}T{_time(rest, per_second)}{'Z' if utc else ''}"


def _interval(plain: bytes) -> str:
    months, days, millis = struct.unpack("<III", plain)
    return f"P{months}M{days}DT{millis / 1000:.3f}S"
