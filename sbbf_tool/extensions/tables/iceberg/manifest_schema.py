"""The Avro schemas of manifest lists and manifests: names of fields by field id, and the fields
that a format version requires.

Writers of the format may name fields as they like, since field ids identify them
(`added_data_files_count` is now `added_files_count`); known fields are renamed to the names of the
specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.avro.file import AvroHeader, parse_header
from sbbf_tool.extensions.avro.schema import parse_schema

_LIST_NAMES = {
    500: "manifest_path",
    501: "manifest_length",
    502: "partition_spec_id",
    517: "content",
    515: "sequence_number",
    516: "min_sequence_number",
    503: "added_snapshot_id",
    504: "added_files_count",
    505: "existing_files_count",
    506: "deleted_files_count",
    512: "added_rows_count",
    513: "existing_rows_count",
    514: "deleted_rows_count",
    507: "partitions",
    519: "key_metadata",
    520: "first_row_id",
}
_ENTRY_NAMES = {
    0: "status",
    1: "snapshot_id",
    3: "sequence_number",
    4: "file_sequence_number",
    2: "data_file",
}
_FILE_NAMES = {
    134: "content",
    100: "file_path",
    101: "file_format",
    102: "partition",
    103: "record_count",
    104: "file_size_in_bytes",
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    111: "distinct_counts",
    125: "lower_bounds",
    128: "upper_bounds",
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    137: "nan_value_counts",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}


_Types: TypeAlias = Mapping[int, str | list[str]]
"""The types of fields by their id, as in the JSON of Avro schemas. A format version requires them
that older records do not have: there they are null, or 0 if the type has no null."""

_NULL_OR_LONG = ["null", "long"]
_LIST_V2: _Types = {
    517: "int",
    515: "long",
    516: "long",
    504: "int",
    505: "int",
    506: "int",
    512: "long",
    513: "long",
    514: "long",
}
_LIST_V3: _Types = {520: _NULL_OR_LONG}
_ENTRY_V2: _Types = {3: _NULL_OR_LONG, 4: _NULL_OR_LONG}
_FILE_V2: _Types = {134: "int"}
_FILE_V3: _Types = {142: _NULL_OR_LONG}
_DELETES_V2: _Types = {143: ["null", "string"]}
_DELETES_V3: _Types = {144: _NULL_OR_LONG, 145: _NULL_OR_LONG}


def parse_list_header(data: bytes) -> AvroHeader:
    """Parse the header of a manifest list. Raises UnreadableError."""
    header = parse_header(data)
    tree = json.loads(header.schema_text)
    _rename_fields(tree, _LIST_NAMES)
    return _with_schema(header, tree)


def parse_manifest_header(data: bytes) -> AvroHeader:
    """Parse the header of a manifest. Raises UnreadableError."""
    header = parse_header(data)
    tree = json.loads(header.schema_text)
    _rename_fields(tree, _ENTRY_NAMES)
    _rename_fields(_data_file(tree), _FILE_NAMES)
    return _with_schema(header, tree)


def upgrade_list(header: AvroHeader, format_version: int) -> tuple[AvroHeader, dict[str, Any]]:
    """Return the header of a manifest list with all fields that the format version requires, and
    the values of these fields in older records, by name."""
    types: dict[int, str | list[str]] = {}
    if format_version > 1:
        types.update(_LIST_V2)
    if format_version > 2:
        types.update(_LIST_V3)
    tree = json.loads(header.schema_text)
    _add_fields(tree, types, _LIST_NAMES)
    defaults = {_LIST_NAMES[number]: _default_of(kind) for number, kind in types.items()}
    return _with_schema(header, tree), defaults


def upgrade_manifest(header: AvroHeader, format_version: int, *, of_deletes: bool) -> AvroHeader:
    """Return the header of a manifest with all fields that the format version requires, and with
    `of_deletes` those of new delete files."""
    tree = json.loads(header.schema_text)
    types: dict[int, str | list[str]] = {}
    if format_version > 1:
        _add_fields(tree, _ENTRY_V2, _ENTRY_NAMES)
        types.update(_FILE_V2)
    if format_version > 2:
        types.update(_FILE_V3)
    if of_deletes:
        types.update(_DELETES_V2)
        if format_version > 2:
            types.update(_DELETES_V3)
    _add_fields(_data_file(tree), types, _FILE_NAMES)
    return _with_schema(header, tree)


def partition_ids(header: AvroHeader) -> Iterator[int | None]:
    """Yield the field id of each partition value of a manifest."""
    tree = json.loads(header.schema_text)
    for field in _fields(_data_file(tree)):
        if field.get("name") == "partition":
            for value in _fields(field.get("type")):
                number = value.get("field-id")
                yield number if type(number) is int else None
            return


def _with_schema(header: AvroHeader, tree: Any) -> AvroHeader:
    text = json.dumps(tree)
    return replace(header, schema_text=text, schema=parse_schema(text))


def _fields(tree: Any) -> list[dict[str, Any]]:
    fields = tree.get("fields") if isinstance(tree, dict) and tree.get("type") == "record" else None
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise UnreadableError("the values of the Avro file are not records of Iceberg")
    return fields


def _rename_fields(tree: Any, names: Mapping[int, str]) -> None:
    for field in _fields(tree):
        number = field.get("field-id")
        if type(number) is int and number in names:
            field["name"] = names[number]


def _data_file(tree: Any) -> Any:
    for field in _fields(tree):
        if field.get("name") == "data_file":
            return field.get("type")
    raise UnreadableError("the manifest has no field data_file")


def _default_of(kind: str | list[str]) -> int | None:
    return None if isinstance(kind, list) else 0


def _add_fields(tree: Any, types: _Types, names: Mapping[int, str]) -> None:
    fields = _fields(tree)
    present = {field.get("name") for field in fields}
    for number, kind in types.items():
        name = names[number]
        if name not in present:
            default = _default_of(kind)
            fields.append({"name": name, "type": kind, "default": default, "field-id": number})
