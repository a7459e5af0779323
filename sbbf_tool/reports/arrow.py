"""Rows in Arrow: convert the class of a row to a schema, rows to batches, and batches to rows.

The classes of `reports` are the only declaration: local processes send them unchanged, and this module converts them for Spark and
Parquet files. Bytes of file names that are not UTF-8 are escaped, since Arrow strings cannot contain them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin

from sbbf_tool.reports.plain import from_plain, hints_of, inner_type, is_optional, is_record, to_plain

if TYPE_CHECKING:
    import pyarrow as pa

Row = TypeVar("Row")


def schema_of(row: type) -> pa.Schema:
    """Return the Arrow schema of a class. Each field becomes a field, tuples become lists, and nested classes of fields become structs."""
    return _schema_of(row)


@cache
def _schema_of(row: type) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow_type(hint), nullable=is_optional(hint)) for name, hint in hints_of(row)])


def to_batch(row: type, rows: Iterable[object]) -> pa.RecordBatch:
    """Convert the rows to one batch of `schema_of(row)`."""
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([to_plain(item) for item in rows], schema=schema_of(row))


def from_batch(row: type[Row], batch: pa.RecordBatch | pa.Table) -> Iterator[Row]:
    """Yield the rows of a batch. The batch may have extra fields, and may lack fields that have a default."""
    for values in batch.to_pylist():
        yield from_plain(row, values)


def _arrow_type(hint: Any) -> pa.DataType:
    import pyarrow as pa

    hint = inner_type(hint)
    simple = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()}
    if hint in simple:
        return simple[hint]
    if get_origin(hint) is Sequence or (get_origin(hint) is tuple and get_args(hint)[1:] == (...,)):
        return pa.list_(_arrow_type(get_args(hint)[0]))
    if is_record(hint):
        return pa.struct(list(schema_of(cast(type, hint))))
    raise TypeError(f"{hint!r} has no place in a row")
