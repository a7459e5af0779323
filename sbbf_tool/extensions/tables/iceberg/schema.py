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
    """A column of a primitive type."""

    id: int = 0
    path: Path = ()
    name: str = ""
    """By which Iceberg knows it, such as `tags.element`."""
    type: str = ""
    has_default: bool = False
    """Whether it or a field around it has an initial default."""
    lists: tuple[int, ...] = ()
    """Ids of the elements of lists around it."""

    def within(self, part: str, id: int) -> IcebergLeaf:
        """Return the leaf of a part with this id; its path is that of this one."""
        return self._replace(id=id, name=f"{self.name}.{part}" if self.name else part)


def build_column_names(schema: Mapping[str, Any], properties: Mapping[str, str]) -> ColumnNames:
    """Build the names of a file's columns from the current schema; files without field ids use the table's name mapping."""
    found = list(leaves(schema))
    by_id = {leaf.id: leaf.path for leaf in found}
    text = properties.get(NAME_MAPPING)
    by_path = dict(_map_names(text, by_id, {number for leaf in found for number in leaf.lists})) if text else {}
    return ColumnNames(by_id=by_id, by_path=by_path, defaults=frozenset(leaf.path for leaf in found if leaf.has_default))


def leaves(schema: Mapping[str, Any]) -> Iterator[IcebergLeaf]:
    """Yield the leaves of a schema. Raises UnreadableError if the schema contradicts the format."""
    return _walk(schema, IcebergLeaf(), 0)


def _walk(tree: Any, outer: IcebergLeaf, depth: int) -> Iterator[IcebergLeaf]:
    """Yield the leaves of a type; `outer` is the field that has it, as a leaf."""
    if depth > MAX_DEPTH:
        raise UnreadableError(f"the schema is nested more than {MAX_DEPTH} deep")
    match tree:
        case str() if depth:
            yield outer._replace(type=tree)
        case {"type": "struct"}:
            for field in required(tree, "fields", list):
                if not isinstance(field, dict):
                    raise UnreadableError("a field of the schema is not an object")
                name, has_default = required(field, "name", str), outer.has_default or field.get("initial-default") is not None
                inner = outer.within(name, required(field, "id", int))._replace(path=(*outer.path, name), has_default=has_default)
                yield from _walk(field.get("type"), inner, depth + 1)
        case {"type": "list"}:
            inner = outer.within("element", required(tree, "element-id", int))
            yield from _walk(tree.get("element"), inner._replace(lists=(*outer.lists, inner.id)), depth + 1)
        case {"type": "map"}:
            for part in ("key", "value"):
                inner = outer.within(part, required(tree, f"{part}-id", int))
                yield from _walk(tree.get(part), inner._replace(path=(*outer.path, part)), depth + 1)
        case _:
            raise UnreadableError(f"the schema has an unknown type {tree!r:.60}")


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
