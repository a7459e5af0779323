"""The names of a file's columns in a table: tables rename columns without changing their files.

Table formats identify a column by its field id or by a physical name; the file keeps the name from
when it was written. `ColumnNames` gives the leaf columns of a file the names that the table has
now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen, field, replace
from sbbf_tool.parquet.columns import (
    Column,
    Leaf,
    leaf_columns,
    leaves_of,
    unquote,
    with_readings_of_texts,
)
from sbbf_tool.parquet.idl.ttypes import SchemaElement
from sbbf_tool.parquet.logical import Reading

Path = tuple[str, ...]


class ColumnNames(Frozen):
    """Names of columns in a table. Paths are without the scaffolding of lists and maps, as
    `Column.short_path`.

    If there are any names, they are those of all columns of the table.
    """

    by_id: Mapping[int, Path] = field(factory=dict)
    """Path in the table by field id of the leaf."""
    by_path: Mapping[Path, Path] = field(factory=dict)
    """Path in the table by path in the file. It applies to files without field ids, and to all
    files if `by_id` is empty."""
    unmapped: frozenset[Path] = frozenset()
    """Paths of the columns that have the same names in the files and in the table, if the table
    maps no names."""
    defaults: frozenset[Path] = frozenset()
    """Paths of the columns that may have another value than null in files that do not have them."""
    readings: Mapping[Path, Reading] = field(factory=dict)
    """How engines compare the text of columns, by path in the table; other columns are compared as
    their bytes."""
    types: Mapping[Path, str] = field(factory=dict)
    """Types of columns, by path in the table and in the words of its format."""

    @cached_property
    def paths(self) -> frozenset[Path]:
        """Paths of all columns of the table; empty if the table's columns have the names that they
        have in the files."""
        return frozenset(self.by_id.values()) | frozenset(self.by_path.values())

    @cached_property
    def table_paths(self) -> frozenset[Path]:
        """Paths of all columns of the table; empty if they are not known."""
        return self.paths | self.unmapped

    def path_of(self, name: str) -> Path | None:
        """Return the path of the column of the table that a name means; None for names with the
        scaffolding of lists and maps."""
        with suppress(UsageError):
            path = unquote(name)
            if path in self.table_paths:
                return path
        path = (name,)
        return path if path in self.table_paths else None

    def why_not_null(
        self, path: Path, schema: Sequence[SchemaElement], columns: Sequence[Column]
    ) -> str | None:
        """Return why the rows of a file without this column of the table need not be null in it;
        None if they are."""
        if path in self.defaults:
            return "the table gives the column a value in files that do not have it"
        if self.by_id and not self.by_path and not _has_ids(schema):
            return (
                "the columns of the file have no field ids, and the table has no mapping of names"
            )
        if path in self.unmapped:
            folded = _fold_case(path)
            if any(_fold_case(column.short_path) == folded for column in columns):
                return "a column of the file has this name in other upper and lower case"
        return None

    def leaf_columns(self, schema: Sequence[SchemaElement]) -> tuple[Column, ...]:
        """List the leaves of a file's schema as `parquet.columns.leaf_columns` does, with their
        names in the table.

        A column that the table does not have, such as one that was dropped, keeps its name unless
        the table or another column of the file has that name now; then it gets a suffix. The
        scaffolding of lists and maps stays in the path. Raises UnreadableError.
        """
        columns = self._named_columns(schema)
        if self.readings:
            paths = [column.short_path for column in columns]
            columns = with_readings_of_texts(columns, self.readings, paths)
        if not self.types:
            return columns
        return tuple(map(self._with_wider_type, columns))

    def _with_wider_type(self, column: Column) -> Column:
        from sbbf_tool.parquet.table_types import wider_column

        type_name = self.types.get(column.short_path)
        if type_name is None or wider_column(column, type_name) is None:
            return column
        return replace(column, reading=column.reading._replace(table_type=type_name))

    def _named_columns(self, schema: Sequence[SchemaElement]) -> tuple[Column, ...]:
        if not self.paths:
            return leaf_columns(schema)
        leaves = leaves_of(schema)
        has_ids = bool(self.by_id) and _has_ids(schema)
        in_use = set(self._prefixes)
        columns = []
        for index, leaf in enumerate(leaves):
            if has_ids:
                path = self.by_id.get(leaf.element.field_id)
            else:
                path = self.by_path.get(leaf.short_path)
            if path is None:
                path = self._name_dropped(leaf.short_path, in_use)
                in_use.add(path)
            columns.append(leaf.column(index, _full_path(leaf, path), path))
        return tuple(columns)

    @cached_property
    def _prefixes(self) -> frozenset[Path]:
        """Paths of the columns of the table and of their groups."""
        prefixes = set(self.paths)
        for path in self.paths:
            prefixes.update(_groups_of(path))
        return frozenset(prefixes)

    def _name_dropped(self, path: Path, in_use: Collection[Path]) -> Path:
        """Return a path that is not in use for a leaf that the table does not have."""
        # A name below a leaf of the table differs in its first part: in the others, it would still
        # be a name below that leaf.
        changed_part = 0 if self._is_below_leaf(path) else len(path) - 1
        parts = list(path)
        for suffix in _suffixes():
            parts[changed_part] = f"{path[changed_part]}{suffix}"
            candidate = tuple(parts)
            if candidate not in in_use and not self._is_below_leaf(candidate):
                return candidate
        raise AssertionError("the numbers do not end")

    def _is_below_leaf(self, path: Path) -> bool:
        """Return whether a column of the table would be a group around this path."""
        return any(group in self.paths for group in _groups_of(path))


def _groups_of(path: Path) -> Iterator[Path]:
    """Yield the paths of the groups around a column, outermost first."""
    for end in range(1, len(path)):
        yield path[:end]


def _suffixes() -> Iterator[str]:
    """Yield the ends of the names that a dropped column may get, in the order of preference."""
    yield ""
    yield " (dropped)"
    for number in count(2):
        yield f" (dropped {number})"


def _fold_case(path: Path) -> list[str]:
    return [part.casefold() for part in path]


def _has_ids(schema: Sequence[SchemaElement]) -> bool:
    return any(element.field_id is not None for element in schema)


def _full_path(leaf: Leaf, short: Path) -> Path:
    """Return the path of a leaf in which the parts that are not scaffolding have the names of
    `short`."""
    parts = list(leaf.path)
    names = list(short)
    for at in leaf.name_positions:
        if not names:
            # The table counts this part as scaffolding.
            break
        parts[at] = names.pop(0)
    return (*parts, *names)
