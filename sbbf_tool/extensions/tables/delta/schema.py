"""The schema of a Delta table (PROTOCOL.md, "Schema Serialization Format", "Column Mapping").

With column mapping, a file has physical names, or field ids by which its columns are found; users know logical names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.parquet.columns import MAX_DEPTH
from sbbf_tool.parquet.logical import readings_of_texts
from sbbf_tool.records import optional, parse_object, required

Path = tuple[str, ...]
_MODES = ("none", "name", "id")


@dataclass(frozen=True, slots=True)
class DeltaLeaf:
    """A column of a primitive type. Paths are without the scaffolding of lists and maps."""

    physical: Path
    logical: Path
    field_id: int | None


@dataclass(frozen=True, slots=True)
class Schema:
    logical_names: Mapping[str, str]
    """Names that users know, by the physical names of top-level columns."""
    names: ColumnNames
    types: Mapping[str, str]
    """Types of the top-level columns that are primitive, by the names that users know."""


def parse_schema(text: str, mode: str) -> Schema:
    """Parse the schema in a table's metadata, for a mode of column mapping. Raises UnreadableError."""
    if mode not in _MODES:
        raise UnreadableError(f"delta.columnMapping.mode must be one of {', '.join(_MODES)}, not {mode!r:.40}")
    with ErrorPlace(None, "schemaString"):
        root = parse_object(text.encode(errors="surrogatepass"), "the schema")
        leaves = tuple(_walk(root, (), (), None, {}, mode != "none", 0))
        with_default = {required(field, "name", str) for field in _fields(root) if _has_default(field)}
        logical_names = {_physical_name(field, mode != "none"): required(field, "name", str) for field in _fields(root)}
        types = {required(field, "name", str): kind for field in _fields(root) if isinstance(kind := field.get("type"), str)}
    defaults = frozenset(leaf.logical for leaf in leaves if leaf.logical[0] in with_default)
    by_id, by_path, unmapped = {}, {}, frozenset[Path]()
    if mode == "none":
        unmapped = frozenset(leaf.logical for leaf in leaves)
    else:
        by_id = {leaf.field_id: leaf.logical for leaf in leaves if leaf.field_id is not None} if mode == "id" else {}
        by_path = {leaf.physical: leaf.logical for leaf in leaves}
    return Schema(logical_names, ColumnNames(by_id, by_path, unmapped, defaults, readings_of_texts(root)), types)


def _walk(
    kind: Any, physical: Path, logical: Path, field_id: int | None, nested_ids: Mapping[str, Any], maps: bool, depth: int
) -> Iterator[DeltaLeaf]:
    """Yield the leaves of a type. `nested_ids` are the ids of list elements, keys and values, by names such as `col.element`."""
    if depth > MAX_DEPTH:
        raise UnreadableError(f"the schema is nested more than {MAX_DEPTH} deep")
    if kind == "variant":
        yield from (DeltaLeaf((*physical, part), (*logical, part), None) for part in ("metadata", "value"))
        return
    if isinstance(kind, str):
        yield DeltaLeaf(physical, logical, field_id)
        return
    if not isinstance(kind, dict):
        raise UnreadableError(f"a type must be a text or an object, not {kind!r:.60}")
    name = kind.get("type")
    if name == "struct":
        for field in _fields(kind):
            metadata = optional(field, "metadata", dict) or {}
            here = _physical_name(field, maps)
            ids = optional(metadata, "delta.columnMapping.nested.ids", dict) or {}
            below = {path.removeprefix(here): number for path, number in ids.items() if isinstance(path, str)}
            own_id = optional(metadata, "delta.columnMapping.id", int)
            path = (*logical, required(field, "name", str))
            yield from _walk(field.get("type"), (*physical, here), path, own_id, below, maps, depth + 1)
    elif name == "array":
        yield from _walk(kind.get("elementType"), physical, logical, *_nested(nested_ids, ".element"), maps, depth + 1)
    elif name == "map":
        for part in ("key", "value"):
            own_id, below = _nested(nested_ids, f".{part}")
            yield from _walk(kind.get(f"{part}Type"), (*physical, part), (*logical, part), own_id, below, maps, depth + 1)
    elif name == "udt":
        yield from _walk(kind.get("sqlType"), physical, logical, field_id, nested_ids, maps, depth + 1)
    else:
        raise UnreadableError(f"unknown type {name!r:.60}")


def _nested(ids: Mapping[str, Any], part: str) -> tuple[int | None, dict[str, Any]]:
    """Return the id of a part of a list or map, and the ids of the parts below it."""
    own_id = ids.get(part)
    return own_id if isinstance(own_id, int) else None, {path.removeprefix(part): ids[path] for path in ids if path.startswith(f"{part}.")}


def _fields(struct: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = required(struct, "fields", list)
    if not all(isinstance(field, dict) for field in fields):
        raise UnreadableError("the fields of a struct must be objects")
    return fields


def _physical_name(field: Mapping[str, Any], maps: bool) -> str:
    name = required(field, "name", str)
    return (optional(optional(field, "metadata", dict) or {}, "delta.columnMapping.physicalName", str) if maps else None) or name


def _has_default(field: Mapping[str, Any]) -> bool:
    return any(name in (optional(field, "metadata", dict) or {}) for name in ("CURRENT_DEFAULT", "EXISTS_DEFAULT"))
