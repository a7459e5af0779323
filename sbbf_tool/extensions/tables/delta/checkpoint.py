"""The actions of a checkpoint in Parquet (PROTOCOL.md, "Checkpoint Schema"), read batch by batch.

Of the files, only what identifies them is read; whole actions are read for the files that a commit replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.delta.actions import Action
from sbbf_tool.extensions.tables.delta.statistics import json_value, statistics_text
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.page_sizes import open_checked

_BATCH_ROWS = 8192
_SMALL = ("protocol", "metaData", "sidecar")
_IDENTITY = ("path", "size", "partitionValues", "deletionVector", "baseRowId")
_COLUMN_FORMS = ("stats_parsed", "partitionValues_parsed")


def read_checkpoint(path: str, is_wanted: Callable[[str], bool] | None) -> Iterator[tuple[str, Action]]:
    """Yield name and fields of each action but those of removed files; whole actions of the files with a path that is wanted.

    Raises UnreadableError.
    """
    with _open(path) as file:
        for batch in _read_batches(file, (*_SMALL, *(("add",) if is_wanted else (f"add.{name}" for name in _IDENTITY)))):
            for name in _SMALL:
                yield from ((name, fields) for fields in _small_actions(batch, name))
            if "add" not in batch.schema.names:
                continue
            adds = _valid(batch.column("add"))
            columns = {name: adds.field(name).to_pylist() for name in _IDENTITY if adds.type.get_field_index(name) >= 0}
            for row in range(len(adds)):
                add = {name: column[row] for name, column in columns.items() if column[row] is not None}
                if is_wanted is not None and isinstance(add.get("path"), str) and is_wanted(add["path"]):
                    add = _whole(adds[row])
                elif isinstance(add.get("partitionValues"), list):
                    add["partitionValues"] = dict(add["partitionValues"])
                yield "add", add


def read_paths(path: str) -> Iterator[tuple[str, Action]]:
    """Yield name and path of each file that a checkpoint has or whose removal it records, and its sidecars. Raises UnreadableError."""
    with _open(path) as file:
        for batch in _read_batches(file, ("sidecar", "add.path", "remove.path")):
            yield from (("sidecar", fields) for fields in _small_actions(batch, "sidecar"))
            for name in ("add", "remove"):
                if name in batch.schema.names:
                    yield from ((name, {"path": text}) for text in _valid(batch.column(name)).field("path").to_pylist())


def _read_batches(file: ParquetFile, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    footer = file.footer
    chunks = (footer.chunk(number, column.index) for number in range(footer.num_row_groups) for column in footer.columns)
    # A small checkpoint may state pages of gigabytes.
    stream = open_checked(file.source.open_arrow, [chunk for chunk in chunks if chunk is not None], file.limit.ensure)
    with stream:
        reader = parquet.ParquetFile(stream)
        present = set(reader.schema_arrow.names)
        names = [column for column in columns if column.partition(".")[0] in present]
        yield from reader.iter_batches(_BATCH_ROWS, columns=names, use_threads=False)


@contextmanager
def _open(path: str) -> Iterator[ParquetFile]:
    """Open a checkpoint; convert the errors of pyarrow, which decodes some values only when they are used."""
    with ParquetFile.open(path) as file:
        try:
            yield file
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            text = " ".join(str(error).split())[:200]
            raise UnreadableError(f"the checkpoint cannot be read: {text}", file=path) from error


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
