"""The schema of a table (PROTOCOL.md, "Schema Serialization Format", "Column Mapping").

With column mapping, a file has physical names, or field ids by which its columns are found; users
know logical names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.parquet.columns import MAX_DEPTH
from sbbf_tool.parquet.logical import readings_of_texts
from sbbf_tool.records import optional, parse_object, required

Path = tuple[str, ...]
_MODES = ("none", "name", "id")


class DeltaLeaf(Frozen):
    """A column of a primitive type. Paths are without the scaffolding of lists and maps."""

    physical: Path
    logical: Path
    field_id: int | None
    type: str


class Schema(Frozen):
    logical_names: Mapping[str, str]
    """Names that users know, by the physical names of top-level columns."""
    names: ColumnNames
    types: Mapping[str, str]
    """Types of the top-level columns that are primitive, by the names that users know."""


def parse_schema(text: str, mode: str) -> Schema:
    """Parse the schema in a table's metadata, for a mode of column mapping. Raises
    UnreadableError."""
    if mode not in _MODES:
        raise UnreadableError(
            f"delta.columnMapping.mode must be one of {', '.join(_MODES)}, not {mode!r:.40}"
        )
    is_mapped = mode != "none"
    with ErrorPlace(None, "schemaString"):
        root = parse_object(text.encode(errors="surrogatepass"), "the schema")
        leaves = tuple(_walk(root, _Place(), is_mapped))
        with_default = set[str]()
        logical_names = {}
        types = {}
        for field in _fields(root):
            name = required(field, "name", str)
            if _has_default(field):
                with_default.add(name)
            logical_names[_physical_name(field, is_mapped)] = name
            kind = field.get("type")
            if isinstance(kind, str):
                types[name] = kind
    by_id: dict[int, Path] = {}
    by_path = {}
    unmapped = frozenset[Path]()
    if is_mapped:
        by_path = {leaf.physical: leaf.logical for leaf in leaves}
    else:
        unmapped = frozenset(leaf.logical for leaf in leaves)
    if mode == "id":
        by_id = {leaf.field_id: leaf.logical for leaf in leaves if leaf.field_id is not None}
    defaults = frozenset(leaf.logical for leaf in leaves if leaf.logical[0] in with_default)
    leaf_types = {leaf.logical: leaf.type for leaf in leaves}
    names = ColumnNames(by_id, by_path, unmapped, defaults, readings_of_texts(root), leaf_types)
    return Schema(logical_names, names, types)


class _Place(NamedTuple):
    """Where a type is in a schema."""

    physical: Path = ()
    logical: Path = ()
    field_id: int | None = None
    nested_ids: Mapping[str, Any] = {}
    """The ids of list elements, keys and values, by names such as `col.element`."""
    depth: int = 0

    def part(self, name: str) -> _Place:
        """Return the place of a part of a list or map, whose paths are the same."""
        own_id = self.nested_ids.get(name)
        below = {}
        for path, number in self.nested_ids.items():
            if path.startswith(f"{name}."):
                below[path.removeprefix(name)] = number
        return self._replace(
            field_id=own_id if isinstance(own_id, int) else None,
            nested_ids=below,
            depth=self.depth + 1,
        )

    def named(self, name: str) -> _Place:
        """Return the place with one more name in its paths."""
        return self._replace(physical=(*self.physical, name), logical=(*self.logical, name))

    def field(self, field: Mapping[str, Any], is_mapped: bool) -> _Place:
        """Return the place of the type of a field of a struct."""
        metadata = optional(field, "metadata", dict) or {}
        physical_name = _physical_name(field, is_mapped)
        ids = optional(metadata, "delta.columnMapping.nested.ids", dict) or {}
        below = {}
        for path, number in ids.items():
            if isinstance(path, str):
                below[path.removeprefix(physical_name)] = number
        return _Place(
            physical=(*self.physical, physical_name),
            field_id=optional(metadata, "delta.columnMapping.id", int),
            logical=(*self.logical, required(field, "name", str)),
            nested_ids=below,
            depth=self.depth + 1,
        )


def _walk(kind: Any, place: _Place, is_mapped: bool) -> Iterator[DeltaLeaf]:
    """Yield the leaves of a type. Raises UnreadableError."""
    if place.depth > MAX_DEPTH:
        raise UnreadableError(f"the schema is nested more than {MAX_DEPTH} deep")
    if kind == "variant":
        for part in ("metadata", "value"):
            leaf = place.named(part)
            yield DeltaLeaf(leaf.physical, leaf.logical, None, "binary")
        return
    if isinstance(kind, str):
        yield DeltaLeaf(place.physical, place.logical, place.field_id, kind)
        return
    if not isinstance(kind, dict):
        raise UnreadableError(f"a type must be a text or an object, not {kind!r:.60}")
    name = kind.get("type")
    if name == "struct":
        for field in _fields(kind):
            yield from _walk(field.get("type"), place.field(field, is_mapped), is_mapped)
    elif name == "array":
        yield from _walk(kind.get("elementType"), place.part(".element"), is_mapped)
    elif name == "map":
        for part in ("key", "value"):
            below = place.part(f".{part}").named(part)
            yield from _walk(kind.get(f"{part}Type"), below, is_mapped)
    elif name == "udt":
        below = place._replace(depth=place.depth + 1)
        yield from _walk(kind.get("sqlType"), below, is_mapped)
    else:
        raise UnreadableError(f"unknown type {name!r:.60}")


def _fields(struct: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = required(struct, "fields", list)
    if not all(isinstance(field, dict) for field in fields):
        raise UnreadableError("the fields of a struct must be objects")
    return fields


def _physical_name(field: Mapping[str, Any], is_mapped: bool) -> str:
    name = required(field, "name", str)
    if not is_mapped:
        return name
    metadata = optional(field, "metadata", dict) or {}
    return optional(metadata, "delta.columnMapping.physicalName", str) or name


def _has_default(field: Mapping[str, Any]) -> bool:
    metadata = optional(field, "metadata", dict) or {}
    return "CURRENT_DEFAULT" in metadata or "EXISTS_DEFAULT" in metadata
