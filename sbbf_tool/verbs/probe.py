"""`probe`: which row groups may hold values. It reads the footer, the header of each filter, and
the blocks that the values select; of a chunk without a filter, its dictionary if that is small and
holds all values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, cast

from sbbf_tool.errors import UsageError
from sbbf_tool.file.conditions import (
    ColumnCondition,
    NarrowedCondition,
    describe_columns,
    find_condition,
    list_conditions,
)
from sbbf_tool.file.hits import FileAnswers, find_answers
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.question import Question
from sbbf_tool.file.texts import text_of, values_of
from sbbf_tool.frozen import opt, replace
from sbbf_tool.parquet.notation import CANNOT_SAY
from sbbf_tool.reports.probe import (
    MANY_VALUES,
    Hit,
    InconclusiveRowGroups,
    ProbeReport,
)
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, ReadOptions, Scanner, as_name

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.conditions import Compared
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.judgment import FileCondition
    from sbbf_tool.file.scan import FileScan, ScannedFile
    from sbbf_tool.file.scan_kinds import KindJudgment
    from sbbf_tool.file.table_file import TableFile
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.predicates import Expression


_Also: TypeAlias = "tuple[tuple[str, Sequence[object]] | Expression, ...]"


def _conditions_of(also: Any) -> _Also:
    """Return the parts that a row must satisfy: names of columns, each with the values of which it
    must have one, and other conditions. Raises UsageError for anything else."""
    if isinstance(also, tuple) and not also:
        return ()
    # Most queries have no condition.
    from sbbf_tool.condition_parser import parse_condition
    from sbbf_tool.predicates import Expression, conjuncts_of, values_in

    items = also
    if isinstance(also, str):
        items = conjuncts_of(parse_condition(also))
    elif isinstance(also, Mapping):
        items = also.items()
    conditions: list[tuple[str, Sequence[object]] | Expression] = []
    try:
        for item in items:
            looked_for = item
            if isinstance(item, Expression):
                looked_for = values_in(item)
                if looked_for is None:
                    conditions.append(item)
                    continue
            column, values = looked_for
            conditions.append((as_name(column), values_of(values)))
    except (TypeError, ValueError):
        raise UsageError(f"also is a condition, or values by column, not {also!r}") from None
    return tuple(conditions)


_OTHER_TYPE = "the values are of another type than the column, and filters show no conversion"


class Probe(ReadingVerb[ProbeReport]):
    """Find the row groups that may hold each value of `column`, by min, max, null counts, filters
    and dictionaries.

    `values` is an iterable of values or one value: a string, or a Python object (`parse_object`);
    None queries null, and so does the string `null` unless the column holds text or bytes of
    variable length. Only an absence is certain, if filters have no false negatives and statistics
    are not wrong; with `confirm`, a presence too, and what reading does not show is `cannot say`;
    rows that a table has deleted are not present. With `also`, a text such as
    `device = 'x' AND amount > 5` or values by column, only rows count that satisfy this condition
    too. With None as `column`, each column is queried for the values that its type can hold; with
    no values, the rows are looked for that satisfy `also`: see `of`.
    Filters of a draft of the format answer only if `dialect` is their dialect (see
    `bloom.dialects`) and some values of the column, which are read for this purpose, confirm it;
    filters of the released format are always queried as such. A column that the file lacks is an
    error; unless `strict`, as for one of many files, its values are `absent`, or as
    `file.missing_column` determines. A filter whose bytes contradict the format answers `cannot
    say`; `unreadable` lists it. Values that the column cannot hold are `unfit`: a number is absent
    then, and of others nothing is said, as of values that `compares` does not accept for the
    column. Raises UsageError (no such column or dialect; with `strict`, only values that the column
    cannot hold), UnreadableError (not a Parquet file), RefusedError (an encrypted footer without a
    key) and AuthenticationError (encrypted bytes that their writer did not write).
    """

    name = "probe"
    report = ProbeReport
    column: str | None = opt(
        "The column to query; None for every column", convert=lambda name: name and as_name(name)
    )
    values: object = opt("The values to look for", convert=values_of)
    dialect: str | None = opt("Query filters of this draft of the format too", default=None)
    filters_only: bool = opt(
        "Query filters alone, not min, max, null counts and dictionaries", default=False
    )
    confirm: bool = opt(
        "Read the column where values may be, and answer `present` or `absent`", default=False
    )
    rows: bool = opt("List the rows that have the values; this confirms them", default=False)
    compares: Callable[[Column], Compared] | None = opt(
        "What decides which values can be compared with a column", default=None
    )
    also: Any = opt(
        "What other columns of a row must hold: a condition, or values by column",
        default=(),
        convert=_conditions_of,
    )

    @classmethod
    def of(cls, condition: str, **options: Any) -> Probe:
        """Return the verb that looks for rows that satisfy a condition, such as `id IN (1, 2) AND
        (amount > 5 OR city IS NULL)`; see `predicates`.

        If a part that is joined by AND is about values of a column, with = or IN, the report is
        about these values. Otherwise its only value is the text of the condition. With `confirm`,
        the whole condition is decided. Raises UsageError for a condition that cannot be parsed and,
        with `confirm`, for one with a part that nothing decides.
        """
        from sbbf_tool.condition_parser import parse_condition
        from sbbf_tool.predicates import IsNull, conjuncts_of, values_in

        expression = parse_condition(condition)
        conjuncts = list(conjuncts_of(expression))
        for conjunct in sorted(conjuncts, key=lambda each: isinstance(each, IsNull)):
            looked_for = values_in(conjunct)
            if looked_for is not None:
                conjuncts.remove(conjunct)
                return cls(looked_for.column, looked_for.values, also=conjuncts, **options)
        return cls(None, (), also=[expression], **options)

    @cached_property
    def _tree(self) -> Expression | None:
        """The conditions other than values by column."""
        if len(self._also_values) == len(self.also):
            return None
        from sbbf_tool.predicates import join

        return join([each for each in self.also if each not in self._also_values])

    @cached_property
    def _also_values(self) -> list[tuple[str, Sequence[object]]]:
        if not self.also:
            return []
        from sbbf_tool.predicates import Expression

        return [each for each in self.also if not isinstance(each, Expression)]

    def ensure_valid(self) -> None:
        _ = self._dialect  # raises for the name of none
        if self.filters_only and self._reads:
            raise UsageError("filters alone do not show which values are stored, or in which rows")
        if self._tree is not None and self._reads:
            from sbbf_tool.predicates import BY_ENGINE, UNDECIDED, ensure_answered

            ensure_answered(self._tree, UNDECIDED, BY_ENGINE)
        if self.column is not None or self._looks_for_rows:
            return
        num_values = len(cast("Sequence[object]", self.values))
        if self.also or num_values > MANY_VALUES:
            raise UsageError(
                f"a query of every column takes at most {MANY_VALUES:,} values, and no condition"
            )

    def needs(self) -> Needs:
        columns = [self.column, *dict(self._also_values)]
        if self._tree is not None:
            from sbbf_tool.predicates import columns_of

            columns += columns_of(self._tree)
        return Needs(
            columns=tuple(dict.fromkeys(filter(None, columns))),
            values=self.values,
            excludes=self.column is not None and self.compares is None,
            any_values=self._looks_for_rows,
        )

    @property
    def _looks_for_rows(self) -> bool:
        """Whether the verb looks for rows by a condition, and not for values."""
        return self.column is None and self._tree is not None and not self.values

    def on(self, file: ParquetFile) -> ProbeReport:
        if self.column is None and self._tree is None:
            file.expect_filters(file.footer.columns)  # those of all columns concurrently
            all_conditions = list_conditions(file, self.values)
            reports = [self._report(file, [condition]) for condition in all_conditions]
            from sbbf_tool.file.every_column import merge_reports

            return merge_reports(file, self.values, reports)
        conditions = self._conditions(file)
        if self._tree is None:
            return self._report(file, conditions)
        from sbbf_tool.file.judgment import FileCondition

        if any(map(_needs_reading, conditions)) and self.column is not None:
            tree = FileCondition(file, self._tree, filters_only=self.filters_only)
            return self._report(file, conditions, tree)
        from sbbf_tool.file.row_query import build_expression, report_rows
        from sbbf_tool.predicates import join

        expression = join([*map(build_expression, conditions), self._tree])
        return report_rows(
            FileCondition(file, expression, filters_only=self.filters_only),
            None if self.column is None else conditions[0],
            dialect=self._dialect,
            confirms=self._reads,
            with_rows=self.rows,
        )

    def _conditions(self, file: ParquetFile) -> list[ColumnCondition]:
        """List the columns of which a row must have one of some values, the queried one first."""
        conditions = []
        if self.column is not None:
            conditions.append(find_condition(file, self.column, self.values, self.compares))
        for name, values in self._also_values:
            conditions.append(find_condition(file, name, values))
        return conditions

    def scanner(
        self, context: Context, in_table: TableFile | None = None, edit: Edit | None = None
    ) -> Scanner[ProbeReport] | None:
        scan = self.file_scan(context, in_table)
        if scan is None:
            return None
        return partial(scan.reports, partial(_report_scanned, with_rows=self.rows))

    def file_scan(self, context: Context, in_table: TableFile | None = None) -> FileScan | None:
        """Return what answers for many local files at once; None if each must be opened."""
        from sbbf_tool.file.scan import FileScan, can_scan

        if self.column is None or self._tree or self.dialect or context.keys or not can_scan():
            return None
        # Rows that a table has deleted, other conditions and a limit of page sizes are for Python.
        has_more = in_table is not None or context.limit.max_page_bytes is not None or self.also
        judge = partial(self._judge_kind, confirms=self._reads and not has_more)
        return FileScan(judge, context, in_table, is_certain=bool(self._reads or self.also))

    def _judge_kind(self, file: ParquetFile, key: bytes, *, confirms: bool) -> KindJudgment:
        """Judge what decides the answers of files of the same kind as this one."""
        from sbbf_tool.file.scan_kinds import declining, judge_kind

        conditions = self._conditions(file)
        questions = []
        for condition in conditions:
            question = condition.about
            if not isinstance(question, Question) or condition.others:
                return declining(key)
            questions.append(question)
        if len(questions) > 1 and any(each.may_have_other_meaning for each in questions):
            return declining(key)  # the scan knows the bounds of one column
        plain = replace(self, confirm=False, rows=False)
        report = replace(plain._report(file, conditions), hits=(), inconclusive=(), unreadable=())
        return judge_kind(
            file,
            key,
            questions[0],
            report,
            filters_only=self.filters_only,
            confirms=confirms,
        )

    @cached_property
    def _dialect(self) -> Dialect | None:
        if self.dialect is None:
            return None
        from sbbf_tool.bloom.dialects import find_dialect  # few files have filters of a draft

        return find_dialect(self.dialect)

    @property
    def _reads(self) -> bool:
        """Whether the column is read where values may be."""
        return self.confirm or self.rows

    def _report(
        self,
        file: ParquetFile,
        conditions: list[ColumnCondition],
        tree: FileCondition | None = None,
    ) -> ProbeReport:
        """Report the values of the first condition on a column that the file has, since only such
        values can be in some rows and not in others; `tree` is what rows must satisfy too."""
        numbers: Sequence[int] = range(file.footer.num_row_groups)
        if tree is not None:
            numbers = tree.remaining(numbers)
        narrowed = []
        # Those first that take no reading.
        for condition in sorted(conditions, key=_needs_reading):
            remaining = condition.narrow(
                file, numbers, dialect=self._dialect, filters_only=self.filters_only
            )
            numbers = remaining.row_groups
            narrowed.append(remaining)
        if tree is not None:
            numbers = tree.narrow(numbers, self._dialect)
        row_groups = tuple(numbers)
        narrowed.sort(key=_needs_reading, reverse=True)
        first, *also = narrowed
        about = first.about
        column_type = None
        if isinstance(about, Question):
            column = about.column.name
            column_type = about.column.type_name
            queried = about.queried if self.compares is None else ()
            answers = self._query(file, about, first, also, row_groups, tree)
        else:
            column = about.name
            # Most files have the column.
            from sbbf_tool.file.all_rows import answer_for_all_rows, list_queried

            queried = list_queried(first.condition)
            answers = answer_for_all_rows(
                file,
                first.condition,
                also,
                row_groups,
                confirms=self._reads,
                with_rows=self.rows,
            )
        described = [each.condition for each in narrowed]
        notes: list[str | None] = []
        places: list[str] = []
        if tree is not None:
            described += tree.conditions
            notes += tree.notes()
            places += tree.unreadable
        for each in narrowed:
            places += each.unreadable
            if isinstance(each.about, Question):
                notes += [literal.note for literal in each.about.row.special.values()]
        return answers.report(
            file,
            len(first.condition.values),
            places,
            column=column,
            type=column_type,
            notes=tuple(filter(None, dict.fromkeys(notes))),
            queried=queried,
            **describe_columns(file, described),
        )

    def _query(
        self,
        file: ParquetFile,
        question: Question,
        first: NarrowedCondition,
        also: list[NarrowedCondition],
        row_groups: tuple[int, ...],
        tree: FileCondition | None,
    ) -> FileAnswers:
        """Return what is known of the values of the first condition."""
        row_group_answers = [first.answers[number] for number in row_groups]
        if self._reads:
            from sbbf_tool.file.presence import confirm_values  # most queries read filters alone

            answers = confirm_values(
                file, question, row_group_answers, also, tree, with_rows=self.rows
            )
        else:
            answers = find_answers(question, row_group_answers)
        others = first.condition.others
        if not others or not row_groups:
            return answers
        if not len(question):
            unknown = InconclusiveRowGroups(row_groups, CANNOT_SAY, _OTHER_TYPE)
            return answers._replace(inconclusive=(unknown,))
        hits = [Hit(text_of(value), row_groups, CANNOT_SAY, _OTHER_TYPE) for value in others]
        return answers._replace(hits=(*answers.hits, *hits))


def probe(
    path: Readable,
    column: str | None,
    values: object,
    *,
    dialect: str | None = None,
    filters_only: bool = False,
    confirm: bool = False,
    rows: bool = False,
    also: Any = (),
    **options: Unpack[ReadOptions],
) -> ProbeReport:
    """Find the row groups of one file that may hold the values; see `Probe`, and `ReadingVerb` for
    the options."""
    return Probe(column, values, dialect, filters_only, confirm, rows, also=also)(path, **options)


def _needs_reading(condition: ColumnCondition | NarrowedCondition) -> bool:
    """Return whether a condition is about a column of the file, whose filters may be read."""
    return isinstance(condition.about, Question)


def _report_scanned(path: str, file: ScannedFile, *, with_rows: bool) -> ProbeReport:
    """Return the report of a file that was not opened."""
    changes: dict[str, Any] = {
        "file": path,
        "row_groups": file.row_groups,
        "bytes_read": file.bytes_read,
        "warnings": file.warnings(),
    }
    if file.hashes:
        changes["hits"] = file.hits()
    elif file.matches:
        present = file.present(with_rows=with_rows)
        changes["hits"] = present.hits
        changes["rows"] = present.rows
    # Faster than `replace`, which takes longer than the scan of a file.
    return ProbeReport(**{**vars(file.judgment.report), **changes})
