"""State that the files of one table share, kept from one file to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sbbf_tool.parquet.columns import Column, find_column, leaf_columns
from sbbf_tool.parquet.idl.ttypes import SchemaElement
from sbbf_tool.storage.places import TableFinder

# Commands that change files query no filter, and start faster without these modules.
if TYPE_CHECKING:
    from sbbf_tool.file.question import Question
    from sbbf_tool.parquet.column_names import ColumnNames


class Reuse:
    """The columns of the last schema, the last column that was looked up, and the last question.

    A caller that opens many files creates one object and passes it on; results are the same without it. Threads may share it. A copy sent
    to another process is empty.
    """

    def __init__(self) -> None:
        # Each field is assigned as one value, so that a thread never sees half of another thread's update.
        self._leaves: tuple[Sequence[SchemaElement], ColumnNames | None, tuple[Column, ...]] = (), None, ()
        self._column: tuple[Sequence[Column], str, Column] | None = None
        self._question: Question | None = None
        self.tables = TableFinder()
        """Whether folders are tables, as far as the caller has determined it."""

    def __reduce__(self) -> tuple[type[Reuse], tuple[()]]:
        return Reuse, ()

    def leaf_columns(self, schema: Sequence[SchemaElement], names: ColumnNames | None = None) -> tuple[Column, ...]:
        """List the leaves of a schema, with these names in a table; return the identical tuple for an equal schema and names.

        Comparing is cheaper than parsing.
        """
        schema_before, names_before, columns = self._leaves
        if schema != schema_before or (names is not names_before and names != names_before):
            columns = leaf_columns(schema) if names is None else names.leaf_columns(schema)
            self._leaves = schema, names, columns
        return columns

    def find_column(self, columns: Sequence[Column], name: str) -> Column:
        """Call `parquet.columns.find_column`, or return its last result."""
        last = self._column
        if last is None or last[0] is not columns or last[1] != name:
            self._column = last = columns, name, find_column(columns, name)
        return last[2]

    def question_of(self, column: Column, values: Sequence[object], *, is_strict: bool = True) -> Question:
        """Call `file.question.question_of`, or return its last result."""
        from sbbf_tool.file.question import question_of
        from sbbf_tool.file.texts import Texts

        last = self._question
        if last is None or not _is_same(last, column, values) or is_strict != last.is_strict:
            last = question_of(column, values, is_strict=is_strict)
            # The value of a buffer may change before the next call.
            if isinstance(values, Texts) or not any(isinstance(value, bytearray | memoryview) for value in values):
                self._question = last
        return last


_ONE_FORM_TYPES = {str, bytes, int, type(None)}


def _is_same(question: Question, column: Column, values: Sequence[object]) -> bool:
    from sbbf_tool.file.texts import Texts

    if question.column is not column and question.column != column:
        return False
    # Equal values are not always the same question: 1 and 1.0, or the two occurrences of a time when clocks are set back.
    return question.values is values or (
        question.values == values
        and (
            isinstance(values, Texts)
            or ([*map(type, question.values)] == [*map(type, values)] and _ONE_FORM_TYPES.issuperset(map(type, values)))
        )
    )
