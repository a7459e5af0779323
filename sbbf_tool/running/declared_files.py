"""The files of a run that applies declared filters: those of the PATHs, or of the declarations
themselves, for which there is one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import NamedTuple

from sbbf_tool.arguments import as_iterable
from sbbf_tool.errors import MissingError, UsageError
from sbbf_tool.extension import is_table_name
from sbbf_tool.file.partitions import PathPredicate, Types, Values
from sbbf_tool.frozen import Frozen, field
from sbbf_tool.rules.filter_spec import FilterSpec, declare_for_table, specs_for
from sbbf_tool.running.discover import folders_of
from sbbf_tool.running.selection import Selection, find_table
from sbbf_tool.running.table import Table
from sbbf_tool.storage.globs import literal_base
from sbbf_tool.storage.listing import WILDCARD, has_files
from sbbf_tool.storage.places import is_url


class DeclaredPaths(Frozen):
    """The condition that a file is declared, is in the newest version of its table, and that
    `where` accepts it."""

    where: PathPredicate | None
    declarations: tuple[FilterSpec, ...] | None = None
    """None for files that need not be declared."""
    live: Mapping[str, AbstractSet[str]] = field(factory=dict)
    """Absolute paths of the live files, by the folder of each of some tables, which ends with a
    slash."""

    @property
    def is_choice(self) -> bool:
        return self.where is not None and self.where.is_choice

    def accepts(self, path: str) -> bool:
        absolute = path if is_url(path) or not self.live else os.path.abspath(path)
        if any(
            absolute.startswith(folder) and absolute not in paths
            for folder, paths in self.live.items()
        ):
            return False
        # A path without a partition column that a declaration selects by: the work on the file
        # reports it.
        with suppress(UsageError):
            if self.declarations is not None and not specs_for(self.declarations, path):
                return False
        return self.where is None or self.where.accepts(path)

    def accepts_values(
        self, values: Values, unknown: AbstractSet[str] = frozenset(), types: Types | None = None
    ) -> bool:
        # Each file of a table compares itself with the partitions of the declarations.
        return self.where is None or self.where.accepts_values(values, unknown, types or {})


def leave_out_old_files(selection: Selection, declarations: Iterable[FilterSpec]) -> Selection:
    """Return the selection without the files that no table has any more, of the declared tables
    below its folders.

    It is the same object if there is no such table. Raises the errors of `find_table`.
    """
    if selection.table is not None or not isinstance(selection.names, tuple):
        return selection
    tables = _tables_below(selection.names, declarations)
    if not tables:
        return selection
    live = {f"{table.location}/": {file.path for file in table.live_files()} for table in tables}
    where = DeclaredPaths(selection.where, live=live)
    return Selection(selection.names, where, selection.file, index=selection.index)


def _tables_below(names: Iterable[str], declarations: Iterable[FilterSpec]) -> list[Table]:
    """Return the tables that are declared by their own names, in the folders and globs of a run."""
    bases = folders_of(names)
    declared: dict[str, None] = {}
    for declaration in declarations:
        for path in declaration.paths:
            declared[_name_of(declaration, path)] = None
    tables = []
    for name in declared:
        if is_table_name(name):
            continue
        path = name if is_url(name) else os.path.abspath(name)
        place = path.rstrip("/") + "/"
        if any(place.startswith(base) and place != base for base in bases):
            tables.append(find_table(name))
    return [table for table in tables if table is not None]


class DeclaredFiles(NamedTuple):
    """Files for which there are declarations: those of a table, or any others."""

    selection: Selection
    declarations: tuple[FilterSpec, ...]


def select_declared_files(
    declarations: Iterable[FilterSpec],
    names: Iterable[str],
    where: PathPredicate | None,
    table_format: str | None,
    *,
    as_files: bool,
) -> list[DeclaredFiles]:
    """Select the declared files among those that `names` mean; all declared files if there are no
    names.

    Files come first, then each table. With `as_files`, the root of a table means files. Raises
    UsageError if there are no declarations, and the errors of `find_table`.
    """
    filters = tuple(declarations)
    if not filters:
        raise UsageError(
            "no filters are declared",
            hint="write [[filters]] in sbbf.toml, or [[tool.sbbf.filters]] in pyproject.toml",
        )
    requested_names = tuple(map(os.fsdecode, as_iterable(names)))
    is_complete = not requested_names
    # As for other commands, a table is the only PATH.
    may_be_table = is_complete or (len(requested_names) == 1 and not as_files)
    paths = []
    tables = []
    for name in requested_names or _declared_names(filters):
        table = find_table(name, table_format) if may_be_table else None
        if table is not None:
            tables += _declare_table(table, name, filters, where)
        elif not is_complete:
            _ensure_there(name)
            paths.append(name)
        elif not os.path.isdir(name) or has_files(name):
            paths.append(name)
    # A table below a PATH is changed by its own commit.
    inner = [] if is_complete or as_files else _tables_below(paths, filters)
    for table in inner:
        tables += _declare_table(table, table.name, filters, where)
    of_files = DeclaredPaths(where, filters, {f"{table.location}/": frozenset() for table in inner})
    selections = [DeclaredFiles(Selection(paths, of_files), filters)] if paths else []
    if selections or tables:
        return selections + tables
    if is_complete:
        raise no_declared_file()
    raise no_declared_file("no filters are declared for these names")


def _declare_table(
    table: Table, name: str, filters: Iterable[FilterSpec], where: PathPredicate | None
) -> list[DeclaredFiles]:
    """Return the files of the table with this name; none if no declaration is for it."""
    of_table = declare_for_table(filters, name)
    if not of_table:
        return []
    selection = Selection(name, DeclaredPaths(where, of_table), table=table)
    return [DeclaredFiles(selection, of_table)]


def _ensure_there(name: str) -> None:
    """Raise MissingError for a local path that does not exist, and is no glob."""
    if is_url(name) or re.search(WILDCARD, name) or os.path.lexists(name):
        return
    raise MissingError("no such file", file=name)


def no_declared_file(reason: str = "no declared file is there") -> UsageError:
    """Return the error of a run without files."""
    return UsageError(reason, hint="the paths of a declaration name files, folders or tables")


def paths_of_files(parts: Iterable[DeclaredFiles]) -> Iterator[tuple[str, str]]:
    """Yield the declared paths that should match files, because they name no table, each with the
    folder that it starts from."""
    parts = tuple(parts)
    tables = {part.selection.table.name for part in parts if part.selection.table is not None}
    of_files = [part.declarations for part in parts if part.selection.table is None]
    for declaration in of_files[0] if of_files else ():
        for path in declaration.paths:
            if declaration.where is None and _name_of(declaration, path) not in tables:
                yield path, declaration.folder


def _declared_names(declarations: Iterable[FilterSpec]) -> list[str]:
    """Return the names of files, folders and tables that the declarations are about."""
    names: dict[str, None] = {}
    for declaration in declarations:
        if not declaration.paths:
            raise UsageError("a declaration is for every file", hint="name the files")
        for path in declaration.paths:
            names[_name_of(declaration, path)] = None
    return list(names)


def _name_of(declaration: FilterSpec, path: str) -> str:
    """Return the name by which everything that a declared path matches is found, relative to the
    working folder if it is below."""
    if is_table_name(path) or (is_url(path) and not re.search(WILDCARD, path)):
        return path
    base = literal_base(path, declaration.folder)
    relative = base if is_url(base) else os.path.relpath(base)
    # A relative path still names no table in a catalog.
    return base if relative.startswith("..") or is_table_name(relative) else relative
