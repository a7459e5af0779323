"""What a reader of a data format answers: which types its columns have, and their hashes batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.paimon.data_types import DataType
from sbbf_tool.paimon.fast_hash import Hashes, key_of
from sbbf_tool.paimon.table_schema import IndexedColumn

Wanted = Mapping[IndexedColumn, DataType | None]
"""The columns asked for, each with the type of its values (a map's value type for one of its entries), None where it is not known."""


@dataclass(frozen=True, slots=True)
class HashBatch:
    """Some rows of one column."""

    rows: int
    nulls: int
    """Rows without a value: null, or a map without the key."""
    hashes: Hashes
    """The hashes of the values that are not null; one value's may be there once or often."""
    values: Sequence[Any]
    """The values behind the hashes, in the same order, as the format's reader gives them."""


@dataclass(frozen=True, slots=True)
class ColumnHashes:
    """A data file's columns, opened: reading `batches` reads the file."""

    types: dict[IndexedColumn, DataType]
    batches: Iterator[dict[IndexedColumn, HashBatch]]


def settle_type(indexed: IndexedColumn, known: DataType | None, told: DataType | None, hint: str) -> DataType:
    """The type to hash a column by: the one that is `known`, else the one the file has `told`.

    Raises UsageError when there is neither, or when Paimon has no hash for it.
    """
    settled = known or told
    if settled is None:
        raise UsageError(f"column {indexed}: its Paimon type cannot be told from the file", hint=hint)
    if key_of(settled) is None:
        raise UsageError(f"column {indexed}: Paimon has no Bloom filter for type {settled}")
    return settled


def contradiction(indexed: IndexedColumn, stored: object, data_type: DataType) -> UnreadableError:
    """A column whose stored form is not one of its type."""
    return UnreadableError(f"stored as {stored}, which is no {data_type}", place=f"column {indexed}")
