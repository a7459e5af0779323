"""The JSON files of a table: `schema/schema-<id>` (TableSchema.java) and `snapshot/snapshot-<id>` (Snapshot.java).

A data file was written with one of the schemas of its table and keeps the column names of that schema. The id of a field survives renames,
so it connects current and earlier names. A snapshot names the manifest lists of one state of the table: `baseManifestList` is the state
before the commit, and `deltaManifestList` the changes of the commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon.data_types import DataField, DataType, parse_fields
from sbbf_tool.hints import suggest
from sbbf_tool.records import file_name, optional, parse_object, required, strings


@dataclass(frozen=True, slots=True)
class TableSchema:
    id: int
    fields: tuple[DataField, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]

    def field(self, name: str) -> DataField | None:
        return next((field for field in self.fields if field.name == name), None)

    def field_by_id(self, field_id: int) -> DataField | None:
        return next((field for field in self.fields if field.id == field_id), None)

    @property
    def partition_types(self) -> tuple[DataType, ...]:
        """Types of the partition columns. Raises UnreadableError when the schema lacks one of them."""
        fields = [self.field(key) for key in self.partition_keys]
        if None in fields:
            raise UnreadableError(f"schema {self.id} is partitioned by a column that it does not have")
        return tuple(field.type for field in fields if field is not None)


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """Indexed column: a whole column, or the entry `key` of a map."""

    column: str
    key: str | None = None

    def __str__(self) -> str:
        return self.column if self.key is None else f"{self.column}[{self.key}]"


def parse_indexed_column(name: str) -> IndexedColumn:
    """Parse the name of an indexed column. As in Paimon, `m[k]`, split at the first `[`, is entry `k` of map `m`."""
    start = name.find("[")
    if start < 0 or not name.endswith("]"):
        return IndexedColumn(name)
    return IndexedColumn(name[:start], name[start + 1 : -1])


def indexed_type(schema: TableSchema | None, indexed: IndexedColumn) -> DataType | None:
    """Return the type of the values of an indexed column (in a map, its value type); None without a schema or such a column."""
    field = schema.field(indexed.column) if schema is not None else None
    if field is None or indexed.key is None:
        return field.type if field else None
    return field.type.value if field.type.root == "MAP" else None


def current_name(schema: TableSchema | None, current: TableSchema | None, indexed: IndexedColumn) -> str | None:
    """Return the current name of a column that `schema` has; None if it no longer exists, or a schema is unknown."""
    field = schema.field(indexed.column) if schema is not None else None
    field = current.field_by_id(field.id) if current is not None and field is not None else None
    return str(replace(indexed, column=field.name)) if field is not None else None


def resolve_column(schema: TableSchema, name: str) -> tuple[IndexedColumn, DataField, DataType]:
    """Find a column by its current name; return its name in an index, its field, and the type of its values.

    Raises UsageError, with similar names, when there is none.
    """
    indexed = parse_indexed_column(name)
    field = schema.field(indexed.column)
    if field is not None and (data_type := indexed_type(schema, indexed)) is not None:
        return indexed, field, data_type
    if (whole := schema.field(name)) is not None:
        return IndexedColumn(name), whole, whole.type
    if field is not None:
        raise UsageError(f"column {field.name} is {field.type}, not a map, so it has no entry {indexed.key!r}")
    names = [field.name for field in schema.fields]
    hint = f"the columns of the table are {', '.join(names[:8])}{', ...' if names[8:] else ''}"
    raise UsageError(f"there is no column {indexed.column!r}", hint=suggest(indexed.column, names, hint))


def parse_table_schema(data: bytes) -> TableSchema:
    """Parse a schema file. Raises UnreadableError if `data` is not a schema file."""
    tree = parse_object(data, "a schema file")
    options = optional(tree, "options", dict) or {}
    return TableSchema(
        required(tree, "id", int),
        parse_fields(tree.get("fields")),
        strings(tree, "partitionKeys"),
        strings(tree, "primaryKeys"),
        {str(name): str(value) for name, value in options.items()},
    )


KNOWN_FIELDS = frozenset(
    (
        *("version", "uuid", "id", "schemaId", "baseManifestList", "baseManifestListSize", "deltaManifestList"),
        *("deltaManifestListSize", "changelogManifestList", "changelogManifestListSize", "indexManifest", "commitUser", "writerVersion"),
        *("commitIdentifier", "commitKind", "timeMillis", "logOffsets", "totalRecordCount", "deltaRecordCount", "changelogRecordCount"),
        *("watermark", "statistics", "properties", "nextRowId", "operation"),
    )
)
"""Every field of a snapshot in Paimon 0.8 to 2.1."""


@dataclass(frozen=True, slots=True)
class PaimonSnapshot:
    id: int
    schema_id: int
    manifest_lists: tuple[str, str]
    """The names of the base list and of the delta list."""
    record: Mapping[str, Any]
    """The JSON as stored, including unknown fields."""


def parse_snapshot(data: bytes) -> PaimonSnapshot:
    """Parse a snapshot file. Raises UnreadableError if `data` is not a snapshot file."""
    tree = parse_object(data, "a snapshot file")
    return PaimonSnapshot(
        required(tree, "id", int),
        required(tree, "schemaId", int),
        (file_name(required(tree, "baseManifestList", str)), file_name(required(tree, "deltaManifestList", str))),
        tree,
    )


def build_snapshot(record: Mapping[str, Any]) -> bytes:
    """Build a snapshot file from these fields, in the format of Paimon's JSON writer."""
    return json.dumps(record, indent=2, separators=(",", " : ")).encode()
