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
    columns = list(leaves(schema))
    by_id = {leaf.id: leaf.path for leaf in columns}
    by_path: dict[Path, Path] = {}
    text = properties.get(NAME_MAPPING)
    if text:
        elements = set[int]()
        for leaf in columns:
            elements.update(leaf.lists)
        by_path = dict(_map_names(text, by_id, elements))
    return ColumnNames(
        by_id=by_id,
        by_path=by_path,
        defaults=frozenset(leaf.path for leaf in columns if leaf.has_default),
        types={leaf.path: leaf.type for leaf in columns},
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
                name = required(field, "name", str)
                inner = outer.within(name, required(field, "id", int))
                inner = inner._replace(
                    path=(*outer.path, name),
                    has_default=outer.has_default or field.get("initial-default") is not None,
                )
                yield from _walk(field.get("type"), inner, depth + 1)
        case {"type": "list"}:
            inner = outer.within("element", required(tree, "element-id", int))
            inner = inner._replace(lists=(*outer.lists, inner.id))
            yield from _walk(tree.get("element"), inner, depth + 1)
        case {"type": "map"}:
            for part in ("key", "value"):
                inner = outer.within(part, required(tree, f"{part}-id", int))
                inner = inner._replace(path=(*outer.path, part))
                yield from _walk(tree.get(part), inner, depth + 1)
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
        number = optional(field, "field-id", int)
        below = optional(field, "fields", list)
        for name in strings(field, "names"):
            here = path if number in elements else (*path, name)
            if number is not None and number in by_id:
                yield here, by_id[number]
            if below:
                yield from _map_fields(below, here, by_id, elements, depth + 1)


_TYPES = {"year": "int", "month": "string", "day": "date", "hour": "string"}
"""The types of texts that do not depend on that of the column."""
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
        by_column_name = {}
        by_field_name = {}
        for _, spec in sorted(specs.items()):
            for field in spec:
                if field.transform == "void":
                    continue
                value = (field.source_id, field.transform)
                by_field_name[field.name] = value
                column_name = self._column_name(field)
                if column_name is not None:
                    by_column_name[column_name] = value
        self._values = by_column_name | by_field_name
        """The source column and the transform of each value, by name."""

    @property
    def names(self) -> AbstractSet[str]:
        """All names of partition values."""
        return self._values.keys()

    @property
    def types(self) -> Mapping[str, str]:
        """Type of the texts of each partition value; those of `month` and `hour` have the order of
        text."""
        types = {}
        for name, (source_id, transform) in self._values.items():
            if transform in _TYPES:
                types[name] = _TYPES[transform]
            elif transform.startswith("bucket"):
                types[name] = "int"
            else:
                _, kind = self._columns.get(source_id or 0, ((), "unknown"))
                types[name] = kind
        return types

    def names_of(self, field: PartitionField) -> tuple[str, ...]:
        """Return the names of the values of a field; none for the transform `void`, and if newer
        specs use its names for other fields."""
        names = [field.name]
        column_name = self._column_name(field)
        if column_name is not None and column_name != field.name:
            names.append(column_name)
        value = (field.source_id, field.transform)
        return tuple(name for name in names if self._values.get(name) == value)

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
        if column is None or field.transform != "identity":
            return None
        path, _ = column
        return quote(path)

    def _column_of(self, field: PartitionField) -> tuple[Path, str] | None:
        if field.source_id is None:
            return None
        return self._columns.get(field.source_id)


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
    match_of_decimal = _DECIMAL.fullmatch(kind)
    if match_of_decimal:
        unscaled = Decimal(int.from_bytes(value, "big", signed=True))
        return str(unscaled.scaleb(-int(match_of_decimal[1])))
    return _WRITERS.get(kind, _write_plain)(value)


def _write_plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


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
