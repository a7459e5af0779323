"""The columns of a table (Iceberg specification, "Schemas" and "Name Mapping Serialization"): paths
and types by field id.

A path leaves out the scaffolding of lists and maps: the elements of a list `tags` have the path
`("tags",)`, the keys of a map `m` the path `("m", "key")`.

Partition values are written as text ("Partition Transforms"), as in the names of the folders that
Iceberg's writers make:

    identity, truncate     the value: 2024-02-29, 2024-02-29T12:30:00, 12.50, base64 of bytes
    year, month            2024, 2024-02
    day, hour              2024-02-29, 2024-02-29-12
    bucket                 the number of the bucket
    void                   none

Such a value is what Avro stores: days or microseconds since 1970, the unscaled bytes of a decimal.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.iceberg.metadata import PartitionField
from sbbf_tool.parquet import iso8601
from sbbf_tool.parquet.column_names import ColumnNames, Path
from sbbf_tool.parquet.columns import quote
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
    """Build the names of a file's columns from the current schema; files without field ids use the
    table's name mapping."""
    found = list(leaves(schema))
    by_id = {leaf.id: leaf.path for leaf in found}
    text = properties.get(NAME_MAPPING)
    by_path = (
        dict(_map_names(text, by_id, {number for leaf in found for number in leaf.lists}))
        if text
        else {}
    )
    return ColumnNames(
        by_id=by_id,
        by_path=by_path,
        defaults=frozenset(leaf.path for leaf in found if leaf.has_default),
        types={leaf.path: leaf.type for leaf in found},
    )


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
                name, has_default = (
                    required(field, "name", str),
                    outer.has_default or field.get("initial-default") is not None,
                )
                inner = outer.within(name, required(field, "id", int))._replace(
                    path=(*outer.path, name), has_default=has_default
                )
                yield from _walk(field.get("type"), inner, depth + 1)
        case {"type": "list"}:
            inner = outer.within("element", required(tree, "element-id", int))
            yield from _walk(
                tree.get("element"), inner._replace(lists=(*outer.lists, inner.id)), depth + 1
            )
        case {"type": "map"}:
            for part in ("key", "value"):
                inner = outer.within(part, required(tree, f"{part}-id", int))
                yield from _walk(
                    tree.get(part), inner._replace(path=(*outer.path, part)), depth + 1
                )
        case _:
            raise UnreadableError(f"the schema has an unknown type {tree!r:.60}")


def _map_names(
    text: str, by_id: Mapping[int, Path], elements: AbstractSet[int]
) -> Iterator[tuple[Path, Path]]:
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


_DECIMAL = re.compile(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)")


class PartitionTexts:
    """Partition values of a table's files as text.

    A value has the name of its partition field, and the current name of the column if it is the
    column's own value. A name means one field in all partition specs: names of fields precede those
    of columns, and newer specs precede older ones.
    """

    def __init__(
        self, columns: Mapping[int, tuple[Path, str]], specs: Mapping[int, Sequence[PartitionField]]
    ) -> None:
        """Take path and type of the table's columns by field id, and all partition specs of the
        table."""
        self._columns = columns
        fields = [
            field
            for _, spec in sorted(specs.items())
            for field in spec
            if field.transform != "void"
        ]
        pairs = [
            (name, field) for field in fields if (name := self._column_name(field)) is not None
        ]
        pairs += [(field.name, field) for field in fields]
        self._values: dict[str, tuple[int | None, str]] = {
            name: (field.source_id, field.transform) for name, field in pairs
        }

    @property
    def names(self) -> AbstractSet[str]:
        """All names of partition values."""
        return self._values.keys()

    @property
    def types(self) -> Mapping[str, str]:
        """Type of the texts of each partition value; those of `month` and `hour` have the order of
        text."""
        types = {"year": "int", "month": "string", "day": "date", "hour": "string"}
        source_types = {number: kind for number, (_, kind) in self._columns.items()}
        return {
            name: types.get(
                transform,
                "int"
                if transform.startswith("bucket")
                else source_types.get(source or 0, "unknown"),
            )
            for name, (source, transform) in self._values.items()
        }

    def names_of(self, field: PartitionField) -> tuple[str, ...]:
        """Return the names of the values of a field; none for the transform `void`, and if newer
        specs use its names for other fields."""
        names = dict.fromkeys(
            name for name in (field.name, self._column_name(field)) if name is not None
        )
        return tuple(
            name for name in names if self._values.get(name) == (field.source_id, field.transform)
        )

    def text_of(self, field: PartitionField, value: Any) -> str | None:
        """Return a value as text; None for NULL, and for the transform `void`."""
        if value is None or field.transform == "void":
            return None
        column = self._column_of(field)
        try:
            return _write_value(field.transform, "" if column is None else column[1], value)
        except (ValueError, TypeError, ArithmeticError, AssertionError):
            # The value does not fit the type that the column has now.
            return _write_plain(value)

    def _column_name(self, field: PartitionField) -> str | None:
        column = self._column_of(field)
        return quote(column[0]) if column is not None and field.transform == "identity" else None

    def _column_of(self, field: PartitionField) -> tuple[Path, str] | None:
        return None if field.source_id is None else self._columns.get(field.source_id)


def _write_value(transform: str, kind: str, value: Any) -> str:
    match transform:
        case "year":
            return f"{1970 + value:04d}"
        case "month":
            return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
        case "day":
            return iso8601.format_date(value)
        case "hour":
            return f"{iso8601.format_date(value // 24)}-{value % 24:02d}"
    if transform != "identity" and not transform.startswith("truncate"):
        return _write_plain(value)
    scale = _DECIMAL.fullmatch(kind)
    if scale:
        return str(Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-int(scale[1])))
    return _WRITERS.get(kind, _write_plain)(value)


def _write_plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _timestamp(unit: str, zone: str = "") -> Callable[[int], str]:
    return lambda count: iso8601.format_timestamp(count, unit, utc=False) + zone


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "date": iso8601.format_date,
    "time": lambda micros: iso8601.format_time(micros, "MICROS"),
    "timestamp": _timestamp("MICROS"),
    "timestamptz": _timestamp("MICROS", "+00:00"),
    "timestamp_ns": _timestamp("NANOS"),
    "timestamptz_ns": _timestamp("NANOS", "+00:00"),
    "uuid": lambda data: str(UUID(bytes=data)),
}
