"""A data file of a table: its path, the names that its columns have in the table, the name of its copy, and what files share.

A commit replaces files of a table by copies, so a run that changes a table never writes to its files. A copy has the name
`sbbf-<run>-<attempt>-<name of the first file>`: the run's id tells abandoned copies from those of a run that is still at work, and two
attempts at the same file, as Spark makes them, have different names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sbbf_tool.errors import RefusedError
from sbbf_tool.frozen import Frozen, field, replace
from sbbf_tool.parquet.columns import Column, find_column, leaf_columns
from sbbf_tool.parquet.idl.ttypes import SchemaElement
from sbbf_tool.storage.places import TableFinder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sbbf_tool.file.question import Question
    from sbbf_tool.parquet.column_names import ColumnNames


FileName: TypeAlias = "str | os.PathLike[str]"
"""Path or URL of a file, or a `TableFile`."""

_COPY = r"(?s)sbbf-(?P<run>[0-9a-f]{16})-[0-9a-f]{8}-(?P<name>.+)"
_MOST_BYTES = 255
"""Length of a file's name that all usual file systems allow."""


class Deletes(Protocol):
    """Deletes of a table that apply to a data file. It can be sent to other processes, and is read where it is needed."""

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these rows of the file are deleted. They are counted from 0, ascend, and are not empty.

        Raises UnreadableError, and RefusedError for deletes that are not read; the message says why.
        """


class UnknownDeletes(Frozen):
    """Deletes that are not read."""

    reason: str

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        raise RefusedError(self.reason)


class TableFile(Frozen, os.PathLike[str]):
    """A file of a table. Functions take it in place of a path, and then use and report the names of columns in the table."""

    path: str
    """Path or URL."""
    columns: ColumnNames
    run: str | None = None
    """Id of the run that copies the file to change it; None if the run only reads."""
    folder: str | None = None
    """Folder of the copy; that of the file if None."""
    partition: Mapping[str, str | None] = field(factory=dict)
    """Partition values as text, by the names that users know; None for NULL."""
    table: str | None = None
    """The table as the user named it, for the commands that fix the file."""
    unknown: AbstractSet[str] = frozenset()
    """Partition columns of which the file may have any value."""
    partition_types: Mapping[str, str] = field(factory=dict)
    """Types of the partition values, in the words of the table format."""
    deletes: tuple[Deletes, ...] = ()
    """Deletes that apply to the file."""
    is_live: bool = True
    """Whether the newest version of the table has the file; others may have been deleted."""

    def __fspath__(self) -> str:
        return self.path

    def new_copy_path(self) -> str:
        """Return the path of a new copy; each call returns another one."""
        assert self.run is not None, "the file is only read"
        folder, _, base = self.path.rpartition("/")
        return f"{folder if self.folder is None else self.folder}/{copy_name(self.run, base)}"


def copy_name(run: str, base: str) -> str:
    """Return a new name for a copy, by this run, of the file with the name `base`, which may be a copy itself."""
    match = re.fullmatch(_COPY, base)
    prefix = f"sbbf-{run}-{os.urandom(4).hex()}-"
    first_base = base if match is None else match["name"]
    while len(os.fsencode(first_base)) + len(prefix) > _MOST_BYTES:
        first_base = first_base[1:]
    return prefix + first_base


def run_of_copy(name: str) -> str | None:
    """Return the id of the run that made the copy with this file name; None for other files."""
    match = re.fullmatch(_COPY, name)
    return None if match is None else match["run"]


def new_run() -> str:
    """Return the id of a new run."""
    return os.urandom(8).hex()


class TableFiles(Frozen):
    """What work on the files of a table needs to know of each of them."""

    usual: TableFile
    """A file of which nothing is known but its path, whatever path that is."""
    special: Mapping[str, TableFile] = field(factory=dict)
    """The files of which more is known, or something else, by path."""

    def file(self, path: str) -> TableFile:
        """Return the file with this path."""
        return self.special.get(path) or replace(self.usual, path=path)

    def only(self, paths: Collection[str]) -> TableFiles:
        """Return what is known of these files, to send it to another process."""
        return TableFiles(self.usual, {path: file for path in paths if (file := self.special.get(path)) is not None})


_MOST_FORMS = 8


class Reuse:
    """The columns of the last schemas, the last column that was looked up, and a question for each form in which files store the column.

    A caller that opens many files creates one object and passes it on; results are the same without it. Threads may share it. A copy sent
    to another process is empty.
    """

    def __init__(self) -> None:
        # Each field is assigned as one value, so that a thread never sees half of another thread's update.
        self._leaves: tuple[tuple[Sequence[SchemaElement], ColumnNames | None, tuple[Column, ...]], ...] = ()
        self._column: tuple[Sequence[Column], str, Column] | None = None
        self._questions: dict[tuple[Column, bool | None], Question] = {}
        self._last_questions: dict[tuple[int, bool | None], Question] = {}
        """The last question for a column, by the id of the column, which the question has."""
        self.tables = TableFinder()
        """Whether folders are tables, as far as the caller has determined it."""
        self.renames_in: str | None = None  # the last folder in which a file was renamed to try it

    def __reduce__(self) -> tuple[type[Reuse], tuple[()]]:
        return Reuse, ()

    def leaf_columns(self, schema: Sequence[SchemaElement], names: ColumnNames | None = None) -> tuple[Column, ...]:
        """List the leaves of a schema, with these names in a table; return the identical tuple for an equal schema and names.

        Comparing is cheaper than parsing.
        """
        for schema_before, names_before, columns in self._leaves:
            if schema == schema_before and (names is names_before or names == names_before):
                return columns
        columns = leaf_columns(schema) if names is None else names.leaf_columns(schema)
        self._leaves = (*self._leaves[1 - _MOST_FORMS :], (schema, names, columns))
        return columns

    def find_column(self, columns: Sequence[Column], name: str) -> Column:
        """Call `parquet.columns.find_column`, or return its last result."""
        last = self._column
        if last is None or last[0] is not columns or last[1] != name:
            self._column = last = columns, name, find_column(columns, name)
        return last[2]

    def question_of(self, column: Column, values: Sequence[object], *, is_strict: bool | None = True) -> Question:
        """Call `file.question.question_of`, or return its result for the same object `values` and a column of the same form."""
        from sbbf_tool.file.question import question_of

        last = self._last_questions.get((id(column), is_strict))
        if last is not None and last.values is values and last.column is column and not last.has_buffers:
            return last
        logical = column.logical
        if logical is not None and logical.kind == "INT" and logical.signed and logical.bits == 8 * (column.width or 0):
            logical = None
        # Neither the place in the schema nor whether values are optional changes how they are stored.
        form = replace(column, index=0, short_path=(), logical=logical, max_definition=0, max_repetition=0), is_strict
        question = self._questions.get(form)
        # The value of a buffer may change before the next call.
        if question is None or question.values is not values or question.has_buffers:
            question = question_of(column, values, is_strict=is_strict)
        elif question.column != column:
            question = question.of(column)
        for questions in (self._questions, self._last_questions):
            if len(questions) >= _MOST_FORMS:
                questions.clear()
        self._questions[form] = self._last_questions[id(column), is_strict] = question
        return question
