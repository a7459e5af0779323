"""`explain`: show whether min and max, the dictionary or the filter skips each row group in a query
for a value, and in which engines.

Engines query these three in that order and stop at the first `absent`. The table of `engines` lists
which engines compare which min and max, which query a dictionary, and which query a filter on a
column of this type. An engine may trust a min and max that the format does not, and lose rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from sbbf_tool.errors import NoColumnError, UnreadableError, UsageError
from sbbf_tool.file.filter_answers import by_filter
from sbbf_tool.file.missing_column import MissingColumn, find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import (
    answers_by,
    answers_by_statistics,
    by_dictionary,
    format_bounds,
    query_or_doubt,
    row_group_bytes,
)
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.texts import text_of, values_of
from sbbf_tool.frozen import Frozen, opt
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.arrow_schema import arrow_type
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.equals import has_interval_mark
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.notation import ABSENT, MAYBE
from sbbf_tool.parquet.statistics import Bounds, bounds
from sbbf_tool.query_engines.steps import (
    DICTIONARY,
    FILTER,
    STATISTICS,
    WRONG_FILTER,
    Means,
    RowGroupView,
    choose_step,
    explain_steps,
    harm_of,
)
from sbbf_tool.query_engines.terms import HARM, UNUSED
from sbbf_tool.query_engines.verdicts import (
    as_engines,
    engines_of,
    list_verdicts,
    trusted_bounds,
)
from sbbf_tool.reports.engines import EngineReport, EngineVerdict
from sbbf_tool.reports.probe import NO_FILTER, RowGroupAnswer, UnfitValue
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, as_name

if TYPE_CHECKING:
    from sbbf_tool.verbs.verb import ReadOptions


class RowGroupExplanation(Frozen):
    """Answers of statistics, dictionary and filter for a query in one row group: `absent`,
    `maybe`, or `cannot say` with the reason."""

    row_group: int
    rows: int
    bytes: int
    """Compressed bytes of the pages of all column chunks."""
    column_bytes: int
    """Compressed bytes of the pages of the queried column."""
    min_value: str | None
    """Minimum and maximum, in the form that `probe` accepts; None if the footer has no reliable
    ones."""
    max_value: str | None
    statistics: str
    statistics_reason: str | None
    dictionary: str | None
    """None if the dictionary does not hold all values of the chunk."""
    dictionary_reason: str | None
    filter: str
    """`absent`, `maybe`, `cannot say` or `no filter`."""
    filter_reason: str | None

    @property
    def is_absent(self) -> bool:
        return ABSENT in (self.statistics, self.dictionary) or (
            self.filter == ABSENT and self.filter_reason != WRONG_FILTER
        )


class EngineExplanation(Frozen):
    """Row groups of a file that one query engine skips and reads."""

    engine: str
    name: str
    steps: tuple[str, ...]
    """Per row group: `statistics`, `dictionary` or `filter` if that skips it; `read`; or `harm` if
    rows are lost or the query fails."""
    skipped_by_statistics: int
    skipped_by_dictionary: int
    skipped_by_filter: int
    row_groups_read: int
    bytes_skipped: int
    """Compressed bytes of the skipped row groups."""
    share_skipped: float
    share_of_column_skipped: float
    explanation: str
    """Why the engine uses filters of this column, or does not."""
    harm: str | None = None
    """Effect of a filter that harms the query: `loses rows` or `fails`."""


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
    column: str = opt("The column of the query", convert=as_name)
    values: object = opt("The value of the query, or several", convert=values_of)
    engine_names: Iterable[str] = opt("Only these engines", default=(), convert=as_engines)

    def needs(self) -> Needs:
        return Needs(columns=(self.column,), values=self.values)

    def on(self, file: ParquetFile) -> ExplainReport:
        assert isinstance(self.values, Sequence)
        if not self.values:
            raise UsageError("no value to query")
        engines = engines_of(tuple(self.engine_names))
        reuse = file.run.reuse or Reuse()
        strict = file.run.strict
        try:
            with file.locate_errors():
                column = reuse.find_column(file.footer.columns, self.column)
                question = reuse.question_of(column, self.values, is_strict=strict)
        except NoColumnError as error:
            missing = find_missing(
                file, file.run.path, self.column, strict=strict, tables=reuse.tables
            )
            if missing is None:
                raise
            return _explain_missing(file, missing, error, self.values)
        file.expect_filters([question.column], whole=True)
        verdicts_of = partial(
            list_verdicts,
            question.column,
            engines,
            arrow_type=arrow_type(file.footer, question.column),
            has_interval_mark=has_interval_mark(file.footer, question.column),
        )
        prunings = [
            _explain_row_group(file, number, question, engines, verdicts_of)
            for number in range(file.footer.num_row_groups)
        ]
        row_groups = tuple(pruning.row_group for pruning in prunings)
        unreadable: list[str] = []
        for pruning in prunings:
            unreadable += pruning.unreadable
        notes = (literal.note for literal in question.literals)
        return ExplainReport(
            file=file.name,
            column=question.column.name,
            type=question.column.type_name,
            value=", ".join(map(question.text, range(len(question)))),
            note=next((note for note in notes if note is not None), None),
            absent=all(row_group.is_absent for row_group in row_groups),
            bytes=sum(row_group.bytes for row_group in row_groups),
            column_bytes=sum(row_group.column_bytes for row_group in row_groups),
            row_groups=row_groups,
            engines=tuple(_explain_engines(engines, verdicts_of(), prunings, question)),
            unreadable=tuple(unreadable),
            warnings=question.warnings(file.footer),
            named_columns=(NamedColumn(self.column, question.column.type_name),),
            unfit=question.unfit,
        )


def explain(
    path: Readable,
    column: str,
    values: object,
    *,
    engine_names: Iterable[str] = (),
    **options: Unpack[ReadOptions],
) -> ExplainReport:
    """Explain what a query for a value, or one of several, reads of one file; see `Explain`, and
    `ReadingVerb` for the options."""
    return Explain(column, values, engine_names)(path, **options)


def _explain_missing(
    file: ParquetFile, missing: MissingColumn, error: NoColumnError, values: Sequence[object]
) -> ExplainReport:
    """Return the report for a column that the file lacks."""
    answer = _merge([RowGroupAnswer(0, missing.answer(value)) for value in values]).answer
    row_groups = []
    for number in range(file.footer.num_row_groups):
        row_group = RowGroupExplanation(
            row_group=number,
            rows=file.footer.num_rows(number) or 0,
            bytes=row_group_bytes(file, number),
            column_bytes=0,
            min_value=None,
            max_value=None,
            statistics=answer,
            statistics_reason=missing.reason,
            dictionary=None,
            dictionary_reason=None,
            filter=NO_FILTER,
            filter_reason=None,
        )
        row_groups.append(row_group)
    return ExplainReport(
        file=file.name,
        column=missing.name,
        type=None,
        value=", ".join(map(text_of, values)),
        note=missing.reason,
        absent=answer == ABSENT or not row_groups,
        bytes=sum(row_group.bytes for row_group in row_groups),
        column_bytes=0,
        row_groups=tuple(row_groups),
        engines=(),
        named_columns=() if file.is_in_table else (missing.name_column(error),),
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
    candidates = question.candidates()
    by_entries = query_or_doubt("dictionary", by_dictionary, file, number, question, candidates)
    dictionary_answers = None if by_entries is None else answers_by(question, number, by_entries)
    by_bits = query_or_doubt("filter", by_filter, file, number, question, candidates)
    filter_answers = answers_by(question, number, by_bits)

    def find_means(trusted: Bounds | None) -> Means:
        statistics = answers_by_statistics(file, number, question, lambda *_: trusted)
        return _merge_means(statistics, dictionary_answers, filter_answers)

    means = find_means(bounds(file.footer, number, column))
    stored, has_filter = _find_filter(file, number, column)
    if stored is None:
        verdicts = verdicts_of(bitset_bytes=None, has_length=True)
    else:
        has_length = stored.place.length is not None
        verdicts = verdicts_of(bitset_bytes=stored.header.num_bytes, has_length=has_length)
    means_by_bounds = cache(find_means)
    views = []
    for engine, verdict in zip(engines, verdicts, strict=True):
        trusted = trusted_bounds(engine, file.footer, number, column)
        views.append(RowGroupView(means_by_bounds(trusted), verdict, has_filter))
    min_value, max_value = format_bounds(file, number, column) or (None, None)
    dictionary = means.dictionary
    explanation = RowGroupExplanation(
        row_group=number,
        rows=file.footer.num_rows(number) or 0,
        bytes=row_group_bytes(file, number),
        column_bytes=file.footer.chunk_meta(number, column.index).bytes,
        min_value=min_value,
        max_value=max_value,
        statistics=means.statistics.answer,
        statistics_reason=means.statistics.reason,
        dictionary=None if dictionary is None else dictionary.answer,
        dictionary_reason=None if dictionary is None else dictionary.reason,
        filter=means.filter.answer,
        filter_reason=means.filter_reason,
    )
    unreadable = [
        answer.unreadable
        for answer in (by_entries, by_bits)
        if answer is not None and answer.unreadable is not None
    ]
    return _Pruning(explanation, tuple(views), unreadable)


def _merge_means(
    statistics: Sequence[RowGroupAnswer],
    dictionary: Sequence[RowGroupAnswer] | None,
    filters: Sequence[RowGroupAnswer],
) -> Means:
    """Merge the answers of each means for the values that the means before it leave; if these leave
    none, it gets all."""
    remaining = list(range(len(statistics)))
    merged_statistics = _merge(statistics)
    remaining = _list_remaining(statistics, remaining)
    merged_dictionary = None
    if dictionary is not None:
        merged_dictionary = _merge([dictionary[at] for at in remaining])
        remaining = _list_remaining(dictionary, remaining)
    return Means(merged_statistics, merged_dictionary, _merge([filters[at] for at in remaining]))


def _list_remaining(answers: Sequence[RowGroupAnswer], remaining: Sequence[int]) -> list[int]:
    """List the values that the answers leave of those that remained; all if they leave none."""
    left = [at for at in remaining if not answers[at].is_absent]
    return left or list(range(len(answers)))


def _merge(answers: Sequence[RowGroupAnswer]) -> RowGroupAnswer:
    """Return the answer for several values together: `absent` if all are, `maybe` if one is."""
    merged = answers[0]
    for answer in answers:
        if answer.answer == MAYBE:
            return answer
        if merged.is_absent:
            merged = answer
    return merged


def _find_filter(
    file: ParquetFile, row_group: int, column: Column
) -> tuple[StoredFilter | None, bool]:
    """Return the filter of a chunk, None if it is missing, encrypted or unreadable; and whether
    engines find a filter there."""
    if file.encryption_of(row_group, column):
        return None, False
    try:
        stored = file.stored_filter(row_group, column)
    except UnreadableError:
        return None, True
    return stored, stored is not None


def _explain_engines(
    engines: Sequence[EngineReport],
    column_verdicts: Sequence[EngineVerdict],
    prunings: Sequence[_Pruning],
    question: Question,
) -> Iterator[EngineExplanation]:
    """Explain what each engine skips."""
    is_comparable = all(literal.verdict is None for literal in question.literals)
    # Most engines take the same steps.
    count_steps = cache(partial(_count_steps, [pruning.row_group for pruning in prunings]))
    for at, (engine, verdict) in enumerate(zip(engines, column_verdicts, strict=True)):
        views = [pruning.views[at] for pruning in prunings]
        yield _explain_engine(engine, verdict, views, count_steps, is_comparable)


def _explain_engine(
    engine: EngineReport,
    column_verdict: EngineVerdict,
    views: Sequence[RowGroupView],
    count_steps: Callable[[tuple[str, ...]], dict[str, Any]],
    is_comparable: bool,
) -> EngineExplanation:
    """Explain what one engine skips, by its verdict on the column and on each filter, and why it
    does or does not use the filters."""
    uses_dictionary = engine.dictionary_first and column_verdict.verdict != UNUSED
    steps = tuple(
        choose_step(view, uses_dictionary=uses_dictionary, is_comparable=is_comparable)
        for view in views
    )
    harm = None
    if HARM in steps:
        harm, _ = harm_of(engine, views[steps.index(HARM)])
    return EngineExplanation(
        engine=engine.id,
        name=engine.name,
        steps=steps,
        explanation=explain_steps(engine, column_verdict, views, steps),
        harm=harm,
        **count_steps(steps),
    )


def _count_steps(
    row_groups: Sequence[RowGroupExplanation], steps: tuple[str, ...]
) -> dict[str, Any]:
    """Return the fields of an `EngineExplanation` that count row groups and bytes."""
    num_skipped = num_bytes = column_bytes = bytes_skipped = column_bytes_skipped = 0
    for row_group, step in zip(row_groups, steps, strict=True):
        num_bytes += row_group.bytes
        column_bytes += row_group.column_bytes
        if step in (STATISTICS, DICTIONARY, FILTER):
            num_skipped += 1
            bytes_skipped += row_group.bytes
            column_bytes_skipped += row_group.column_bytes
    return {
        "skipped_by_statistics": steps.count(STATISTICS),
        "skipped_by_dictionary": steps.count(DICTIONARY),
        "skipped_by_filter": steps.count(FILTER),
        "row_groups_read": len(steps) - num_skipped,
        "bytes_skipped": bytes_skipped,
        "share_skipped": bytes_skipped / num_bytes if num_bytes else 0.0,
        "share_of_column_skipped": column_bytes_skipped / column_bytes if column_bytes else 0.0,
    }
