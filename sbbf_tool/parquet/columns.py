"""Leaf columns and their types (parquet.thrift `SchemaElement`, LogicalTypes.md).

A Parquet schema is a tree written depth first; only its leaves have column chunks, and thus
filters. A leaf is named as Spark names columns: its parts are joined by dots, and a part that
contains a dot or a backtick is in backticks. Names in queries may leave out the scaffolding of
lists and maps (`list.element`, `key_value`): `tags` finds `tags.list.element`, `m.key` finds
`m.key_value.key`. `tags.list.element` finds `tags.list.item` too, as other writers name it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from sbbf_tool.errors import NoColumnError, UnreadableError, UsageError
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.hints import suggest, suggest_other_form
from sbbf_tool.numbers import some_of
from sbbf_tool.parquet.idl.ttypes import (
    ConvertedType,
    FieldRepetitionType,
    FileMetaData,
    SchemaElement,
    Type,
)
from sbbf_tool.parquet.logical import (
    AS_STORED,
    Logical,
    Reading,
    contradiction_of,
    doubt_of,
    logical_of,
    readings_of,
)

MAX_DEPTH = 100
PHYSICAL_TYPES = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
UNKNOWN = "UNKNOWN"
"""Physical type of a column whose pages cannot be read, because its part of the schema has
something that the format does not have."""
_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)*)`(?!`)|(?!`)[^.]*")
FIXED_WIDTHS = {"INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


class Column(Frozen):
    """A leaf column; `index` is its position among the leaves of the schema, which is also that of
    its chunk in a row group."""

    index: int
    path: tuple[str, ...]
    short_path: tuple[str, ...]
    """The path without the scaffolding of lists and maps."""
    physical: str
    type_length: int
    """Bytes of a FIXED_LEN_BYTE_ARRAY value, 0 for other types."""
    logical: Logical | None
    max_definition: int
    max_repetition: int
    doubt: str | None = None
    """Why the type is unknown although the schema states one: see the module `logical`. `logical`
    is None then."""
    reading: Reading = AS_STORED
    variant: tuple[str, ...] = ()
    """Path in the file of a leaf of a VARIANT; empty for other columns."""
    number: int = 0
    """Position among the columns with the same path, from 1; 0 if there is no other."""

    @property
    def name(self) -> str:
        return f"{quote(self.path)}#{self.number}" if self.number else quote(self.path)

    @property
    def width(self) -> int | None:
        """Bytes of a value in PLAIN form; None for BYTE_ARRAY and BOOLEAN (one bit)."""
        return FIXED_WIDTHS.get(self.physical) or self.type_length or None

    @property
    def float_format(self) -> str | None:
        """Format of a floating-point number, including FLOAT16, for the module `struct` and for
        numpy; None for columns of other types."""
        if self.logical is not None and self.logical.kind == "FLOAT16" and self.width == 2:
            return "<e"
        return {"FLOAT": "<f", "DOUBLE": "<d"}.get(self.physical)

    @property
    def nested(self) -> bool:
        return len(self.path) > 1

    @property
    def is_null_typed(self) -> bool:
        """Whether the column has no type since all its values are null, as pandas writes a batch of
        None."""
        return self.logical is not None and self.logical.kind == "UNKNOWN"

    @property
    def type_name(self) -> str:
        """Name of the type, such as `INT64`, `FIXED_LEN_BYTE_ARRAY(16) UUID`, `INT32 DECIMAL(9,2)`.

        `INT(64,signed)` of an INT64 says nothing new, and only some writers state it.
        """
        physical = f"{self.physical}({self.type_length})" if self.type_length else self.physical
        says_nothing_new = ("", f"INT({physical[3:]},signed)")
        if str(self.logical or "") in says_nothing_new:
            return physical
        return f"{physical} {self.logical}"


def ensure_readable(column: Column, place: str) -> None:
    """Ensure that the schema states a physical type and, if it separates values in pages, their
    length. Raises UnreadableError."""
    lacks_length = column.physical == "FIXED_LEN_BYTE_ARRAY" and not column.type_length
    if column.physical == UNKNOWN or lacks_length:
        raise UnreadableError(column.doubt or "the length of its values is not known", place=place)


# A file has few columns and many chunks, and each chunk needs its column's name.
@lru_cache(maxsize=4096)
def quote(path: tuple[str, ...]) -> str:
    """Join the parts of a path into a name: `("a.b", "c")` -> `` `a.b`.c ``. The inverse is
    `unquote`."""
    return ".".join(map(_quote_part, path))


def _quote_part(part: str) -> str:
    if part and "." not in part and "`" not in part:
        return part
    doubled = part.replace("`", "``")
    return f"`{doubled}`"


def unquote(name: str) -> tuple[str, ...]:
    """Split a name written with dots and backticks into its parts. Raises UsageError if a backtick
    is not closed."""
    parts: list[str] = []
    pos = 0
    while (part := _PART.match(name, pos)) is not None:
        quoted = part["quoted"]
        parts.append(part[0] if quoted is None else quoted.replace("``", "`"))
        pos = part.end()
        if pos == len(name):
            return tuple(parts)
        if name[pos] != ".":
            raise UsageError(f"column name {name!r}: a dot must follow a closing backtick")
        pos += 1
    raise UsageError(f"column name {name!r}: a backtick is not closed")


def find_column(columns: Sequence[Column], name: str) -> Column:
    """Find the leaf column that `name` means. It is compared first with full paths, then with
    top-level names that contain dots, then with paths without the scaffolding of lists and maps,
    then with full paths as other writers spell this scaffolding; `a#2` is the second of several
    columns `a`. Raises UsageError, with similar names, if none or several match.
    """
    path = _path_meant(columns, name)
    for candidates in _candidates(columns, name, path):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            names = [column.name for column in candidates]
            raise UsageError(
                f"column name {name!r} is ambiguous: the file has {len(candidates)} such columns",
                hint=f"name one of {some_of(names)}",
            )
    if "#" in name:
        for column in columns:
            if column.name == name:
                return column
    ensure_leaf(name, [column.name for column in columns if column.path[: len(path)] == path])
    full_names = [column.name for column in columns]
    short_names = [quote(column.short_path) for column in columns if not column.number]
    raise no_column(name, full_names, "file", short_names)


def _candidates(
    columns: Sequence[Column], name: str, path: tuple[str, ...]
) -> Iterator[list[Column]]:
    yield [column for column in columns if column.path == path]
    yield [column for column in columns if column.path == (name,)]
    yield [column for column in columns if column.short_path == path]
    if len(path) > 1:
        from sbbf_tool.parquet.scaffolding import is_spelling  # few names have scaffolding

        yield [
            column
            for column in columns
            if len(column.short_path) < len(column.path)
            and is_spelling(path, column.short_path, column.max_repetition)
        ]


def _path_meant(columns: Sequence[Column], name: str) -> tuple[str, ...]:
    try:
        return unquote(name)
    except UsageError:
        # A column name may contain a backtick, which needs no quoting as long as the name has no
        # other meaning.
        path = (name,)
        if not any(column.path == path for column in columns):
            raise
        return path


def ensure_leaf(name: str, below: Sequence[str]) -> None:
    """Raise UsageError if a name means a group, which has the leaf columns `below`."""
    if below:
        raise UsageError(
            f"column {name!r} is a group", hint=f"name one of its leaf columns: {some_of(below)}"
        )


def no_column(
    name: str, names: Sequence[str], owner: str, other_names: Sequence[str] = ()
) -> NoColumnError:
    """Return the error for a name that a file or table does not have, with similar names or with
    those that the file or table has; `other_names` are further names of the same columns."""
    hint = f"the {owner} has no columns"
    if names:
        hint = f"the columns of the {owner} are {some_of(names)}"
    all_names = [*names, *other_names]
    hint = suggest_other_form(name, all_names) or suggest(name, all_names, hint)
    return NoColumnError(f"there is no column {name!r}", hint=hint)


class Leaf(NamedTuple):
    """A leaf of a schema, before it is named."""

    element: SchemaElement
    path: tuple[str, ...]
    name_positions: tuple[int, ...]
    """Positions in `path` of the parts that are not scaffolding of lists and maps."""
    definition: int
    repetition: int
    doubt: str | None
    """What the format does not have in its part of the schema."""
    is_in_variant: bool = False

    @property
    def short_path(self) -> tuple[str, ...]:
        return tuple(self.path[at] for at in self.name_positions) or self.path

    def column(self, index: int, path: tuple[str, ...], short_path: tuple[str, ...]) -> Column:
        """Return the column with this name; its physical type is UNKNOWN if no reader can read its
        pages."""
        element = self.element
        physical = UNKNOWN
        length = 0
        logical = None
        doubt = self.doubt
        if not doubt:
            physical = PHYSICAL_TYPES[element.type]
            if element.type == Type.FIXED_LEN_BYTE_ARRAY:
                length = max(element.type_length or 0, 0)
            logical = logical_of(element)
            doubt = doubt_of(physical, element.type_length, logical) or contradiction_of(element)
            if doubt:
                logical = None
        return Column(
            index,
            path,
            short_path,
            physical,
            length,
            logical,
            self.definition,
            self.repetition,
            doubt,
            variant=self.path if self.is_in_variant else (),
        )


def leaf_columns(schema: Sequence[SchemaElement]) -> tuple[Column, ...]:
    """List the leaves of a schema as the footer stores it, root first. Raises UnreadableError if
    they do not form a tree."""
    columns = tuple(
        leaf.column(index, leaf.path, leaf.short_path)
        for index, leaf in enumerate(leaves_of(schema))
    )
    if len({column.path for column in columns}) == len(columns):
        return columns
    return _with_numbers(columns)


def _with_numbers(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns with numbers for those whose path another column has too."""
    num_columns = Counter(column.path for column in columns)
    numbers: Counter[tuple[str, ...]] = Counter()
    numbered = []
    for column in columns:
        if num_columns[column.path] > 1:
            numbers[column.path] += 1
        numbered.append(replace(column, number=numbers[column.path]))
    return tuple(numbered)


def with_readings(columns: tuple[Column, ...], metadata: FileMetaData) -> tuple[Column, ...]:
    """Return the columns of a file with what its key-values say of their values; the same tuple if
    they say nothing."""
    days, int96, texts = readings_of(metadata)
    if texts:
        # The columns may have their names in a table, but the texts those in the file.
        paths = [column.short_path for column in leaf_columns(metadata.schema)]
        columns = with_readings_of_texts(columns, texts, paths)
    if days == AS_STORED and not any(column.physical == "INT96" for column in columns):
        return columns

    def reading_of(column: Column) -> Reading:
        if column.physical == "INT96":
            return int96
        kind = column.logical.kind if column.logical is not None else ""
        if kind not in ("DATE", "TIMESTAMP"):
            return column.reading
        is_shifted = days.is_shifted and kind == "DATE"
        return days._replace(is_shifted=is_shifted, table_type=column.reading.table_type)

    return tuple(replace(column, reading=reading_of(column)) for column in columns)


def with_readings_of_texts(
    columns: tuple[Column, ...],
    texts: Mapping[tuple[str, ...], Reading],
    paths: Sequence[tuple[str, ...]],
) -> tuple[Column, ...]:
    """Return the columns with the readings of those that are text; `paths` has the path of each
    without scaffolding."""
    changed = []
    for column, path in zip(columns, paths, strict=True):
        if path in texts and column.physical == "BYTE_ARRAY":
            changed.append(replace(column, reading=texts[path]))
        else:
            changed.append(column)
    return tuple(changed)


def leaves_of(schema: Sequence[SchemaElement]) -> list[Leaf]:
    """List the leaves of a schema with their paths in the file. Raises UnreadableError if they do
    not form a tree.

    A group without children, such as an empty struct of Go, has no column chunk.
    """
    root = schema[0]
    leaves, end = _leaves_below(schema, 1, _Group(root, root.num_children or 0))
    if end != len(schema):
        raise UnreadableError(
            f"the schema has {len(schema)} elements, but the child counts of its groups add up "
            f"to {end}"
        )
    return leaves


class _Group(NamedTuple):
    """A group of a schema, with what its leaves inherit."""

    element: SchemaElement
    num_children: int
    path: tuple[str, ...] = ()
    name_positions: tuple[int, ...] = ()
    """Positions in `path` of the parts that are not scaffolding of lists and maps."""
    definition: int = 0
    repetition: int = 0
    doubt: str | None = None
    is_in_variant: bool = False


def _leaves_below(
    schema: Sequence[SchemaElement], pos: int, group: _Group
) -> tuple[list[Leaf], int]:
    """List the leaves of a group whose first child is at `pos`; also return the position after its
    last child."""
    if len(group.path) > MAX_DEPTH:
        raise UnreadableError(f"the schema is nested more than {MAX_DEPTH} deep")
    leaves = []
    for _ in range(group.num_children):
        element = _element_at(schema, pos)
        pos += 1
        path = (*group.path, element.name)
        name_positions = group.name_positions
        if not _is_scaffolding(element, group.element, group.path):
            name_positions = (*name_positions, len(group.path))
        # If none is stated, it is REQUIRED (0 in the enum), as in pyarrow, DuckDB and ClickHouse.
        kind = element.repetition_type or FieldRepetitionType.REQUIRED
        definition = group.definition + (kind != FieldRepetitionType.REQUIRED)
        repetition = group.repetition + (kind == FieldRepetitionType.REPEATED)
        doubt = _doubt_of_element(element, kind) or group.doubt
        num_children = element.num_children or 0
        if num_children < 0:
            raise UnreadableError(
                f"the group states {num_children} children", place=f"column {quote(path)}"
            )
        is_in_variant = group.is_in_variant
        if num_children:
            is_in_variant = is_in_variant or _is_variant(element)
            child = _Group(
                element,
                num_children,
                path,
                name_positions,
                definition,
                repetition,
                doubt,
                is_in_variant,
            )
            below, pos = _leaves_below(schema, pos, child)
            leaves += below
        elif is_leaf(element):
            leaves.append(
                Leaf(element, path, name_positions, definition, repetition, doubt, is_in_variant)
            )
    return leaves, pos


def _element_at(schema: Sequence[SchemaElement], pos: int) -> SchemaElement:
    if pos >= len(schema):
        raise UnreadableError("the groups of the schema state more children than it has elements")
    element = schema[pos]
    if element.name is None:
        raise UnreadableError("a schema element has no name", place=f"schema element {pos}")
    return element


def _doubt_of_element(element: SchemaElement, repetition_type: int) -> str | None:
    """Describe what the format does not have in an element; None if it has all of it."""
    if repetition_type not in FieldRepetitionType._VALUES_TO_NAMES:
        return f"the format has no repetition type {repetition_type}"
    if is_leaf(element) and not 0 <= element.type < len(PHYSICAL_TYPES):
        return f"the format has no physical type {element.type}"
    return None


def _is_variant(element: SchemaElement) -> bool:
    return element.logicalType is not None and element.logicalType.VARIANT is not None


def is_leaf(element: SchemaElement) -> bool:
    """Return whether a schema element below the root is that of a leaf column."""
    return element.type is not None and not element.num_children


def _is_scaffolding(
    element: SchemaElement, parent: SchemaElement, parents: tuple[str, ...]
) -> bool:
    """Return whether a part of a path exists only to encode a list or map: it is the repeated group
    or its only element."""
    if _is_list_or_map(parent) and element.repetition_type == FieldRepetitionType.REPEATED:
        return True
    repeated_in_list = (
        parent.repetition_type == FieldRepetitionType.REPEATED and parent.num_children == 1
    )
    return (
        repeated_in_list
        and element.name in ("element", "item", "array_element", "array")
        and parents[-1:] in (("list",), ("bag",))
    )


def _is_list_or_map(element: SchemaElement) -> bool:
    logical = element.logicalType
    if logical is not None and (logical.LIST is not None or logical.MAP is not None):
        return True
    return element.converted_type in (
        ConvertedType.LIST,
        ConvertedType.MAP,
        ConvertedType.MAP_KEY_VALUE,
    )
