"""State that the files of one table share, kept from one file to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from sbbf_tool.frozen import replace
from sbbf_tool.parquet.columns import Column, find_column, leaf_columns
from sbbf_tool.parquet.idl.ttypes import SchemaElement
from sbbf_tool.storage.places import TableFinder

# Commands that change files query no filter, and start faster without these modules.
if TYPE_CHECKING:
    from sbbf_tool.file.question import Question
    from sbbf_tool.parquet.column_names import ColumnNames

_MOST_FORMS = 8
_Leaves: TypeAlias = "tuple[Sequence[SchemaElement], ColumnNames | None, tuple[Column, ...]]"
"""A schema, the names of its columns in a table, and its leaves."""


class Reuse:
    """The columns of the last schemas, the last column that was looked up, and a question for each
    form in which files store the column.

    A caller that opens many files creates one object and passes it on; results are the same without
    it. Threads may share it. A copy sent to another process is empty.
    """

    def __init__(self) -> None:
        # Each field is assigned as one value, so that a thread never sees half of another thread's
        # update.
        self._leaves: tuple[_Leaves, ...] = ()
        self._column: tuple[Sequence[Column], str, Column] | None = None
        self._questions: dict[tuple[Column, bool | None], Question] = {}
        self._last_questions: dict[tuple[int, bool | None], Question] = {}
        """The last question for a column, by the id of the column, which the question has."""
        self.tables = TableFinder()
        """Whether folders are tables, as far as the caller has determined it."""
        self.renames_in: str | None = None  # the last folder in which a file was renamed to try it

    def __reduce__(self) -> tuple[type[Reuse], tuple[()]]:
        return Reuse, ()

    def leaf_columns(
        self, schema: Sequence[SchemaElement], names: ColumnNames | None = None
    ) -> tuple[Column, ...]:
        """List the leaves of a schema, with these names in a table; return the identical tuple for
        an equal schema and names.

        Comparing is cheaper than parsing.
        """
        for schema_before, names_before, columns in self._leaves:
            if schema == schema_before and (names is names_before or names == names_before):
                return columns
        columns = leaf_columns(schema) if names is None else names.leaf_columns(schema)
        last_leaves = self._leaves[1 - _MOST_FORMS :]
        self._leaves = (*last_leaves, (schema, names, columns))
        return columns

    def find_column(self, columns: Sequence[Column], name: str) -> Column:
        """Call `parquet.columns.find_column`, or return its last result."""
        last = self._column
        if last is None or last[0] is not columns or last[1] != name:
            last = (columns, name, find_column(columns, name))
            self._column = last
        return last[2]

    def question_of(
        self, column: Column, values: Sequence[object], *, is_strict: bool | None = True
    ) -> Question:
        """Call `file.question.question_of`, or return its result for the same object `values` and a
        column of the same form."""
        from sbbf_tool.file.question import question_of

        last = self._last_questions.get((id(column), is_strict))
        if last is not None and last.column is column and last.is_about(values):
            return last
        form = (_form_of(column), is_strict)
        question = self._questions.get(form)
        if question is None or not question.is_about(values):
            question = question_of(column, values, is_strict=is_strict)
        elif question.column != column:
            question = question.of(column)
        for questions in (self._questions, self._last_questions):
            if len(questions) >= _MOST_FORMS:
                questions.clear()
        self._questions[form] = question
        self._last_questions[id(column), is_strict] = question
        return question


def _form_of(column: Column) -> Column:
    """Return the column without what does not change how values are stored: its place in the
    schema, whether values are optional, and a logical type that says no more than the physical
    one."""
    logical = column.logical
    if logical is not None and logical.kind == "INT" and logical.signed:
        stored_bits = 8 * (column.width or 0)
        if logical.bits == stored_bits:
            logical = None
    return replace(
        column, index=0, short_path=(), logical=logical, max_definition=0, max_repetition=0
    )
