"""The values of which a row must have one in a column, and what a file tells of them without
reading its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from sbbf_tool.errors import NoColumnError, UsageError
from sbbf_tool.file.pruning import RowGroupAnswers, narrow
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.columns import Column, quote
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.reports.probe import UnfitValue
from sbbf_tool.reports.rows import NamedColumn

if TYPE_CHECKING:
    from sbbf_tool.file.missing_column import MissingColumn
    from sbbf_tool.file.parquet_file import ParquetFile

    Compared = bool | Callable[[object], bool]
    """All values, none, or those that a function accepts."""


class ColumnCondition(Frozen):
    """The values of which a row must have one in a column, and what is known of them in a file."""

    values: Sequence[object]
    named: NamedColumn
    about: Question | MissingColumn
    others: Sequence[object] = ()
    """The values that are not in the question, because they cannot be compared with the column."""

    def narrow(
        self, file: ParquetFile, row_groups: Sequence[int], **options: Any
    ) -> NarrowedCondition:
        """Find the row groups of these that may have such rows."""
        if not isinstance(self.about, Question):
            if all(self.about.answer(value) == ABSENT for value in self.values):
                return NarrowedCondition(self, ())
            return NarrowedCondition(self, row_groups)
        answers = {}
        unreadable = []
        for each in narrow(file, self.about, row_groups, **options):
            unreadable += each.unreadable
            if self.others or not each.is_absent:
                answers[each.row_group] = each
        return NarrowedCondition(self, tuple(answers), answers, unreadable)


class NarrowedCondition(NamedTuple):
    """A condition, and what is known of it in a file."""

    condition: ColumnCondition
    row_groups: Sequence[int]
    """The row groups that may have such rows."""
    answers: Mapping[int, RowGroupAnswers] = MappingProxyType({})
    """What is known of each of these; nothing more if the file lacks the column."""
    unreadable: Sequence[str] = ()
    """Filters and dictionaries that are unreadable, in any of the row groups: place and reason."""

    @property
    def about(self) -> Question | MissingColumn:
        return self.condition.about


def find_condition(
    file: ParquetFile,
    name: str,
    values: object,
    compares: Callable[[Column], Compared] | None = None,
    *,
    strict: bool | None = None,
) -> ColumnCondition:
    """Return the condition that the column with this name has one of the values, or one of those
    that `compares` accepts. `strict` is that of the run, unless given."""
    assert isinstance(values, Sequence), (
        "the values of a verb are converted once: files share the question about them"
    )
    if strict is None:
        strict = file.context.strict
    reuse = file.context.reuse
    try:
        with file.locate_errors():
            column = reuse.find_column(file.footer.columns, name)
            if compares is None:
                question = reuse.question_of(column, values, is_strict=strict)
                return ColumnCondition(values, NamedColumn(name, column.type_name), question)
            return _compare(reuse, column, name, values, compares(column))
    except NoColumnError as error:
        # Most files have the columns that are queried.
        from sbbf_tool.file.missing_column import find_missing

        missing = find_missing(file, name, strict=strict)
        if missing is None:
            raise
        return ColumnCondition(values, missing.name_column(error), missing)


def _compare(
    reuse: Reuse, column: Column, name: str, values: Sequence[object], accepts: Compared
) -> ColumnCondition:
    """Return the condition that a column has one of the accepted values."""
    accepted = values  # files share the question about the same object
    others: Sequence[object] = ()
    if accepts is not True:
        accepted = [value for value in values if _is_accepted(accepts, value)]
        others = [value for value in values if not _is_accepted(accepts, value)]
    # No row has an accepted value that the column cannot hold.
    question = reuse.question_of(column, accepted, is_strict=None)
    return ColumnCondition(values, NamedColumn(name, column.type_name), question, others)


def _is_accepted(accepts: Compared, value: object) -> bool:
    if value is None:
        return True
    return accepts if isinstance(accepts, bool) else accepts(value)


def describe_columns(file: ParquetFile, conditions: Iterable[ColumnCondition]) -> dict[str, Any]:
    """Return the fields of a report on these conditions: what the file has under the names of
    columns, the values that they cannot hold, and words about values that may be written in another
    notation than they were read in.

    Of a file in a table, the columns that it lacks are left out.
    """
    named_columns: dict[str, NamedColumn] = {}
    unfit: list[UnfitValue] = []
    warnings: list[str] = []
    for condition in conditions:
        question = condition.about
        if isinstance(question, Question):
            unfit += question.unfit
            warnings += question.warnings(file.footer)
        elif file.is_in_table:
            continue
        named_columns.setdefault(condition.named.name, condition.named)
    return {
        "named_columns": tuple(named_columns.values()),
        "unfit": tuple(unfit),
        "warnings": tuple(warnings),
    }


def list_conditions(file: ParquetFile, values: Any) -> Iterator[ColumnCondition]:
    """Yield the condition for each column of the file, and for each other one of its table or of
    its folder."""
    from sbbf_tool.file.missing_column import find_missing
    from sbbf_tool.file.partitions import partition_values

    reuse = file.context.reuse
    path = file.path
    columns = file.footer.columns
    for column in columns:
        question = reuse.question_of(column, values, is_strict=None)
        yield ColumnCondition(values, NamedColumn(column.name, column.type_name), question)
    paths: AbstractSet[tuple[str, ...]]
    if isinstance(path, TableFile):
        paths = path.columns.table_paths
    else:
        paths = {(key,) for key in partition_values(file.name)}
    other_paths = paths - {column.short_path for column in columns}
    for name in sorted(map(quote, other_paths)):
        missing = find_missing(file, name, strict=False)
        assert missing is not None, "only a table without a schema has no answer"
        fitting = []
        for value in values:
            with suppress(UsageError):
                missing.answer(value)
                fitting.append(value)
        yield ColumnCondition(fitting, NamedColumn(name, None), missing)
