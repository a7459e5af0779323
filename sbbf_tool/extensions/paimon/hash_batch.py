"""Result of a reader of a data format: the types of the columns, and their hashes batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon.data_types import DataType
from sbbf_tool.extensions.paimon.fast_hash import Hashes, Keys, key_of
from sbbf_tool.extensions.paimon.table_schema import IndexedColumn

ColumnTypes = Mapping[IndexedColumn, DataType | None]
"""The requested columns, each with the type of its values (for an entry of a map, the map's value type), or None if the type is unknown."""


@dataclass(frozen=True, slots=True)
class HashBatch:
    """Hashes of some rows of one column."""

    rows: int
    nulls: int
    """Rows without a value: null, or a map without the key."""
    hashes: Hashes
    """The hashes of the values that are not null; a repeated value may occur once or several times."""
    values: Sequence[Any]
    """The hashed values, in the same order, as the reader of the format returns them."""
    keys: Keys
    """The same values in the form in which Paimon hashes them: bytes, or 64-bit integers."""


@dataclass(frozen=True, slots=True)
class ColumnHashes:
    """Columns of an open data file; iterating over `batches` reads the file."""

    types: dict[IndexedColumn, DataType]
    batches: Iterator[dict[IndexedColumn, HashBatch]]


def resolve_type(indexed: IndexedColumn, table_type: DataType | None, file_type: DataType | None, hint: str) -> DataType:
    """Return the type that determines the hash of a column: `table_type` or, without one, `file_type`.

    Raises UsageError when both are None, or when Paimon has no hash for the type.
    """
    data_type = table_type or file_type
    if data_type is None:
        raise UsageError(f"column {indexed}: the file does not determine the Paimon type", hint=hint)
    if key_of(data_type) is None:
        raise UsageError(f"column {indexed}: Paimon has no Bloom filter for type {data_type}")
    return data_type


def contradiction(indexed: IndexedColumn, stored: object, data_type: DataType) -> UnreadableError:
    """Build the error for a column whose stored form contradicts its type."""
    return UnreadableError(f"the column is stored as {stored}, which contradicts its type {data_type}", place=f"column {indexed}")
