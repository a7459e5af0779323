"""`explain`: show whether min and max, the dictionary or the filter skips each row group in a query
for a value, and in which engines.

Engines query these three in that order and stop at the first `absent`. The table of `engines` lists
which engines compare which min and max, which query a dictionary, and which query a filter on a
column of this type. An engine may trust a min and max that the format does not, and lose rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, Unpack

from sbbf_tool.condition_parser import parse_condition
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.file.conditions import ColumnCondition, describe_columns, find_condition
from sbbf_tool.file.missing_column import MissingColumn
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import (
    DICTIONARY,
    format_bounds,
    query_row_group,
    query_statistics,
    row_group_bytes,
    without_statistics,
)
from sbbf_tool.file.question import Question
from sbbf_tool.file.texts import text_of, values_of
from sbbf_tool.frozen import opt
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.arrow_schema import arrow_type
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.equals import has_interval_mark
from sbbf_tool.parquet.notation import ABSENT, MAYBE
from sbbf_tool.parquet.statistics import Bounds, bounds
from sbbf_tool.predicates import Expression, columns_of, values_in
from sbbf_tool.query_engines.explanations import (
    EngineExplanation,
    count_steps,
    explain_engine,
)
from sbbf_tool.query_engines.explanations import RowGroupExplanation as RowGroupExplanation
from sbbf_tool.query_engines.steps import (
    Means,
    RowGroupView,
    merge_answers,
    merge_means,
)
from sbbf_tool.query_engines.verdicts import (
    as_engines,
    engines_of,
    list_trusted_bounds,
    list_verdicts,
)
from sbbf_tool.reports.engines import EngineReport, EngineVerdict
from sbbf_tool.reports.probe import CONDITION, NO_FILTER, RowGroupAnswer, UnfitValue
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, ReadOptions, as_name


class ExplainReport(Tabular):
    _row = RowGroupExplanation
    _first = ("file", "column", "value")

    file: str
    column: str
    type: str | None
    """None if the file does not have the column, although its table does."""
    value: str
    note: str | None
    """Note on a value that filters, or min and max, cannot answer for."""
    absent: bool
    """Whether the value is certainly in no row group."""
    bytes: int
    column_bytes: int
    row_groups: tuple[RowGroupExplanation, ...]
    engines: tuple[EngineExplanation, ...]
    unreadable: tuple[str, ...] = ()
    """Filters and dictionaries whose bytes contradict the format, so that they cannot exclude their
    row group: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under the name of the column. If it lacks the column, the answers are not
    those of filters."""
    unfit: tuple[UnfitValue, ...] = ()
    """The value, if the column cannot hold it."""
    warnings: tuple[str, ...] = ()
    """What may be meant otherwise than it was queried, such as bytes in another notation."""

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.row_groups), 'row group')}"


class Explain(ReadingVerb[ExplainReport]):
    """Explain what skips each row group in a query for `column = value` or `column IN (...)`, in
    each engine or only in `engine_names`.

    Values are as in `Probe`; None queries null (`column IS NULL`). Of several values, each means is
    asked for those that the means before it leave, and excludes a row group if it excludes all of
    these. A filter or dictionary whose bytes contradict the format answers `cannot say`;
    `unreadable` lists it. Raises UsageError (no such column or engine, a value that the column
    cannot hold), UnreadableError (not a Parquet file), AuthenticationError, and RefusedError (an
    encrypted footer, an oversized dictionary page).
    """

    name = "explain"
    report = ExplainReport
    column: str | None = opt(
        "The column of the query; None for a condition",
        convert=lambda name: name and as_name(name),
    )
    values: object = opt("The value of the query, or several", convert=values_of)
    engine_names: Iterable[str] = opt("Only these engines", default=(), convert=as_engines)
    condition: str | None = opt("A condition in place of column and values", default=None)

    def ensure_valid(self) -> None:
        if (self.column is None) == (self.condition is None):
            raise UsageError("explain takes a column and values, or a condition")

    @classmethod
    def of(cls, condition: str, engine_names: Iterable[str] = ()) -> Explain:
        """Return the verb that explains a condition, such as `id IN (1, 2) AND amount > 5`.

        Of a condition on one column with = or IN, the report is that of its values. Of another one,
        the report says which part excludes each row group (`excluded_by`), without regard to
        engines.
        """
        looked_for = values_in(parse_condition(condition))
        if looked_for is None:
            return cls(None, (), engine_names, condition)
        return cls(looked_for.column, looked_for.values, engine_names)

    def needs(self) -> Needs:
        if self.condition is not None:
            columns = columns_of(parse_condition(self.condition))
            return Needs(columns=columns, any_values=True)
        assert self.column is not None
        return Needs(columns=(self.column,), values=self.values)

    def on(self, file: ParquetFile) -> ExplainReport:
        if self.condition is not None:
            return _explain_condition(file, parse_condition(self.condition))
        assert isinstance(self.values, Sequence)
        assert self.column is not None
        if not self.values:
            raise UsageError("no value to query")
        engines = engines_of(tuple(self.engine_names))
        condition = find_condition(file, self.column, self.values)
        if not isinstance(condition.about, Question):
            return _explain_missing(file, condition)
        file.expect_filters([condition.about.column], whole=True)
        return _explain_question(file, condition, condition.about, engines)


def explain(
    path: Readable,
    column: str,
    values: object,
    *,
    engines: Iterable[str] = (),
    engine_names: Iterable[str] = (),
    **options: Unpack[ReadOptions],
) -> ExplainReport:
    """Explain what a query for a value, or one of several, reads of one file; see `Explain`, in
    which `engines` are `engine_names`, and `ReadingVerb` for the options."""
    return Explain(column, values, engines or engine_names)(path, **options)


def _explain_question(
    file: ParquetFile,
    condition: ColumnCondition,
    question: Question,
    engines: Sequence[EngineReport],
) -> ExplainReport:
    """Return the report for a column of the file."""
    verdicts_of = partial(
        list_verdicts,
        question.column,
        engines,
        arrow_type=arrow_type(file.footer, question.column),
        has_interval_mark=has_interval_mark(file.footer, question.column),
    )
    prunings = []
    row_groups = []
    unreadable: list[str] = []
    for number in range(file.footer.num_row_groups):
        pruning = _explain_row_group(file, number, question, engines, verdicts_of)
        prunings.append(pruning)
        row_groups.append(pruning.row_group)
        unreadable += pruning.unreadable
    notes = filter(None, [literal.note for literal in question.literals])
    return _build_report(
        file,
        [condition],
        row_groups,
        column=question.column.name,
        type=question.column.type_name,
        value=", ".join(map(question.text, range(len(question)))),
        note=next(notes, None),
        engines=tuple(_explain_engines(engines, verdicts_of(), prunings, question)),
        unreadable=tuple(unreadable),
    )


def _explain_condition(file: ParquetFile, expression: Expression) -> ExplainReport:
    """Return the report that says which part of a condition excludes each row group."""
    from sbbf_tool.file.judgment import FileCondition

    condition = FileCondition(file, expression)
    condition.narrow(range(file.footer.num_row_groups))
    indices = set()
    for each in condition.conditions:
        if isinstance(each.about, Question):
            indices.add(each.about.column.index)
    row_groups = []
    for number in range(file.footer.num_row_groups):
        known: dict[str, Any] = {DICTIONARY: MAYBE}
        exclusion = condition.explain(number)
        if exclusion is not None:
            known["statistics_reason"] = exclusion.reason
            known["excluded_by"] = exclusion.text
            known[exclusion.means] = ABSENT
        row_group = _describe_row_group(file, number, indices, **known)
        row_groups.append(row_group)
    return _build_report(
        file,
        condition.conditions,
        row_groups,
        column=", ".join(columns_of(expression)),
        type=CONDITION,
        value=expression.text,
        note="; ".join(condition.notes()) or None,
        unreadable=tuple(condition.unreadable),
    )


def _explain_missing(file: ParquetFile, condition: ColumnCondition) -> ExplainReport:
    """Return the report for a column that the file lacks."""
    missing = condition.about
    assert isinstance(missing, MissingColumn)
    answers = [RowGroupAnswer(0, missing.answer(value)) for value in condition.values]
    row_groups = []
    for number in range(file.footer.num_row_groups):
        row_group = _describe_row_group(
            file,
            number,
            (),
            statistics=merge_answers(answers).answer,
            statistics_reason=missing.reason,
            filter=NO_FILTER,
        )
        row_groups.append(row_group)
    return _build_report(
        file,
        [condition],
        row_groups,
        column=missing.name,
        type=None,
        value=", ".join(map(text_of, condition.values)),
        note=missing.reason,
    )


def _build_report(
    file: ParquetFile,
    conditions: Iterable[ColumnCondition],
    row_groups: Sequence[RowGroupExplanation],
    *,
    engines: tuple[EngineExplanation, ...] = (),
    **fields: Any,
) -> ExplainReport:
    return ExplainReport(
        file=file.name,
        absent=all(row_group.is_absent for row_group in row_groups),
        bytes=sum(row_group.bytes for row_group in row_groups),
        column_bytes=sum(row_group.column_bytes for row_group in row_groups),
        row_groups=tuple(row_groups),
        engines=engines,
        **describe_columns(file, conditions),
        **fields,
    )


def _describe_row_group(
    file: ParquetFile, number: int, columns: Iterable[int], **known: Any
) -> RowGroupExplanation:
    """Return what a query of these columns reads of a row group, and what is known of it."""
    return RowGroupExplanation(
        row_group=number,
        rows=file.footer.num_rows(number) or 0,
        bytes=row_group_bytes(file, number),
        column_bytes=sum(file.footer.chunk_meta(number, index).bytes for index in columns),
        **known,
    )


class _Pruning(NamedTuple):
    row_group: RowGroupExplanation
    views: tuple[RowGroupView, ...]
    """One for each engine."""
    unreadable: list[str]
    """Places of the dictionary and the filter if they are unreadable, and the reasons."""


def _explain_row_group(
    file: ParquetFile,
    number: int,
    question: Question,
    engines: Sequence[EngineReport],
    verdicts_of: Callable[..., tuple[EngineVerdict, ...]],
) -> _Pruning:
    """Explain one row group."""
    column = question.column
    known = without_statistics(file, number, question)
    answers = query_row_group(file, known, every_means=True)
    dictionary_answers = answers.by_dictionary()
    filter_answers = answers.by_filter()

    @cache
    def find_means(trusted: Bounds | None) -> Means:
        statistics = query_statistics(file, number, question, lambda *_: trusted)
        return merge_means(statistics.by_statistics(), dictionary_answers, filter_answers)

    views = []
    verdicts, has_filter = _find_verdicts(file, number, column, verdicts_of)
    trusted_bounds = list_trusted_bounds(engines, file.footer, number, column)
    for trusted, verdict in zip(trusted_bounds, verdicts, strict=True):
        views.append(RowGroupView(find_means(trusted), verdict, has_filter))
    means = find_means(bounds(file.footer, number, column))
    min_value, max_value = format_bounds(file, number, column) or (None, None)
    row_group = _describe_row_group(
        file,
        number,
        [column.index],
        min_value=min_value,
        max_value=max_value,
        statistics=means.statistics.answer,
        statistics_reason=means.statistics.reason,
        dictionary=means.dictionary and means.dictionary.answer,
        dictionary_reason=means.dictionary and means.dictionary.reason,
        filter=means.filter.answer,
        filter_reason=means.filter_reason,
    )
    return _Pruning(row_group, tuple(views), answers.unreadable[::-1])


def _find_verdicts(
    file: ParquetFile,
    row_group: int,
    column: Column,
    verdicts_of: Callable[..., tuple[EngineVerdict, ...]],
) -> tuple[tuple[EngineVerdict, ...], bool]:
    """Return what each engine makes of the filter of a chunk, or of one that it could have, and
    whether engines find a filter there."""
    if file.encryption_of(row_group, column):
        return verdicts_of(), False
    try:
        stored = file.stored_filter(row_group, column)
    except UnreadableError:
        return verdicts_of(), True
    if stored is None:
        return verdicts_of(), False
    has_length = stored.place.length is not None
    return verdicts_of(bitset_bytes=stored.header.num_bytes, has_length=has_length), True


def _explain_engines(
    engines: Sequence[EngineReport],
    column_verdicts: Sequence[EngineVerdict],
    prunings: Sequence[_Pruning],
    question: Question,
) -> Iterator[EngineExplanation]:
    """Explain what each engine skips."""
    is_comparable = all(literal.verdict is None for literal in question.literals)
    row_groups = [pruning.row_group for pruning in prunings]
    # Most engines take the same steps.
    count = cache(partial(count_steps, row_groups))
    for at, (engine, verdict) in enumerate(zip(engines, column_verdicts, strict=True)):
        views = [pruning.views[at] for pruning in prunings]
        yield explain_engine(engine, verdict, views, count, is_comparable)
