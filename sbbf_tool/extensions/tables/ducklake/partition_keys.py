"""The names of the partition keys of a DuckLake table, as in the names of folders."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from sbbf_tool.extensions.tables.ducklake.catalog import Row


class PartitionKey(NamedTuple):
    """A key of a partitioning."""

    name: str
    column: int
    """Id of the column."""
    transform: str


class PartitionKeys(NamedTuple):
    """The partition keys of all partitionings of a table."""

    names: dict[int, dict[int, str]]
    """By ids of partitioning and key. A name that partitionings use for different keys is that of
    the newest one."""
    by_name: dict[str, PartitionKey]


def name_keys(rows: Iterable[Row], names_of_columns: dict[int, str]) -> PartitionKeys:
    """Return the keys from rows of partitioning, key, column and transform, in their order. Keys of
    columns without a name are left out."""
    keys: dict[int, dict[int, PartitionKey]] = {}
    newest: dict[str, PartitionKey] = {}
    for partition, index, column, transform in rows:
        if column in names_of_columns:
            earlier = keys.setdefault(partition, {})
            taken = {key.name for key in earlier.values()}
            name = _key_name(transform, names_of_columns[column], taken)
            earlier[index] = PartitionKey(name, column, transform)
            newest[name] = earlier[index]
    names: dict[int, dict[int, str]] = {}
    for partition, by_index in keys.items():
        names[partition] = {}
        for index, key in by_index.items():
            if newest[key.name] == key:
                names[partition][index] = key.name
    return PartitionKeys(names, newest)


def _key_name(transform: str, column: str, taken: AbstractSet[str]) -> str:
    """Return the name of a key that follows keys with these names, as DuckLake does."""
    prefix = column if transform == "identity" else transform.partition("(")[0]
    if prefix not in taken:
        return prefix
    name = f"{prefix}_{column}"
    number = 2
    while name in taken:
        name = f"{prefix}_{column}_{number}"
        number += 1
    return name
