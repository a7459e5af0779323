"""`probe`: which row groups may hold values. It reads the footer, the header of each filter, and
the blocks that the values select; of a chunk without a filter, its dictionary if that is small and
holds all values.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import accumulate, repeat, starmap
from typing import TYPE_CHECKING, Any, Unpack, cast

from sbbf_tool.errors import UsageError
from sbbf_tool.file.all_rows import answer_for_all_rows
from sbbf_tool.file.conditions import ColumnCondition, find_condition, list_conditions
from sbbf_tool.file.doubts import doubt_of_chunk
from sbbf_tool.file.filter_answers import BulkAnswer, bitmap_of, count_bits, iterate, unite
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import RowGroupAnswers, call_or_note
from sbbf_tool.file.question import Question
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.file.texts import values_of
from sbbf_tool.frozen import opt, replace
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE
from sbbf_tool.reports.probe import (
    MANY_VALUES,
    PRESENT,
    Hit,
    InconclusiveRowGroups,
    LongSequence,
    ProbeReport,
    QueriedValue,
    RowGroupAnswer,
    RowMatch,
    UnfitValue,
)
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, as_name

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect
    from sbbf_tool.file.conditions import Compared
    from sbbf_tool.file.confirm import ValueRows
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.verbs.verb import ReadOptions


def _conditions_of(also: Any) -> tuple[tuple[str, Sequence[object]], ...]:
    """Return the names of columns, each with the values of which a row must have one. Raises
    UsageError for anything else."""
    if isinstance(also, str):
        from sbbf_tool.advice.queries import parse_query

        also = parse_query(also).conditions
    try:
        return tuple(
            (as_name(column), values_of(values))
            for column, values in (also.items() if isinstance(also, Mapping) else also)
        )
    except (TypeError, ValueError):
        raise UsageError(f"also is a condition, or values by column, not {also!r}") from None


_OTHER_TYPE = "the values are of another type than the column, and filters show no conversion"


class Probe(ReadingVerb[ProbeReport]):
    """Find the row groups that may hold each value of `column`, by min, max, null counts, filters
    and dictionaries.

    `values` is an iterable of values or one value: a string, or a Python object (`parse_object`);
    None queries null, and so does the string `null` unless the column holds text or bytes of
    variable length. Only an absence is certain, if filters have no false negatives and statistics
    are not wrong; with `confirm`, a presence too, and what reading does not show is `cannot say`; rows that a table has deleted
    are not present. With `also`, a text such as `device = 'x' AND city IS NULL` or values by
    column, only rows count that satisfy this condition too. With None as `column`, each column is
    queried for the values that its type can hold. Filters of a draft of the format answer only if
    `dialect` is their dialect (see `bloom.dialects`) and some values of the column, which are read
    for this purpose, confirm it; filters of the released format are always queried as such. A
    column that the file lacks is an error; unless `strict`, as for one of many files, its values
    are `absent`, or as `file.missing_column` determines. A filter whose bytes contradict the format
    answers `cannot say`; `unreadable` lists it. Values that the column cannot hold are `unfit`: a
    number is absent then, and of others nothing is said, as of values that `compares` does not
    accept for the column. Raises UsageError (no such column or dialect; with `strict`, only values
    that the column cannot hold), UnreadableError (not a Parquet file), RefusedError (an encrypted
    footer without a key) and AuthenticationError (encrypted bytes that their writer did not write).
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

    def ensure_valid(self) -> None:
        if self.dialect is not None:
            _find_dialect(self.dialect)
        if self.column is None and (
            self.also or len(cast("Sequence[object]", self.values)) > MANY_VALUES
        ):
            raise UsageError(
                f"a query of every column takes at most {MANY_VALUES:,} values, and no condition"
            )

    def needs(self) -> Needs:
        columns = (*filter(None, (self.column, *dict(self.also))),)
        return Needs(
            columns=columns,
            values=self.values,
            excludes=self.column is not None and self.compares is None,
        )

    def on(self, file: ParquetFile) -> ProbeReport:
        if self.column is None:
            file.expect_filters(file.footer.columns)  # those of all columns concurrently
            return _merge(
                file,
                self.values,
                [self._report(file, [each]) for each in list_conditions(file, self.values)],
            )
        also = [find_condition(file, *condition) for condition in self.also]
        return self._report(
            file, [find_condition(file, self.column, self.values, self.compares), *also]
        )

    def _report(self, file: ParquetFile, conditions: list[ColumnCondition]) -> ProbeReport:
        # The report is about the first of the columns that the file has: only its values can be in
        # some rows and not in others.
        first, *also = sorted(conditions, key=lambda each: not isinstance(each.about, Question))
        draft = None if self.dialect is None else _find_dialect(self.dialect)
        unreadable: list[str] = []
        numbers: Sequence[int] = range(file.footer.num_row_groups)
        for each in sorted(conditions, key=lambda each: isinstance(each.about, Question)):
            numbers = each.narrow(
                file, numbers, unreadable, dialect=draft, filters_only=self.filters_only
            )
        numbers, about = tuple(numbers), first.about
        queried: Sequence[QueriedValue]
        hits: Sequence[Hit]
        rows: Sequence[RowMatch] = ()
        if isinstance(about, Question):
            answers, queried = (
                [first.answers[number] for number in numbers],
                about.queried if self.compares is None else (),
            )
            if self.confirm or self.rows:
                hits, inconclusive, rows = _confirm(
                    file, about, answers, also, unreadable, with_rows=self.rows
                )
            else:
                hits, inconclusive = _find_hits(about, answers), _find_undecided(about, answers)
            if first.others and numbers and len(about):
                hits = (
                    *hits,
                    *(
                        Hit(_text_of(value), numbers, CANNOT_SAY, _OTHER_TYPE)
                        for value in first.others
                    ),
                )
            elif first.others and numbers:
                inconclusive = (InconclusiveRowGroups(numbers, CANNOT_SAY, _OTHER_TYPE),)
        else:
            queried, hits, inconclusive, rows = answer_for_all_rows(
                file,
                first,
                also,
                numbers,
                unreadable,
                confirms=self.confirm or self.rows,
                with_rows=self.rows,
            )
        questions = [each.about for each in conditions if isinstance(each.about, Question)]
        notes = (
            literal.note
            for each in questions
            for literal in each.row.special.values()
            if literal.note is not None
        )
        return ProbeReport(
            file=file.name,
            column=about.column.name if isinstance(about, Question) else about.name,
            type=about.column.type_name if isinstance(about, Question) else None,
            num_values=len(first.values),
            row_groups=file.footer.num_row_groups,
            hits=hits,
            inconclusive=inconclusive,
            bytes_read=file.source.bytes_read,
            requests=file.source.requests,
            unreadable=tuple(unreadable),
            rows=rows,
            named_columns=tuple(
                each.named
                for each in (first, *also)
                if not (file.is_in_table and not isinstance(each.about, Question))
            ),
            unfit=tuple(unfit for each in questions for unfit in each.unfit),
            warnings=tuple(warning for each in questions for warning in each.warnings(file.footer)),
            notes=tuple(dict.fromkeys(notes)),
            queried=queried,
        )


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


def _merge(file: ParquetFile, values: Any, reports: Sequence[ProbeReport]) -> ProbeReport:
    """Merge the reports of every column into one, in which hits and rows name the column."""
    unfit = Counter((each.value, each.position) for report in reports for each in report.unfit)
    num_rows = sum(len(report.rows) for report in reports)
    rows = LongSequence(
        RowMatch,
        lambda: (tuple(vars(row).values()) for report in reports for row in report.rows),
        num_rows,
    )
    return ProbeReport(
        file=file.name,
        column=None,
        type="any",
        num_values=len(values),
        row_groups=file.footer.num_row_groups,
        hits=tuple(replace(hit, column=report.column) for report in reports for hit in report.hits),
        inconclusive=tuple(
            replace(each, column=report.column)
            for report in reports
            for each in report.inconclusive
        ),
        bytes_read=file.source.bytes_read,
        requests=file.source.requests,
        unreadable=tuple(place for report in reports for place in report.unreadable),
        rows=rows if num_rows > MANY_VALUES else tuple(rows),
        unfit=tuple(
            UnfitValue(*value, "no column can hold the value")
            for value, count in unfit.items()
            if count == len(reports)
        ),
        warnings=tuple(dict.fromkeys(warning for report in reports for warning in report.warnings)),
    )


def _find_hits(question: Question, answers: Sequence[RowGroupAnswers]) -> Sequence[Hit]:
    """Return the values that a filter or a dictionary may hold, and those that only statistics can
    judge, if they do not exclude them."""
    alone: dict[int, list[tuple[object, ...]]] = {}
    for place, (at, literal) in enumerate(question.verdicts):
        row_groups: dict[tuple[str, str | None], list[int]] = {}
        for each in answers:
            verdict = each.verdicts[place]
            if not verdict.is_absent:
                row_groups.setdefault((verdict.answer, verdict.reason), []).append(each.row_group)
        alone[at] = [
            (literal.text, tuple(group), answer, reason, None, at)
            for (answer, reason), group in row_groups.items()
        ]
    bitmaps = [
        *((each.row_group, each.answers.values) for each in answers),
        (-1, bitmap_of(at for at, hits in alone.items() if hits)),
    ]

    def rows() -> Iterator[tuple[object, ...]]:
        for at, row_groups in iterate(bitmaps):
            yield from alone.get(at) or ((question.text(at), row_groups, MAYBE, None, None, at),)

    if len(question) <= MANY_VALUES:
        return tuple(starmap(Hit, rows()))
    count = count_bits(unite(bitmap for _, bitmap in bitmaps))
    return LongSequence(Hit, rows, count) if count > MANY_VALUES else LongSequence.of(Hit, rows())


def _find_undecided(
    question: Question, answers: Sequence[RowGroupAnswers]
) -> tuple[InconclusiveRowGroups, ...]:
    """Return the row groups that no filter or dictionary has excluded for the values that
    statistics leave."""
    groups: dict[tuple[str, str | None, tuple[int, ...] | None], list[int]] = {}
    for each in answers:
        if each.is_undecided:
            positions = None
            if len(question) <= MANY_VALUES and len(
                owners := question.hashes_in(each.candidates)[1]
            ) < len(question.row.hashes):
                positions = tuple(sorted(set(owners)))
            groups.setdefault((each.answers.answer, each.answers.reason, positions), []).append(
                each.row_group
            )
    return tuple(
        InconclusiveRowGroups(
            tuple(row_groups),
            answer,
            reason,
            None if at is None else tuple(map(question.text, at)),
            at or (),
        )
        for (answer, reason, at), row_groups in groups.items()
    )


def _confirm(
    file: ParquetFile,
    question: Question,
    answers: Sequence[RowGroupAnswers],
    also: Sequence[ColumnCondition],
    unreadable: list[str],
    *,
    with_rows: bool,
) -> tuple[Sequence[Hit], tuple[InconclusiveRowGroups, ...], Sequence[RowMatch]]:
    """Read the columns of the row groups that may hold values: return the values that are there,
    and what reading cannot show."""
    from sbbf_tool.file.confirm import ROUNDED, Match

    row_groups: dict[Match, list[int]] = {}
    counts: Counter[Match] = Counter()
    open_answers: list[RowGroupAnswers] = []
    deletes = file.run.path.deletes if isinstance(file.run.path, TableFile) else ()
    found_rows: dict[int, list[ValueRows]] = {}

    def count(row_group: int, found: Iterable[ValueRows]) -> None:
        for match, rows in found:
            row_groups.setdefault(match, []).append(row_group)
            counts[match] += len(rows)

    for each in answers:
        found, rest = _read(file, question, each, unreadable)
        if also and (found or not rest.is_absent):
            found, rest = _keep_rows(file, found, rest, also, unreadable)
        if with_rows or deletes:
            found_rows[each.row_group] = found
        else:
            count(each.row_group, found)
        open_answers.append(rest)
    numbers, doubt = range(file.footer.num_row_groups if found_rows else 0), None
    first_rows = [0, *accumulate(file.footer.num_rows(number) or 0 for number in numbers)]
    if found_rows and deletes:
        from sbbf_tool.file.confirm import drop_deleted

        found_rows, doubt = drop_deleted(found_rows, first_rows, deletes, unreadable)
    for row_group, found in found_rows.items():
        count(row_group, found)

    def hit(match: Match) -> Hit:
        text, at = question.text(match.position), match.position
        if match.is_rounded:
            # Where the value itself is present, what is close to it does not matter.
            surely = row_groups.get(Match(at), ()) if doubt is None else ()
            others = tuple(number for number in row_groups[match] if number not in surely)
            return Hit(text, others, CANNOT_SAY, doubt or ROUNDED, position=at)
        if doubt is not None:
            return Hit(text, tuple(row_groups[match]), CANNOT_SAY, doubt, position=at)
        return Hit(text, tuple(row_groups[match]), PRESENT, None, counts[match], at)

    def list_rows() -> Iterator[tuple[int, int, str, str]]:
        for row_group, found in found_rows.items():
            certain = ((match.position, rows) for match, rows in found if not match.is_rounded)
            for row, at in merge(*(zip(rows, repeat(position)) for position, rows in certain)):
                yield (
                    row_group,
                    first_rows[row_group] + row,
                    question.text(at),
                    question.column.name,
                )

    num_rows = sum(count for match, count in counts.items() if not match.is_rounded)
    lists_rows = with_rows and doubt is None
    listed = LongSequence(RowMatch, list_rows, num_rows) if lists_rows else ()
    matches = (hit(match) for match in sorted(row_groups))
    hits = (
        *(each for each in matches if each.row_groups),
        *_find_hits(question, open_answers),
    )
    return (
        hits,
        _find_undecided(question, open_answers),
        listed if len(listed) > MANY_VALUES else tuple(listed),
    )


def _read(
    file: ParquetFile, question: Question, answers: RowGroupAnswers, unreadable: list[str]
) -> tuple[list[ValueRows], RowGroupAnswers]:
    """Read a column chunk: return the rows of the values that are there, and what reading does not
    show."""
    from sbbf_tool.file.confirm import can_confirm, find_values

    if doubt_of_chunk(file, answers.row_group, question.column, question.values):
        return [], answers
    found = call_or_note(unreadable, "column chunk", find_values, file, question, answers)
    if isinstance(found, BulkAnswer):
        return [], answers._replace(answers=found)
    uncertain = equals.uncertainty(file.footer, question.column)
    verdicts = [
        RowGroupAnswer(answers.row_group, ABSENT) if can_confirm(question, at) else verdict
        for (at, _), verdict in zip(question.verdicts, answers.verdicts, strict=True)
    ]
    return found, answers._replace(
        answers=BulkAnswer(b"", CANNOT_SAY, uncertain) if uncertain else BulkAnswer(),
        verdicts=verdicts,
    )


def _keep_rows(
    file: ParquetFile,
    found: list[ValueRows],
    rest: RowGroupAnswers,
    also: Sequence[ColumnCondition],
    unreadable: list[str],
) -> tuple[list[ValueRows], RowGroupAnswers]:
    """Keep, of what `_read` returns, the rows that satisfy the other conditions."""
    import numpy as np

    from sbbf_tool.file.confirm import ROUNDED, ValueRows

    number, reason = rest.row_group, None
    possible = np.full(file.footer.num_rows(number) or 0, not rest.is_absent)
    for _, numbers in found:
        possible[np.asarray(numbers, np.int64)] = True
    certain = possible.copy()
    for each in also:
        rows, likely, doubt = np.zeros_like(certain), np.zeros_like(certain), None
        if not isinstance(each.about, Question):
            rows |= any(map(each.about.is_in_all_rows, each.values))
            doubt = None if rows.all() else each.about.reason
        elif possible.any():
            others, open_answers = _read(file, each.about, each.answers[number], unreadable)
            for match, numbers in others:
                (likely if match.is_rounded else rows)[np.asarray(numbers, np.int64)] = True
            if not open_answers.is_absent:
                doubts = (
                    open_answers.answers.reason,
                    *(verdict.reason for verdict in open_answers.verdicts if not verdict.is_absent),
                )
                doubt = next(filter(None, doubts), CANNOT_SAY)
        certain &= rows
        if doubt is None:
            possible &= rows | likely
            if (possible & ~rows).any():
                reason = reason or f"column {each.named.name}: {ROUNDED}"
        else:
            reason = reason or f"column {each.named.name}: {doubt}"
    if not possible.any() or (possible & ~certain).any():
        answer = CANNOT_SAY if possible.any() else ABSENT
        verdicts = [RowGroupAnswer(number, answer, reason)] * len(rest.verdicts)
        rest = rest._replace(answers=BulkAnswer(b"", answer, reason), verdicts=verdicts)
    places = ((at, np.asarray(rows, np.int64)) for at, rows in found)
    kept = (ValueRows(at, array("Q", rows[certain[rows]].tobytes())) for at, rows in places)
    return [each for each in kept if each.rows], rest


def _text_of(value: object) -> str:
    return "null" if value is None else str(value)


def _find_dialect(name: str) -> Dialect:
    from sbbf_tool.bloom.dialects import find_dialect

    return find_dialect(name)
