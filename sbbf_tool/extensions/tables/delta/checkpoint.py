"""The actions of a checkpoint in Parquet (PROTOCOL.md, "Checkpoint Schema"), read batch by batch.

Of the files, only what identifies them is read; whole actions are read for the files that a commit replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import open_batches
from sbbf_tool.extensions.tables.delta.actions import Action
from sbbf_tool.extensions.tables.delta.statistics import json_value, statistics_text

_SMALL = ("protocol", "metaData", "sidecar")
_FILES, _FILE = ("add", "remove"), ("path", "size", "partitionValues")
_IDENTITY = (*_FILE, "deletionVector", "baseRowId")
_COLUMN_FORMS = ("stats_parsed", "partitionValues_parsed")


def read_checkpoint(path: str, is_wanted: Callable[[str], bool] | None) -> Iterator[tuple[str, Action]]:
    """Yield name and fields of each action but those of removed files; whole actions of the files with a path that is wanted.

    Raises UnreadableError.
    """
    columns = (*_SMALL, *(("add",) if is_wanted else (f"add.{name}" for name in _IDENTITY)))
    with open_batches(path, columns, "checkpoint") as batches:
        for batch in batches:
            for name in _SMALL:
                yield from ((name, fields) for fields in _small_actions(batch, name))
            if "add" not in batch.schema.names:
                continue
            adds = _valid(batch.column("add"))
            for row, add in enumerate(_identities(adds, _IDENTITY)):
                is_whole = is_wanted is not None and isinstance(add.get("path"), str) and is_wanted(add["path"])
                yield "add", _whole(adds[row]) if is_whole else add


def read_files(path: str) -> Iterator[tuple[str, Action]]:
    """Yield name, path, size and partition of each file that a checkpoint has or whose removal it records, and its sidecars.

    Raises UnreadableError.
    """
    with open_batches(path, ("sidecar", *(f"{name}.{part}" for name in _FILES for part in _FILE)), "checkpoint") as batches:
        for batch in batches:
            yield from (("sidecar", fields) for fields in _small_actions(batch, "sidecar"))
            for name in _FILES:
                if name in batch.schema.names:
                    yield from ((name, fields) for fields in _identities(_valid(batch.column(name)), _FILE))


def _identities(structs: pa.StructArray, names: tuple[str, ...]) -> Iterator[Action]:
    """Yield these fields of each action, as far as it has them."""
    columns = {name: structs.field(name).to_pylist() for name in names if structs.type.get_field_index(name) >= 0}
    for row in range(len(structs)):
        fields = {name: column[row] for name, column in columns.items() if column[row] is not None}
        if isinstance(fields.get("partitionValues"), list):
            fields["partitionValues"] = dict(fields["partitionValues"])
        yield fields


def _valid(structs: pa.StructArray) -> pa.StructArray:
    """Drop nulls: a field on its own does not have the nulls of its struct."""
    return structs.filter(structs.is_valid())


def _small_actions(batch: pa.RecordBatch, name: str) -> Iterator[Action]:
    if name in batch.schema.names:
        for scalar in _valid(batch.column(name)):
            fields = json_value(scalar)
            if not isinstance(fields, dict):
                raise UnreadableError(f"the column {name} of the checkpoint is not a struct")
            yield fields


def _whole(scalar: pa.StructScalar) -> Action:
    """Return all fields of an `add`, with statistics as text."""
    add: dict[str, Any] = {}
    for at in range(scalar.type.num_fields):
        name = scalar.type.field(at).name
        if name not in _COLUMN_FORMS and (value := json_value(scalar[at])) is not None:
            add[name] = value
    if "stats" not in add and (at := scalar.type.get_field_index("stats_parsed")) >= 0:
        statistics = statistics_text(scalar[at])
        if statistics is not None:
            add["stats"] = statistics
    return add
