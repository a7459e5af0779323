"""The names of a file's columns in a table: tables rename columns without changing their files.

Table formats identify a column by its field id or by a physical name; the file keeps the name from
when it was written. `ColumnNames` gives the leaf columns of a file the names that the table has
now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        try:
            path = unquote(name)
        except UsageError:
            path = (name,)
        return next(
            (candidate for candidate in (path, (name,)) if candidate in self.table_paths), None
        )

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
        folded = [part.casefold() for part in path]
        if any(
            [part.casefold() for part in column.short_path] == folded
            for column in columns
            if path in self.unmapped
        ):
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
        return tuple(map(self._with_wider_type, columns)) if self.types else columns

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
        paths = [
            self.by_id.get(leaf.element.field_id) if has_ids else self.by_path.get(leaf.short_path)
            for leaf in leaves
        ]
        in_use = set(self._prefixes)
        columns = []
        for index, (leaf, path) in enumerate(zip(leaves, paths, strict=True)):
            short = self._name_dropped(leaf.short_path, in_use) if path is None else path
            columns.append(leaf.column(index, _full_path(leaf, short), short))
        return tuple(columns)

    @cached_property
    def _prefixes(self) -> frozenset[Path]:
        """Paths of the columns of the table and of their groups."""
        return frozenset(path[:end] for path in self.paths for end in range(1, len(path) + 1))

    def _name_dropped(self, path: Path, in_use: set[Path]) -> Path:
        """Return a path for a leaf that the table does not have, and add it to the paths in use."""
        for number in count():
            suffix = ("", " (dropped)")[number] if number < 2 else f" (dropped {number})"
            # A name below a leaf of the table differs in its first part: in the others, it would
            # still be a name below that leaf.
            is_below_leaf = any(path[:end] in self.paths for end in range(1, len(path)))
            candidate = (
                (f"{path[0]}{suffix}", *path[1:])
                if is_below_leaf
                else (*path[:-1], f"{path[-1]}{suffix}")
            )
            if candidate not in in_use and not any(
                candidate[:end] in self.paths for end in range(1, len(candidate))
            ):
                in_use.add(candidate)
                return candidate
        raise AssertionError("the numbers do not end")


def _has_ids(schema: Sequence[SchemaElement]) -> bool:
    return any(element.field_id is not None for element in schema)


def _full_path(leaf: Leaf, short: Path) -> Path:
    """Return the path of a leaf in which the parts that are not scaffolding have the names of
    `short`."""
    parts, names = list(leaf.path), list(short)
    for at in leaf.name_positions:
        if not names:
            # The table counts this part as scaffolding.
            break
        parts[at] = names.pop(0)
    return (*parts, *names)
