"""Columns that a pyarrow dataset reads differently from a file: its schema has another type, or it
takes values from folder names.

A dataset has one schema, by default that of its first file, and casts the columns of every file to
it. Statistics and filters describe the values before the cast. A cast that keeps every value (to a
wider integer, a finer unit) makes no difference; any other cast does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.dataset as ds

from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import Column

_UNITS = ("s", "ms", "us", "ns")


def why_read_differently(
    fragment: ds.ParquetFileFragment, schema: pa.Schema, column: Column
) -> str | None:
    """Return why a dataset of this schema may read other values of `column` than the fragment's
    file stores; None if it does not.

    Raises UsageError if the dataset has no such column.
    """
    if column.path[0] in ds.get_partition_keys(fragment.partition_expression):
        return f"the dataset takes column {column.path[0]!r} from the partition, not from the file"
    read = _type_at(schema, column.path)
    if read is None:
        hint = (
            "a dataset has the columns of its first file: pass pyarrow.dataset.dataset a "
            "schema, or prune the paths"
        )
        raise UsageError(
            f"the schema of the dataset has no column {column.name!r}, but one of its files has",
            hint=hint,
        )
    stored = _type_at(fragment.physical_schema, column.path)
    if stored is None:
        return f"pyarrow finds no column {column.name!r} in the file"
    if column.physical == "INT96" and getattr(stored, "unit", None) != "ns":
        return f"the dataset reads INT96 as {stored}"
    if _keeps_values(stored, read):
        return None
    return f"the dataset reads column {column.name!r} as {read}, and the file stores {stored}"


def is_cast(fragment: ds.ParquetFileFragment, schema: pa.Schema, column: Column) -> bool:
    """Return whether a dataset of this schema reads `column` with another type than the fragment's
    file has."""
    return bool(_type_at(fragment.physical_schema, column.path) != _type_at(schema, column.path))


def with_columns_of_all_files(dataset: ds.FileSystemDataset) -> ds.FileSystemDataset:
    """Add the columns that the first file lacks to a dataset's schema. A column of type null gets
    the first other type in a file."""
    schemas = []
    for fragment in dataset.get_fragments():
        try:
            schemas.append(fragment.physical_schema)
        except (OSError, pa.ArrowException):
            continue  # pruning reports the unreadable file
    fields = {field.name: field for field in dataset.schema}
    for field in chain.from_iterable(schemas):
        if field.name not in fields or pa.types.is_null(fields[field.name].type):
            fields[field.name] = field
    if list(fields.values()) == list(dataset.schema):
        return dataset
    # Partition columns stay last.
    stored = set().union(*(schema.names for schema in schemas))
    ordered = sorted(fields.values(), key=lambda field: field.name not in stored)
    return dataset.replace_schema(pa.schema(ordered, dataset.schema.metadata))


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """Return the type of a column, or of the list or map that contains it; None if the schema has
    no such column, or several."""
    index = schema.get_field_index(path[0])
    if index < 0:
        return None
    data_type = schema.field(index).type
    for name in path[1:]:
        if not pa.types.is_struct(data_type):
            break
        index = data_type.get_field_index(name)
        if index < 0:
            return None
        data_type = data_type.field(index).type
    return data_type


def _keeps_values(stored: pa.DataType, read: pa.DataType) -> bool:
    """Return whether a cast from `stored` to `read` changes no value, so that equality after the
    cast implies equality before it."""
    stored = _without_layout(stored)
    read = _without_layout(read)
    if stored == read:
        return True

    def are_both(is_of_kind: Callable[[pa.DataType], bool]) -> bool:
        return is_of_kind(stored) and is_of_kind(read)

    if are_both(pa.types.is_integer):
        smallest, largest = _range(stored)
        smallest_read, largest_read = _range(read)
        return smallest_read <= smallest and largest <= largest_read
    if are_both(pa.types.is_floating):
        return bool(stored.bit_width <= read.bit_width)
    if are_both(pa.types.is_decimal):
        whole_digits = stored.precision - stored.scale
        whole_digits_read = read.precision - read.scale
        return bool(stored.scale <= read.scale and whole_digits <= whole_digits_read)
    if are_both(pa.types.is_timestamp):
        return (stored.tz is None) == (read.tz is None) and _is_finer(stored, read)
    return are_both(pa.types.is_time) and _is_finer(stored, read)


def _without_layout(of: pa.DataType) -> pa.DataType:
    """Return the type without what affects only the layout of values in memory."""
    if isinstance(of, pa.BaseExtensionType):
        return _without_layout(of.storage_type)
    if pa.types.is_dictionary(of):
        return _without_layout(of.value_type)
    if pa.types.is_large_string(of) or str(of) == "string_view":
        return pa.string()
    if pa.types.is_large_binary(of) or str(of) == "binary_view":
        return pa.binary()
    return of


def _range(of: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the largest number of a type of integers."""
    if pa.types.is_signed_integer(of):
        limit = 1 << of.bit_width - 1
        return -limit, limit - 1
    return 0, (1 << of.bit_width) - 1


def _is_finer(stored: pa.DataType, read: pa.DataType) -> bool:
    return _UNITS.index(stored.unit) <= _UNITS.index(read.unit)
