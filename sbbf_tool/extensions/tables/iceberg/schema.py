"""The columns of a table (Iceberg specification, "Schemas" and "Name Mapping Serialization"): paths and types by field id.

A path leaves out the scaffolding of lists and maps: the elements of a list `tags` have the path `("tags",)`, the keys of a map `m` the path
`("m", "key")`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.column_names import ColumnNames, Path
from sbbf_tool.records import optional, required, strings

MAX_DEPTH = 100
NAME_MAPPING = "schema.name-mapping.default"


def build_column_names(schema: Mapping[str, Any], properties: Mapping[str, str]) -> ColumnNames:
    """Build the names of a file's columns from the current schema; files without field ids use the table's name mapping."""
    by_id = {number: path for number, path, _ in leaves(schema)}
    text = properties.get(NAME_MAPPING)
    by_path = dict(_map_names(text, by_id)) if text else {}
    return ColumnNames(by_id=by_id, by_path=by_path, defaults=frozenset(_with_default(schema, (), 0)))


def leaves(schema: Mapping[str, Any]) -> Iterator[tuple[int, Path, str]]:
    """Yield field id, path and type of each leaf of a schema. Raises UnreadableError if the schema contradicts the format."""
    return _walk(schema, (), 0)


def _walk(tree: Any, path: Path, depth: int) -> Iterator[tuple[int, Path, str]]:
    """Yield the leaves of a struct, list or map type."""
    if depth > MAX_DEPTH:
        raise UnreadableError(f"the schema is nested more than {MAX_DEPTH} deep")
    match tree:
        case {"type": "struct"}:
            for field in required(tree, "fields", list):
                if not isinstance(field, dict):
                    raise UnreadableError("a field of the schema is not an object")
                name = required(field, "name", str)
                yield from _field(required(field, "id", int), field.get("type"), (*path, name), depth)
        case {"type": "list"}:
            yield from _field(required(tree, "element-id", int), tree.get("element"), path, depth)
        case {"type": "map"}:
            yield from _field(required(tree, "key-id", int), tree.get("key"), (*path, "key"), depth)
            yield from _field(required(tree, "value-id", int), tree.get("value"), (*path, "value"), depth)
        case _:
            raise UnreadableError(f"the schema has an unknown type {tree!r:.60}")


def _field(number: int, tree: Any, path: Path, depth: int) -> Iterator[tuple[int, Path, str]]:
    if isinstance(tree, str):
        yield number, path, tree
    else:
        yield from _walk(tree, path, depth + 1)


def full_names(tree: Any, name: str = "", path: Path = ()) -> Iterator[tuple[str, Path]]:
    """Yield the name by which Iceberg knows each leaf of a schema that `leaves` accepts, such as `tags.element`, and its path."""
    prefix = f"{name}." if name else ""
    match tree:
        case {"type": "struct"}:
            for field in tree["fields"]:
                yield from full_names(field.get("type"), prefix + field["name"], (*path, field["name"]))
        case {"type": "list"}:
            yield from full_names(tree.get("element"), f"{prefix}element", path)
        case {"type": "map"}:
            for part in ("key", "value"):
                yield from full_names(tree.get(part), prefix + part, (*path, part))
        case _:
            yield name, path


def _with_default(tree: Any, path: Path, depth: int) -> Iterator[Path]:
    """Yield the paths of the leaves that have an initial default, or are in a field that has one."""
    match tree:
        case {"type": "struct", "fields": list(fields)}:
            for field in fields:
                here = (*path, field["name"])
                kind = field.get("type")
                if field.get("initial-default") is not None:
                    yield from (leaf for _, leaf, _ in _field(field["id"], kind, here, depth))
                else:
                    yield from _with_default(kind, here, depth + 1)
        case {"type": "list"}:
            yield from _with_default(tree.get("element"), path, depth + 1)
        case {"type": "map"}:
            for part in ("key", "value"):
                yield from _with_default(tree.get(part), (*path, part), depth + 1)


def _map_names(text: str, by_id: Mapping[int, Path]) -> Iterator[tuple[Path, Path]]:
    """Yield path in the file and path in the table of each column of a name mapping."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, list):
        raise UnreadableError(f"the property {NAME_MAPPING} is not a JSON list")
    yield from _map_fields(tree, (), by_id, 0)


def _map_fields(fields: list[Any], path: Path, by_id: Mapping[int, Path], depth: int) -> Iterator[tuple[Path, Path]]:
    if depth > MAX_DEPTH:
        raise UnreadableError(f"the property {NAME_MAPPING} is nested more than {MAX_DEPTH} deep")
    for field in fields:
        if not isinstance(field, dict):
            raise UnreadableError(f"the property {NAME_MAPPING} has a field that is not an object")
        number, below = optional(field, "field-id", int), optional(field, "fields", list)
        for name in strings(field, "names"):
            here = path if name == "element" and depth else (*path, name)
            if number is not None and number in by_id:
                yield here, by_id[number]
            if below:
                yield from _map_fields(below, here, by_id, depth + 1)
