"""The JSON files of a table: `schema/schema-<id>` (TableSchema.java) and `snapshot/snapshot-<id>`
(Snapshot.java), and its data types.

A data file was written with one of the schemas of its table and keeps the column names of that
schema. The id of a field survives renames, so it connects current and earlier names. A snapshot
names the manifest lists of one state of the table: `baseManifestList` is the state before the
commit, and `deltaManifestList` the changes of the commit.

Data types are written as in types/DataTypeJsonParser.java. Atomic types are strings (`VARCHAR(64)
NOT NULL`), nested types objects (`{"type": "MAP", "key": "STRING", "value": "BIGINT"}`). Synonyms
are replaced (`STRING` is `VARCHAR(2147483647)`, `BYTES` is `VARBINARY(2147483647)`), so that equal
types compare equal. A type that is unknown to this module keeps its name and has no hash; this is
not an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.hints import suggest
from sbbf_tool.records import file_name, optional, parse_object, required, strings

MAX_LENGTH = (1 << 31) - 1
MAX_DEPTH = 50
_MAX_NAMES = 8
"""Maximum number of names in a hint."""
INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}

_ATOMIC = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?:\((?P<args>[^)]*)\))?(?P<rest>[A-Za-z\s]*)")
_MAP = re.compile(r"MAP\s*<(?P<types>.*)>(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SYNONYMS = {
    "INTEGER": "INT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "STRING": "VARCHAR",
    "BYTES": "VARBINARY",
}
_DEFAULT_PRECISION = {
    "CHAR": 1,
    "VARCHAR": 1,
    "BINARY": 1,
    "VARBINARY": 1,
    "TIME": 0,
    "TIMESTAMP": 6,
    "TIMESTAMP_LTZ": 6,
    "DECIMAL": 10,
}


class DataType(Frozen):
    """Data type of a column, of a field, or of the values in a nested type."""

    root: str
    """The name without parameters; TIMESTAMP_LTZ for a timestamp with local time zone."""
    precision: int = 0
    """The first parameter: a length (CHAR, BINARY, ...) or a number of digits (TIMESTAMP, TIME,
    DECIMAL); 0 for types without parameters."""
    scale: int = 0
    nullable: bool = True
    key: DataType | None = None
    """The key type of a map."""
    value: DataType | None = None
    """The value type of a map; the element type of ARRAY, MULTISET and VECTOR."""
    fields: tuple[DataField, ...] = ()
    """The fields of a row."""

    def __str__(self) -> str:
        return self._format() if self.nullable else f"{self._format()} NOT NULL"

    def _format(self) -> str:
        if self.root == "TIMESTAMP_LTZ":
            return f"TIMESTAMP({self.precision}) WITH LOCAL TIME ZONE"
        if self.root == "VARCHAR" and self.precision == MAX_LENGTH:
            return "STRING"
        if self.root == "VARBINARY" and self.precision == MAX_LENGTH:
            return "BYTES"
        if self.root == "DECIMAL" and self.precision:
            return f"DECIMAL({self.precision}, {self.scale})"
        if self.root in _DEFAULT_PRECISION and self.root != "DECIMAL":
            return f"{self.root}({self.precision})"
        if self.key is not None:
            return f"MAP<{self.key}, {self.value}>"
        if self.root == "ROW":
            fields = [f"`{field.name}` {field.type}" for field in self.fields]
            return f"ROW<{', '.join(fields)}>"
        if self.value is not None:
            return f"{self.root}<{self.value}>"
        return self.root


class DataField(Frozen):
    """Column of a table, or field of a row. Its `id` survives renames."""

    id: int
    name: str
    type: DataType


def parse_data_type(json: Any, depth: int = 0) -> DataType:
    """Parse a type from the JSON of a schema file: a string or an object.

    Raises UnreadableError for anything else.
    """
    if isinstance(json, str):
        return parse_type_text(json)
    if depth > MAX_DEPTH:
        raise UnreadableError("a data type is nested too deep")
    if not isinstance(json, dict) or not isinstance(json.get("type"), str):
        raise UnreadableError(
            f"a data type must be text or an object with a type, not {json!r:.80}"
        )
    text: str = json["type"]
    words = text.split()
    root = words[0].upper() if words else ""
    nullable = "NOT NULL" not in text
    match root:
        case "MAP":
            key = parse_data_type(json.get("key"), depth + 1)
            value = parse_data_type(json.get("value"), depth + 1)
            return DataType(root, nullable=nullable, key=key, value=value)
        case "ROW":
            fields = parse_fields(json.get("fields"), depth + 1)
            return DataType(root, nullable=nullable, fields=fields)
        case "ARRAY" | "MULTISET" | "VECTOR":
            element = parse_data_type(json.get("element"), depth + 1)
            return DataType(root, nullable=nullable, value=element)
    raise UnreadableError(f"unknown nested data type {text!r:.80}")


def parse_fields(json: Any, depth: int = 0) -> tuple[DataField, ...]:
    """Parse the fields of a schema or a row type.

    Raises UnreadableError if a field lacks an id, a name or a type.
    """
    if not isinstance(json, list):
        raise UnreadableError("the fields are not a list")
    fields = []
    for item in json:
        match item:
            case {"id": int(field_id), "name": str(name)}:
                data_type = parse_data_type(item.get("type"), depth)
                fields.append(DataField(field_id, name, data_type))
            case _:
                raise UnreadableError(f"a field has no id or no name: {item!r:.80}")
    return tuple(fields)


def parse_type_text(text: str) -> DataType:
    """Parse a type written as SQL: any atomic type, or `MAP<key, value>` of atomic types.

    Raises UnreadableError when it is invalid.
    """
    stripped = text.strip()
    nested = _MAP.fullmatch(stripped)
    types = nested["types"] if nested else ""
    if nested and types.count(",") == 1 and "<" not in types:
        key, _, value = types.partition(",")
        return DataType(
            "MAP",
            nullable=_is_nullable(nested["rest"]),
            key=parse_type_text(key),
            value=parse_type_text(value),
        )
    match = _ATOMIC.fullmatch(stripped)
    if match is None:
        return _parse_unknown(stripped)
    suffix = " ".join(match["rest"].upper().split())
    name = match["name"].upper()
    root = _SYNONYMS.get(name, name)
    if root == "TIMESTAMP" and suffix.startswith("WITH LOCAL TIME ZONE"):
        root = "TIMESTAMP_LTZ"
    precision = _DEFAULT_PRECISION.get(root, 0)
    scale = 0
    if root in _DEFAULT_PRECISION:
        arguments = re.findall(r"\d{1,10}", match["args"] or "")
        if arguments:
            precision = int(arguments[0])
        if len(arguments) > 1:
            scale = int(arguments[1])
    if name in ("STRING", "BYTES"):
        precision = MAX_LENGTH
    return DataType(root, precision=precision, scale=scale, nullable=_is_nullable(suffix))


def _is_nullable(suffix: str) -> bool:
    return "NOT NULL" not in suffix.upper()


def _parse_unknown(text: str) -> DataType:
    name = re.match(r"[A-Za-z_]\w*", text)
    if name is None:
        raise UnreadableError(f"unknown data type {text!r:.80}")
    return DataType(name[0].upper(), nullable=_is_nullable(text[-9:]))


class TableSchema(Frozen):
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
        """Types of the partition columns.

        Raises UnreadableError when the schema lacks one of these columns.
        """
        types = []
        for key in self.partition_keys:
            field = self.field(key)
            if field is None:
                raise UnreadableError(
                    f"schema {self.id} is partitioned by a column that it does not have"
                )
            types.append(field.type)
        return tuple(types)


class IndexedColumn(Frozen):
    """Indexed column: a whole column, or the entry `key` of a map."""

    column: str
    key: str | None = None

    def __str__(self) -> str:
        return self.column if self.key is None else f"{self.column}[{self.key}]"


def parse_indexed_column(name: str) -> IndexedColumn:
    """Parse the name of an indexed column.

    As in Paimon, `m[k]`, split at the first `[`, is entry `k` of map `m`.
    """
    start = name.find("[")
    if start < 0 or not name.endswith("]"):
        return IndexedColumn(name)
    return IndexedColumn(name[:start], name[start + 1 : -1])


def indexed_type(schema: TableSchema | None, indexed: IndexedColumn) -> DataType | None:
    """Return the type of the values of an indexed column; for an entry of a map, its value type.

    Return None without a schema or such a column.
    """
    field = schema.field(indexed.column) if schema is not None else None
    if field is None:
        return None
    if indexed.key is None:
        return field.type
    return field.type.value if field.type.root == "MAP" else None


def current_name(
    schema: TableSchema | None, current: TableSchema | None, indexed: IndexedColumn
) -> str | None:
    """Return the current name of a column that `schema` has.

    Return None if the column no longer exists, or a schema is unknown.
    """
    if schema is None or current is None:
        return None
    field = schema.field(indexed.column)
    if field is None:
        return None
    current_field = current.field_by_id(field.id)
    if current_field is None:
        return None
    return str(replace(indexed, column=current_field.name))


def resolve_column(schema: TableSchema, name: str) -> tuple[IndexedColumn, DataField, DataType]:
    """Find a column by its current name.

    Return its name in an index, its field, and the type of its values. Raises UsageError, with
    similar names, when there is no such column.
    """
    indexed = parse_indexed_column(name)
    field = schema.field(indexed.column)
    data_type = indexed_type(schema, indexed)
    if field is not None and data_type is not None:
        return indexed, field, data_type
    whole = schema.field(name)
    if whole is not None:
        return IndexedColumn(name), whole, whole.type
    if field is not None:
        raise UsageError(
            f"column {field.name} is {field.type}, not a map, so it has no entry {indexed.key!r}"
        )
    names = [field.name for field in schema.fields]
    hint = f"the columns of the table are {', '.join(names[:_MAX_NAMES])}"
    if len(names) > _MAX_NAMES:
        hint += ", ..."
    raise UsageError(
        f"there is no column {indexed.column!r}", hint=suggest(indexed.column, names, hint)
    )


def parse_table_schema(data: bytes) -> TableSchema:
    """Parse a schema file. Raises UnreadableError if `data` is not a schema file."""
    tree = parse_object(data, "a schema file")
    options = optional(tree, "options", dict) or {}
    return TableSchema(
        id=required(tree, "id", int),
        fields=parse_fields(tree.get("fields")),
        partition_keys=strings(tree, "partitionKeys"),
        primary_keys=strings(tree, "primaryKeys"),
        options={str(name): str(value) for name, value in options.items()},
    )


class PaimonSnapshot(Frozen):
    id: int
    schema_id: int
    manifest_lists: tuple[str, str]
    """The names of the base list and of the delta list."""
    record: Mapping[str, Any]
    """The JSON as stored, including unknown fields."""


def parse_snapshot(data: bytes) -> PaimonSnapshot:
    """Parse a snapshot file. Raises UnreadableError if `data` is not a snapshot file."""
    tree = parse_object(data, "a snapshot file")
    snapshot_id = required(tree, "id", int)
    schema_id = required(tree, "schemaId", int)
    base_list = file_name(required(tree, "baseManifestList", str))
    delta_list = file_name(required(tree, "deltaManifestList", str))
    return PaimonSnapshot(snapshot_id, schema_id, (base_list, delta_list), tree)


def build_snapshot(record: Mapping[str, Any]) -> bytes:
    """Build a snapshot file from these fields, in the format of Paimon's JSON writer."""
    return json.dumps(record, indent=2, separators=(",", " : ")).encode()
