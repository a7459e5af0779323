"""Rows in Arrow: convert the dataclass of a row to a schema, rows to batches, and batches to rows.

The dataclasses of `reports` are the only declaration: local processes send them unchanged, and this module converts them for Spark and
Parquet files. Bytes of file names that are not UTF-8 are escaped, since Arrow strings cannot contain them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    import pyarrow as pa

Row = TypeVar("Row")


def schema_of(row: type) -> pa.Schema:
    """Return the Arrow schema of a dataclass. Each field becomes a field, tuples become lists, and nested dataclasses become structs."""
    return _schema_of(row)


@cache
def _schema_of(row: type) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow_type(hint), nullable=is_optional(hint)) for name, hint in hints_of(row)])


def to_batch(row: type, rows: Iterable[object]) -> pa.RecordBatch:
    """Convert the rows to one batch of `schema_of(row)`."""
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([cast("dict[str, Any]", plain(item)) for item in rows], schema=schema_of(row))


def from_batch(row: type[Row], batch: pa.RecordBatch | pa.Table) -> Iterator[Row]:
    """Yield the rows of a batch. The batch may have extra fields, and may lack fields that have a default."""
    for values in batch.to_pylist():
        yield cast(Row, _build(row, values))


def from_dict(row: type[Row], values: dict[str, Any]) -> Row:
    """Build one row from plain dicts and lists."""
    return cast(Row, _build(row, values))


def hints_of(row: type) -> list[tuple[str, Any]]:
    hints = get_type_hints(row)
    return [(field.name, hints[field.name]) for field in fields(row) if not field.metadata.get("local")]


def is_optional(hint: Any) -> bool:
    return get_origin(hint) is UnionType and NoneType in get_args(hint)


def inner_type(hint: Any) -> Any:
    """Return X of `X | None`."""
    return next(argument for argument in get_args(hint) if argument is not NoneType) if is_optional(hint) else hint


def _arrow_type(hint: Any) -> pa.DataType:
    import pyarrow as pa

    hint = inner_type(hint)
    simple = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}
    if hint in simple:
        return simple[hint]
    if get_origin(hint) is Sequence or (get_origin(hint) is tuple and get_args(hint)[1:] == (...,)):
        return pa.list_(_arrow_type(get_args(hint)[0]))
    if is_dataclass(hint):
        return pa.struct(list(schema_of(cast(type, hint))))
    raise TypeError(f"{hint!r} has no place in a row")


def plain(value: object) -> object:
    """Convert a report, or a value in one, to dicts, lists and strings that any engine can store."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if not field.metadata.get("local")}
    # A sequence whose items are made when they are looked at.
    return [plain(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, bytes) else value


def _build(hint: Any, value: Any) -> Any:
    hint = inner_type(hint)
    if value is None:
        return None
    if get_origin(hint) in (tuple, Sequence):
        return tuple(_build(get_args(hint)[0], item) for item in value)
    if is_dataclass(hint):
        return cast(Any, hint)(**{name: _build(inner, value[name]) for name, inner in _cached_hints(cast(type, hint)) if name in value})
    return value


@cache
def _cached_hints(row: type) -> tuple[tuple[str, Any], ...]:
    return tuple(hints_of(row))
