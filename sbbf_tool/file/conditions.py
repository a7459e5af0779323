"""The values of which a row must have one in a column, and what a file tells of them without
reading its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import NoColumnError, UsageError
from sbbf_tool.file.pruning import RowGroupAnswers, narrow
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.frozen import Frozen, field
from sbbf_tool.parquet.columns import quote
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.reports.rows import NamedColumn

if TYPE_CHECKING:
    from sbbf_tool.file.missing_column import MissingColumn
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet.columns import Column

    Compared = bool | Callable[[object], bool]
    """All values, none, or those that a function accepts."""


class ColumnCondition(Frozen):
    """The values of which a row must have one in a column, and what is known of them in a file."""

    values: Sequence[object]
    named: NamedColumn
    about: Question | MissingColumn
    others: Sequence[object] = ()
    """The values that are not in the question, because they cannot be compared with the column."""
    answers: dict[int, RowGroupAnswers] = field(factory=dict)
    """What is known of each row group that may have such rows."""

    def narrow(
        self, file: ParquetFile, row_groups: Sequence[int], unreadable: list[str], **options: Any
    ) -> Sequence[int]:
        """Return the row groups of these that may have such rows."""
        if not isinstance(self.about, Question):
            return (
                row_groups
                if any(self.about.answer(value) != ABSENT for value in self.values)
                else ()
            )
        answers = narrow(file, self.about, row_groups, unreadable, **options)
        self.answers.clear()
        self.answers.update(
            {each.row_group: each for each in answers if self.others or not each.is_absent}
        )
        return tuple(self.answers)


def find_condition(
    file: ParquetFile,
    name: str,
    values: object,
    compares: Callable[[Column], Compared] | None = None,
) -> ColumnCondition:
    """Return the condition that the column with this name has one of the values, or one of those
    that `compares` accepts."""
    assert isinstance(values, Sequence), (
        "the values of a verb are converted once: files share the question about them"
    )
    strict, reuse = file.run.strict, file.run.reuse or Reuse()
    try:
        with file.locate_errors():
            column = reuse.find_column(file.footer.columns, name)
            named = NamedColumn(name, column.type_name)
            accepts = True if compares is None else compares(column)
            known = (
                values
                if accepts is True
                else [value for value in values if _accept(accepts, value)]
            )
            try:
                question = reuse.question_of(
                    column, known, is_strict=strict or compares is not None
                )
            except UsageError:
                if compares is None:
                    raise
                # The column can hold none of them but null.
                question, accepts = (
                    reuse.question_of(column, [value for value in values if value is None]),
                    False,
                )
    except NoColumnError as error:
        from sbbf_tool.file.missing_column import find_missing

        missing = find_missing(file, file.run.path, name, strict=strict, tables=reuse.tables)
        if missing is None:
            raise
        return ColumnCondition(values, missing.name_column(error), missing)
    return ColumnCondition(
        values,
        named,
        question,
        () if accepts is True else [value for value in values if not _accept(accepts, value)],
    )


def _accept(accepts: Compared, value: object) -> bool:
    return value is None or (accepts if isinstance(accepts, bool) else accepts(value))


def list_conditions(file: ParquetFile, values: Any) -> Iterator[ColumnCondition]:
    """Yield the condition for each column of the file, and for each other one of its table or of
    its folder."""
    from sbbf_tool.file.missing_column import find_missing
    from sbbf_tool.file.partitions import partition_values

    reuse, path, columns = file.run.reuse or Reuse(), file.run.path, file.footer.columns
    for column in columns:
        question = reuse.question_of(column, values, is_strict=None)
        yield ColumnCondition(values, NamedColumn(column.name, column.type_name), question)
    paths = (
        path.columns.table_paths
        if isinstance(path, TableFile)
        else {(key,) for key in partition_values(file.name)}
    )
    for name in sorted(map(quote, paths - {column.short_path for column in columns})):
        fitting, missing = [], find_missing(file, path, name, strict=False, tables=reuse.tables)
        assert missing is not None, "only a table without a schema has no answer"
        for value in values:
            with suppress(UsageError):
                missing.answer(value)
                fitting.append(value)
        yield ColumnCondition(fitting, NamedColumn(name, None), missing)
