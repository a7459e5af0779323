"""The actions of a checkpoint in Parquet (PROTOCOL.md, "Checkpoint Schema"), read batch by batch, their values as JSON.

Of the files, only what identifies them is read; whole actions are read for the files that a commit replaces.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import open_batches
from sbbf_tool.extensions.tables.delta.actions import Action
from sbbf_tool.gregorian import date_of

_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400


def statistics_text(scalar: pa.Scalar) -> str | None:
    """Return a value of `stats_parsed` as the text of `stats`; None for null. Raises UnreadableError for types without a JSON form.

    Dates and timestamps are ISO 8601 text, timestamps with at least milliseconds, and decimals are numbers with all their digits
    (PROTOCOL.md, "Per-file Statistics").
    """
    tree = json_value(scalar)
    return None if tree is None else _write(tree)


def json_value(scalar: pa.Scalar) -> Any:
    """Convert a value to one that JSON has, or Decimal; null fields of structs are left out. Raises UnreadableError for other types."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_struct(kind):
        fields = {kind.field(at).name: json_value(scalar[at]) for at in range(kind.num_fields)}
        return {name: field for name, field in fields.items() if field is not None}
    if pa.types.is_map(kind):
        return {key: _plain(text) for key, text in scalar.as_py()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [json_value(element) for element in scalar.values]
    if pa.types.is_timestamp(kind):
        # pyarrow reads INT96, which Spark uses for timestamps in UTC, as nanoseconds without a zone.
        return _timestamp(scalar.value, _UNITS[kind.unit], kind.tz is not None or kind.unit == "ns")
    if pa.types.is_date(kind):
        days = scalar.value if pa.types.is_date32(kind) else scalar.value // (_DAY * 1000)
        return str(date_of(days))
    return _plain(scalar.as_py())


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | Decimal):
        return value
    if isinstance(value, float):
        # JSON has no such number; a file without this bound is read, never skipped wrongly.
        return value if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    raise UnreadableError(f"a checkpoint has a value of type {type(value).__name__}, which has no JSON form")


def _timestamp(ticks: int, per_second: int, zoned: bool) -> str:
    seconds, rest = divmod(ticks, per_second)
    days, second = divmod(seconds, _DAY)
    digits = f"{rest * (1_000_000_000 // per_second):09d}"
    fraction = digits[:3] if digits.endswith("000000") else digits[:6] if digits.endswith("000") else digits
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{fraction}"
    return f"{date_of(days)}T{clock}{'Z' if zoned else ''}"


def _write(tree: Any) -> str:
    if isinstance(tree, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_write(value)}" for name, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(_write, tree)) + "]"
    return format(tree, "f") if isinstance(tree, Decimal) else json.dumps(tree)


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
