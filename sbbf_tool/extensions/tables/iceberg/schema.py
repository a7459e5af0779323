"""The columns of a table (Iceberg specification, "Schemas" and "Name Mapping Serialization"): paths and types by field id.

A path leaves out the scaffolding of lists and maps: the elements of a list `tags` have the path `("tags",)`, the keys of a map `m` the path
`("m", "key")`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.column_names import ColumnNames, Path
from sbbf_tool.records import optional, required, strings

MAX_DEPTH = 100
NAME_MAPPING = "schema.name-mapping.default"


class IcebergLeaf(NamedTuple):
    """A column of a primitive type, whether it or a field around it has an initial default, and the ids of elements of lists around it."""

    id: int
    path: Path
    type: str
    has_default: bool
    lists: tuple[int, ...]


def build_column_names(schema: Mapping[str, Any], properties: Mapping[str, str]) -> ColumnNames:
    """Build the names of a file's columns from the current schema; files without field ids use the table's name mapping."""
    found = list(leaves(schema))
    by_id = {leaf.id: leaf.path for leaf in found}
    text = properties.get(NAME_MAPPING)
    by_path = dict(_map_names(text, by_id, {number for leaf in found for number in leaf.lists})) if text else {}
    return ColumnNames(by_id=by_id, by_path=by_path, defaults=frozenset(leaf.path for leaf in found if leaf.has_default))


def leaves(schema: Mapping[str, Any]) -> Iterator[IcebergLeaf]:
    """Yield the leaves of a schema. Raises UnreadableError if the schema contradicts the format."""
    return _walk(schema, (), False, (), 0)


def _walk(tree: Any, path: Path, has_default: bool, lists: tuple[int, ...], depth: int) -> Iterator[IcebergLeaf]:
    """Yield the leaves of a struct, list or map type."""
    if depth > MAX_DEPTH:
        raise UnreadableError(f"the schema is nested more than {MAX_DEPTH} deep")
    match tree:
        case {"type": "struct"}:
            for field in required(tree, "fields", list):
                if not isinstance(field, dict):
                    raise UnreadableError("a field of the schema is not an object")
                number, here = required(field, "id", int), (*path, required(field, "name", str))
                yield from _field(number, field.get("type"), here, has_default or field.get("initial-default") is not None, lists, depth)
        case {"type": "list"}:
            number = required(tree, "element-id", int)
            yield from _field(number, tree.get("element"), path, has_default, (*lists, number), depth)
        case {"type": "map"}:
            for part in ("key", "value"):
                yield from _field(required(tree, f"{part}-id", int), tree.get(part), (*path, part), has_default, lists, depth)
        case _:
            raise UnreadableError(f"the schema has an unknown type {tree!r:.60}")


def _field(number: int, tree: Any, path: Path, has_default: bool, lists: tuple[int, ...], depth: int) -> Iterator[IcebergLeaf]:
    if isinstance(tree, str):
        yield IcebergLeaf(number, path, tree, has_default, lists)
    else:
        yield from _walk(tree, path, has_default, lists, depth + 1)


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


def _map_names(text: str, by_id: Mapping[int, Path], elements: AbstractSet[int]) -> Iterator[tuple[Path, Path]]:
    """Yield path in the file and path in the table of each column of a name mapping."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, list):
        raise UnreadableError(f"the property {NAME_MAPPING} is not a JSON list")
    yield from _map_fields(tree, (), by_id, elements, 0)


def _map_fields(
    fields: list[Any], path: Path, by_id: Mapping[int, Path], elements: AbstractSet[int], depth: int
) -> Iterator[tuple[Path, Path]]:
    if depth > MAX_DEPTH:
        raise UnreadableError(f"the property {NAME_MAPPING} is nested more than {MAX_DEPTH} deep")
    for field in fields:
        if not isinstance(field, dict):
            raise UnreadableError(f"the property {NAME_MAPPING} has a field that is not an object")
        number, below = optional(field, "field-id", int), optional(field, "fields", list)
        for name in strings(field, "names"):
            here = path if number in elements else (*path, name)
            if number is not None and number in by_id:
                yield here, by_id[number]
            if below:
                yield from _map_fields(below, here, by_id, elements, depth + 1)
