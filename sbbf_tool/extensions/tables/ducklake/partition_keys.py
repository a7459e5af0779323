"""The names of the partition keys of a DuckLake table, as in the names of folders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sbbf_tool.extensions.tables.ducklake.catalog import Row


class PartitionKeys(NamedTuple):
    """The partition keys of all partitionings of a table."""

    names: dict[int, dict[int, str]]
    """By ids of partitioning and key. A name that partitionings use for different keys is that of
    the newest one."""
    columns: dict[str, tuple[int, str]]
    """Id of the column and transform of each key, by its name."""


def name_keys(rows: Iterable[Row], names_of_columns: dict[int, str]) -> PartitionKeys:
    """Return the keys from rows of partitioning, key, column and transform, in their order. Keys of
    columns without a name are left out."""
    keys: dict[int, dict[int, str]] = {}
    meanings: dict[int, dict[int, tuple[int, str]]] = {}
    for partition, index, column, transform in rows:
        if column in names_of_columns:
            earlier = keys.setdefault(partition, {})
            name = _key_name(transform, names_of_columns[column], earlier.values())
            earlier[index] = name
            meanings.setdefault(partition, {})[index] = (column, transform)
    newest = {}
    for partition in sorted(keys):
        for index, name in keys[partition].items():
            newest[name] = meanings[partition][index]
    names: dict[int, dict[int, str]] = {}
    for partition, by_index in keys.items():
        names[partition] = {}
        for index, name in by_index.items():
            if newest[name] == meanings[partition][index]:
                names[partition][index] = name
    return PartitionKeys(names, newest)


def _key_name(transform: str, column: str, earlier: Iterable[str]) -> str:
    """Return the name of a key that follows keys with these names, as DuckLake does."""
    prefix = column if transform == "identity" else transform.partition("(")[0]
    taken = set(earlier)
    if prefix not in taken:
        return prefix
    name = f"{prefix}_{column}"
    number = 2
    while name in taken:
        name = f"{prefix}_{column}_{number}"
        number += 1
    return name
