"""The files of a run: names of files and folders, globs and URLs, or a table, and a predicate on
their partitions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from sbbf_tool.arguments import as_iterable
from sbbf_tool.errors import (
    ErrorPlace,
    MissingError,
    NoColumnError,
    RefusedError,
    SbbfError,
    UsageError,
)
from sbbf_tool.extension import (
    absolute_table_name,
    is_index,
    is_table_name,
    load,
    named,
    table_kinds,
)
from sbbf_tool.frozen import replace
from sbbf_tool.reports.rows import INLINED, OTHER_TABLE, ListedFile
from sbbf_tool.storage.places import LISTING_FORMATS, absolute, find_table_format, is_url

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.partitions import PathPredicate
    from sbbf_tool.file.table_file import FileName, TableFiles
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.running.table import LiveFile, Table
    from sbbf_tool.verbs.verb import Needs

_TWICE = "the table lists the file more than once"
_MOST_FILES_TO_OPEN = 100
"""Number of files in which a name that the table's schema does not have is looked for."""


class Index(Protocol):
    """A path that stands for others, and knows which of their files may hold a value; an extension
    opens it by the end of its name."""

    name: str
    paths: tuple[str, ...]
    """Names of files, folders, globs and URLs, or the table."""
    excluded: int
    """Number of files that the last `narrow` has left out."""
    lists: bool
    """Whether `narrow` reads the listing, so that no new file is missed."""

    def narrow(
        self, files: Iterator[ListedFile], needs: Needs, table: Table | None
    ) -> Iterator[ListedFile]:
        """Leave out those of the listed files that certainly hold none of the values. The first one
        stays if no other does; if the column has a type in the lake that cannot hold one of the
        values, so does one of each type: whether a value is one of the column is for all types to
        say."""


def find_index(name: str) -> Index | None:
    """Open the index that a name means; None for any other name. Raises UnreadableError for a
    damaged one."""
    if not is_index(name):
        return None
    ending = os.path.splitext(name.rstrip("/"))[1]
    index: Index = load(named("indexes")[ending])(name)
    return index


def is_table(name: str) -> bool:
    """Return whether a name means a table, without reading it."""
    return not os.path.isfile(name) and any(kind.is_table(name) for kind in table_kinds())


def find_table(name: str, table_format: str | None = None) -> Table | None:
    """Open the table that a name means; None if the name means files. A file of a table is not the
    table. With a `table_format`, such as `delta`, the table of this format in the folder.

    Raises UnreadableError for a damaged table, RefusedError for one that cannot be read, also
    because no extension reads it, and UsageError if a package for the format is missing, the name
    of a catalog's table is incomplete, or the name means no table of the format.
    """
    is_file = os.path.isfile(name)
    kinds = [] if is_file else table_kinds()
    for kind in kinds:
        table: Table | None = kind.find_table(name, table_format)
        if table is not None:
            return table
    found = None if is_file or kinds else find_table_format(name)
    if found in LISTING_FORMATS:
        hint = "install one, or take the files below it as files"
        raise RefusedError(
            f"no extension is installed that reads tables of {found}", file=name, hint=hint
        )
    if table_format is not None:
        raise UsageError(f"there is no table of the format {table_format}", file=name)
    return None


def full_name_of(name: str) -> str:
    """Return the name of files or of a table so that it means the same in every working folder."""
    if is_table_name(name):
        return absolute_table_name(name)
    return absolute(name)


class ListedNames:
    """The names in a list, such as a file of a line for each: none means an index, or the only file
    of a run. They are read each time. Raises UsageError at the name of a table, unless it means the
    files below it (`as_files`)."""

    def __init__(self, read: Callable[[], Iterator[str]], *, as_files: bool = True) -> None:
        self._read = read
        self._as_files = as_files

    def __iter__(self) -> Iterator[str]:
        names = self._read()
        return names if self._as_files else map(_ensure_no_table, names)


Names: TypeAlias = str | os.PathLike[str] | ListedNames | Iterable[str | os.PathLike[str]]


def as_paths(names: Names) -> Iterable[str]:
    """Return names as a tuple; an iterator and the names of a list are read as files are needed."""
    if isinstance(names, ListedNames):
        return names
    items = as_iterable(names)
    paths = map(os.fsdecode, items)
    return paths if isinstance(items, Iterator) else tuple(paths)


def _ensure_no_table(name: str) -> str:
    if is_table(name):
        hint = "or take the files below it as files"
        raise UsageError(f"{name} is a table: give it as the only path, in no list", hint=hint)
    return name


class _TableContent(NamedTuple):
    """The files of a table, which are read once."""

    live_files: tuple[LiveFile, ...]
    """Those in the selected partitions."""
    listed: AbstractSet[str]
    """The paths of all files of all versions, comparable; none if only one version is selected."""


class Selection:
    """Files by name, folder, glob or URL, or the live files of a table."""

    def __init__(
        self,
        names: Names,
        where: PathPredicate | None = None,
        file: str | None = None,
        table: Table | None = None,
        run: str | None = None,
        *,
        all_versions: bool = False,
        index: Index | None = None,
    ) -> None:
        """Take one or more names; an iterator of names is read once, as files are needed. `where`
        selects partitions.

        `file` is the only file that the names mean, if known: then nothing is listed. `table` is
        the table that the only name means, and `run` the id of a run that changes it.
        `all_versions` selects the files of all its retained versions, with the rows that any of
        them has deleted. `index` is that of the names.
        """
        self.file = file
        self.names = as_paths(names)
        self.where = where
        self.table = table
        self.run = run
        self.all_versions = all_versions
        if all_versions and (table is None or run is not None):
            raise UsageError(
                "all versions are those of a table that is only read",
                hint="give its root as the only path, or search its newest version",
            )
        self.listing: tuple[ListedFile, ...] | None = None
        """The files, if they have been listed before."""
        self.index = index
        self._needs: Needs | None = None

    @property
    def is_listed_here(self) -> bool:
        """Whether this process must list the files, and not an executor."""
        return any(known is not None for known in (self.table, self.listing, self.index))

    @property
    def excluded(self) -> int:
        """Number of files that the index has left out."""
        return 0 if self.index is None else self.index.excluded

    def look_for(self, needs: Needs) -> None:
        """List only the files that may hold the values that a verb looks for, as far as an index
        knows."""
        self._needs = needs if self.index is not None and needs.excludes else None

    def only(self, files: Iterable[ListedFile]) -> Selection:
        """Return the same selection with these of its files, which are not listed again."""
        selection = copy(self)
        selection.names = ()
        selection.file = None
        selection.index = None
        selection.listing = tuple(files)
        return selection

    def files(self, *, links: bool = False) -> Iterator[ListedFile]:
        """List the files on this machine; see `discover`. A run that changes a table gets only the
        files that a commit can replace."""
        files = self._list(links)
        if self.index is None or self._needs is None:
            return files
        return self.index.narrow(files, self._needs, self.table)

    def _list(self, links: bool) -> Iterator[ListedFile]:
        from sbbf_tool.running.discover import discover, list_file

        if self.listing is not None:
            return iter(self.listing)
        if self.table is not None:
            is_change = self.run is not None
            files = (live for live in self.live_files() if not (is_change and live.unchangeable))
            return (ListedFile(live.path, live.bytes, skipped=live.skipped) for live in files)
        if self.file is not None:
            return iter((list_file(self.file),))
        return discover(self.names, self.where, links=links)

    def file_names(self) -> Iterator[FileName]:
        """Yield the name by which each file is opened."""
        if self.table is None:
            for file in self.files():
                if file.skipped is None:
                    yield file.path
            return
        table_files = self.table_files()
        for live in self.live_files():
            if live.skipped is None:
                yield table_files.file(live.path)

    def other_rows(self, needs: Needs) -> Iterator[ListedFile]:
        """Yield the table itself, as skipped, if rows that are in none of its files may hold a
        value that a verb looks for."""
        table = self.table
        if table is None or self.listing is not None:
            return
        values = None if needs.any_values else needs.values
        if values is None and not needs.any_values:
            return
        column = next(iter(needs.columns), None)
        if table.may_be_other:
            yield ListedFile(table.name, skipped=OTHER_TABLE)
        if table.query_other_rows(column, values, all_versions=self.all_versions):
            yield ListedFile(table.name, skipped=INLINED)

    def count_unlisted(self) -> int:
        """Return how many Parquet files below the table's folder no version lists, if all are
        selected. Raises UnreadableError."""
        from sbbf_tool.running.discover import discover

        assert self.table is not None, "the selection is no table"
        listed = self._table_content.listed
        folder = self.table.location
        paths = set()
        try:
            with self.table.access.through():
                for file in discover((folder,)):
                    # A folder that does not exist is listed as a file.
                    if file.skipped is None and file.path != folder:
                        paths.add(_comparable(file.path))
        except MissingError:
            return 0
        return len(paths - listed)

    def live_files(self) -> tuple[LiveFile, ...]:
        """Return the table's live files, or those of all versions, in the selected partitions.

        A file that the table lists twice cannot be replaced: a copy would have to take both places.
        Raises UsageError if the table lacks a column of the predicate.
        """
        return self._table_content.live_files

    @cached_property
    def _table_content(self) -> _TableContent:
        assert self.table is not None, "the selection is no table"
        listed: AbstractSet[str] = frozenset()
        if self.all_versions:
            files, others = self.table.all_files()
            by_path: dict[str, LiveFile] = {}
            for file in files:
                by_path.setdefault(file.path, file)
            live_files = tuple(by_path.values())
            listed = set(map(_comparable, (*by_path, *others)))
        else:
            live_files = tuple(self.table.live_files())
        counts = Counter(live.path for live in live_files)
        selected = [live for live in live_files if self._is_selected(live, self.table)]
        marked = tuple(live if counts[live.path] == 1 else _twice(live) for live in selected)
        return _TableContent(marked, listed)

    def _is_selected(self, live: LiveFile, table: Table) -> bool:
        """Return whether a file is in the selected partitions."""
        if self.where is None:
            return True
        return self.where.accepts_values(live.partition, live.unknown, table.partition_types)

    def ensure_stored(self, names: Iterable[str]) -> None:
        """Raise UsageError if the table has the values of a column with one of these names only as
        those of partitions."""
        table = self.table
        if table is None:
            return
        for name in names:
            if table.columns.path_of(name) in table.partition_columns:
                message = (
                    f"{name} is a partition column: its values are in the table's "
                    "metadata, and no filter is needed"
                )
                raise UsageError(message, file=table.name)

    def ensure_columns(self, names: Iterable[str], context: Context) -> None:
        """Raise UsageError if the table does not have a column with one of these names.

        Its schema has the names that users know. Names with the scaffolding of lists and maps, and
        those of dropped columns, are looked for in files.
        """
        from sbbf_tool.file.parquet_file import ParquetFile
        from sbbf_tool.file.table_file import TableFile

        assert self.table is not None, "the selection is no table"
        columns = self.table.columns
        remaining = [name for name in names if columns.path_of(name) is None]
        if not remaining:
            return
        paths = set(columns.table_paths)
        for live in self.live_files()[:_MOST_FILES_TO_OPEN]:
            try:
                name = TableFile(live.path, live.columns or columns)
                with self.table.access.through(), ParquetFile.open(name, context) as file:
                    leaves = file.footer.columns
                    remaining = [name for name in remaining if not _has_column(leaves, name)]
                    if not columns.table_paths:
                        paths.update(column.short_path for column in leaves)
            except UsageError:
                raise
            except SbbfError:
                # The run reports a file that cannot be read.
                continue
            if not remaining:
                return
        if paths:
            with ErrorPlace(self.table.name):
                raise _no_column_of_table(remaining[0], sorted(paths))

    def table_files(self) -> TableFiles:
        """Return what work on the table's files needs to know of each."""
        from sbbf_tool.file.table_file import TableFile, TableFiles, copy_name

        assert self.table is not None, "the selection is no table"
        usual = TableFile(
            "",
            self.table.columns,
            self.run,
            table=self.table.name,
            partition_types=self.table.partition_types,
        )
        special = {}
        for live in self.live_files():
            folder, _, base = live.path.rpartition("/")
            folder_of_copy = folder
            if self.run is not None and not live.unchangeable:
                copy = self.table.copy_path(live, copy_name(self.run, base))
                folder_of_copy = copy.rpartition("/")[0]
            deletes = () if self.all_versions else live.deletes
            has_facts = live.columns is not None or live.partition or live.unknown or deletes
            if not has_facts and live.is_live and folder_of_copy == folder:
                continue
            special[live.path] = replace(
                usual,
                path=live.path,
                columns=live.columns or usual.columns,
                folder=None if folder_of_copy == folder else folder_of_copy,
                partition=live.partition,
                unknown=live.unknown,
                deletes=deletes,
                is_live=live.is_live,
            )
        return TableFiles(usual, special, self.table.access)


def _twice(file: LiveFile) -> LiveFile:
    """Return a file that the table lists twice: rows that are deleted in one place may be live in
    the other."""
    from sbbf_tool.file.table_file import UnknownDeletes

    deletes = (UnknownDeletes(_TWICE),) if file.deletes else ()
    return file._replace(unchangeable=file.unchangeable or _TWICE, deletes=deletes)


def _comparable(path: str) -> str:
    from sbbf_tool.running.discover import path_of

    return path_of(path) if is_url(path) else os.path.normpath(path)


def _no_column_of_table(name: str, paths: Sequence[Sequence[str]]) -> UsageError:
    """Return the error for a name that is no column of a table with these leaves."""
    from sbbf_tool.parquet.columns import ensure_leaf, no_column, quote, unquote

    path = unquote(name)
    leaves = [quote(leaf) for leaf in paths if leaf[: len(path)] == path]
    try:
        ensure_leaf(name, leaves)
    except UsageError as error:
        return error
    return no_column(name, list(map(quote, paths)), "table")


def _has_column(columns: Sequence[Column], name: str) -> bool:
    from sbbf_tool.parquet.columns import find_column

    try:
        find_column(columns, name)
    except NoColumnError:
        return False
    return True
