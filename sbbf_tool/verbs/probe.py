"""`probe`: which row groups may hold values. It reads the footer, the header of each filter, and the blocks that the values select; of a
chunk without a filter, its dictionary if that is small and holds all values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Unpack

from sbbf_tool.errors import NoColumnError, UsageError
from sbbf_tool.file.bitmaps import bitmap_of, count_bits, iterate, unite
from sbbf_tool.file.doubts import doubt_of_chunk
from sbbf_tool.file.filter_answers import BulkAnswer
from sbbf_tool.file.missing_column import MissingColumn, find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import RowGroupAnswers, call_or_note, narrow
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.texts import values_of
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE
from sbbf_tool.reports.named_columns import NamedColumn
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
)
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, as_name, opt

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect
    from sbbf_tool.file.confirm import ValueRows
    from sbbf_tool.file.question import Question
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.verbs.verb import ReadOptions

    Compared = bool | Callable[[object], bool]
    """All values, none, or those that a function accepts."""

_OTHER_TYPE = "the values are of another type than the column, and filters show no conversion"


class Probe(ReadingVerb[ProbeReport]):
    """Find the row groups that may hold each value of `column`, by min, max, null counts, filters and dictionaries.

    `values` is an iterable of values or one value: a string, or a Python object (`parse_object`); None queries null, and so does the string
    `null` unless the column holds text or bytes of variable length. Only an absence is certain; with `confirm`, a presence too, and what
    reading does not show is `cannot say`. Filters of a draft of the format
    answer only if `dialect` is their dialect (see `bloom.dialects`) and some values of the column, which are read for this purpose, confirm
    it; filters of the released format are always queried as such. A column that the file lacks is an error; unless `strict`, as for one of
    many files, its values are `absent`, or as `file.missing_column` determines. A filter whose bytes contradict the format answers
    `cannot say`; `unreadable` lists it. Values that the column cannot hold are `unfit`: a number is absent then, and of others nothing is
    said, as of values that `compares` does not accept for the column. Raises UsageError (no such column or dialect; with `strict`, only
    values that the column cannot hold), UnreadableError (not a Parquet file), RefusedError (an encrypted footer without a key) and
    AuthenticationError (encrypted bytes that their writer did not write).
    """

    name = "probe"
    report = ProbeReport
    column: str = opt("The column to query", convert=as_name)
    values: object = opt("The values to look for", convert=values_of)
    dialect: str | None = opt("Query filters of this draft of the format too", default=None)
    filters_only: bool = opt("Query filters alone, not min, max, null counts and dictionaries", default=False)
    confirm: bool = opt("Read the column where values may be, and answer `present` or `absent`", default=False)
    rows: bool = opt("List the rows that have the values; this confirms them", default=False)
    compares: Callable[[Column], Compared] | None = opt("What decides which values can be compared with a column", default=None)

    def ensure_valid(self) -> None:
        if self.dialect is not None:
            _find_dialect(self.dialect)

    def needs(self) -> Needs:
        return Needs(columns=(self.column,), values=self.values)

    def on(self, file: ParquetFile) -> ProbeReport:
        column, value_list, compares = self.column, self.values, self.compares
        assert isinstance(value_list, Sequence), "the values of a verb are converted once: files share the question about them"
        draft = None if self.dialect is None else _find_dialect(self.dialect)
        strict, reuse = file.run.strict, file.run.reuse or Reuse()
        try:
            with file.locate_errors():
                leaf = reuse.find_column(file.footer.columns, column)
                question, others = _ask(reuse, leaf, value_list, compares, strict=strict)
        except NoColumnError as error:
            missing = find_missing(file, file.run.path, column, strict=strict, tables=reuse.tables)
            if missing is None:
                raise
            return _probe_missing(file, missing, error, value_list)
        unreadable: list[str] = []
        numbers = range(file.footer.num_row_groups)
        answers = list(narrow(file, question, numbers, unreadable, dialect=draft, filters_only=self.filters_only))
        rows: Sequence[RowMatch] = ()
        if self.confirm or self.rows:
            hits, inconclusive, rows = _confirm(file, question, answers, unreadable, with_rows=self.rows)
        else:
            hits, inconclusive = _find_hits(question, answers), _find_undecided(question, answers)
        if others and numbers and len(question):
            hits = (*hits, *(Hit(_text_of(value), tuple(numbers), CANNOT_SAY, _OTHER_TYPE) for value in others))
        elif others and numbers:
            inconclusive = (InconclusiveRowGroups(tuple(numbers), CANNOT_SAY, _OTHER_TYPE),)
        return ProbeReport(
            file=file.name,
            column=leaf.name,
            type=leaf.type_name,
            num_values=len(value_list),
            row_groups=len(numbers),
            hits=hits,
            inconclusive=inconclusive,
            bytes_read=file.source.bytes_read,
            requests=file.source.requests,
            unreadable=tuple(unreadable),
            rows=rows,
            named_columns=(NamedColumn(column, leaf.type_name),),
            unfit=question.unfit,
            warnings=question.warnings(file.footer),
            notes=tuple(dict.fromkeys(literal.note for literal in question.row.special.values() if literal.note is not None)),
            queried=question.queried if compares is None else (),
        )


def probe(
    path: Readable,
    column: str,
    values: object,
    *,
    dialect: str | None = None,
    filters_only: bool = False,
    confirm: bool = False,
    rows: bool = False,
    **options: Unpack[ReadOptions],
) -> ProbeReport:
    """Find the row groups of one file that may hold the values; see `Probe`, and `ReadingVerb` for the options."""
    return Probe(column, values, dialect, filters_only, confirm, rows)(path, **options)


def _ask(
    reuse: Reuse, column: Column, values: Sequence[object], compares: Callable[[Column], Compared] | None, *, strict: bool
) -> tuple[Question, Sequence[object]]:
    """Return the question for these values of a column, and those that it leaves out because `compares` does not accept them."""
    if compares is None:
        return reuse.question_of(column, values, is_strict=strict), ()
    accepts = compares(column)
    known = values if accepts is True else [value for value in values if value is None or (accepts is not False and accepts(value))]
    try:
        question = reuse.question_of(column, known, is_strict=True)
    except UsageError:
        # The column can hold none of them but null.
        question, accepts = reuse.question_of(column, [value for value in values if value is None]), False
    others = () if accepts is True else [value for value in values if value is not None and (accepts is False or not accepts(value))]
    return question, others


def _find_hits(question: Question, answers: Sequence[RowGroupAnswers]) -> Sequence[Hit]:
    """Return the values that a filter or a dictionary may hold, and those that only statistics can judge, if they do not exclude them."""
    row_group_numbers = [each.row_group for each in answers]
    alone: dict[int, list[tuple[object, ...]]] = {}
    for place, (at, literal) in enumerate(question.verdicts):
        row_groups: dict[tuple[str, str | None], list[int]] = {}
        for each in answers:
            verdict = each.verdicts[place]
            if not verdict.is_absent:
                row_groups.setdefault((verdict.answer, verdict.reason), []).append(each.row_group)
        alone[at] = [(literal.text, tuple(group), answer, reason, None, at) for (answer, reason), group in row_groups.items()]
    bitmaps = [*(each.answers.values for each in answers), bitmap_of(at for at, hits in alone.items() if hits)]

    def rows() -> Iterator[tuple[object, ...]]:
        for at, places in iterate(bitmaps):
            yield from alone.get(at) or ((question.text(at), tuple(row_group_numbers[place] for place in places), MAYBE, None, None, at),)

    if len(question) <= MANY_VALUES:
        return tuple(starmap(Hit, rows()))
    count = count_bits(unite(bitmaps))
    return LongSequence(Hit, rows, count) if count > MANY_VALUES else LongSequence.of(Hit, rows())


def _find_undecided(question: Question, answers: Sequence[RowGroupAnswers]) -> tuple[InconclusiveRowGroups, ...]:
    """Return the row groups that no filter or dictionary has excluded for the values that statistics leave."""
    groups: dict[tuple[str, str | None, tuple[int, ...] | None], list[int]] = {}
    for each in answers:
        if each.is_undecided:
            positions = None
            if len(question) <= MANY_VALUES and len(owners := question.hashes_in(each.candidates)[1]) < len(question.row.hashes):
                positions = tuple(sorted(set(owners)))
            groups.setdefault((each.answers.answer, each.answers.reason, positions), []).append(each.row_group)
    return tuple(
        InconclusiveRowGroups(tuple(row_groups), answer, reason, None if at is None else tuple(map(question.text, at)), at or ())
        for (answer, reason, at), row_groups in groups.items()
    )


def _confirm(
    file: ParquetFile, question: Question, answers: Sequence[RowGroupAnswers], unreadable: list[str], *, with_rows: bool
) -> tuple[Sequence[Hit], tuple[InconclusiveRowGroups, ...], Sequence[RowMatch]]:
    """Read the column of the row groups that may hold values: return the values that are there, and what reading cannot show."""
    from sbbf_tool.file.confirm import can_confirm, find_values

    row_groups, counts, open_answers = dict[int, list[int]](), Counter[int](), list[RowGroupAnswers]()
    found_rows: list[tuple[int, list[ValueRows]]] = []
    uncertain = equals.uncertainty(file.footer, question.column)
    for each in answers:
        if each.is_absent:
            continue
        if doubt_of_chunk(file, each.row_group, question.column, question.values):
            open_answers.append(each)
            continue
        found = call_or_note(unreadable, "column chunk", find_values, file, question, each)
        if isinstance(found, BulkAnswer):
            open_answers.append(replace(each, answers=found))
            continue
        for position, rows in found:
            row_groups.setdefault(position, []).append(each.row_group)
            counts[position] += len(rows)
        if with_rows:
            found_rows.append((each.row_group, found))
        verdicts = [
            RowGroupAnswer(each.row_group, ABSENT) if can_confirm(question, at) else verdict
            for (at, _), verdict in zip(question.verdicts, each.verdicts, strict=True)
        ]
        open_answers.append(replace(each, answers=BulkAnswer(b"", CANNOT_SAY, uncertain) if uncertain else BulkAnswer(), verdicts=verdicts))
    present = (Hit(question.text(at), tuple(row_groups[at]), PRESENT, None, counts[at], at) for at in sorted(row_groups))

    def list_rows() -> Iterator[tuple[int, int, str]]:
        for row_group, found in found_rows:
            first = sum(file.footer.num_rows(number) or 0 for number in range(row_group))
            for row, at in merge(*(zip(rows, repeat(position)) for position, rows in found)):
                yield row_group, first + row, question.text(at)

    listed = LongSequence(RowMatch, list_rows, counts.total() if with_rows else 0)
    hits = (*present, *_find_hits(question, open_answers))
    return hits, _find_undecided(question, open_answers), listed if len(listed) > MANY_VALUES else tuple(listed)


def _probe_missing(file: ParquetFile, missing: MissingColumn, error: NoColumnError, values: Sequence[object]) -> ProbeReport:
    """Return the report for a column that the file lacks."""
    numbers = tuple(range(file.footer.num_row_groups))
    answers = [(_text_of(value), missing.answer(value)) for value in values]
    return ProbeReport(
        file=file.name,
        column=missing.name,
        type=None,
        num_values=len(values),
        row_groups=len(numbers),
        hits=tuple(
            Hit(text, numbers, MAYBE, missing.reason, position=at)
            for at, (text, answer) in enumerate(answers)
            if answer == MAYBE and numbers
        ),
        inconclusive=() if missing.is_certain or not numbers else (InconclusiveRowGroups(numbers, CANNOT_SAY, missing.reason),),
        bytes_read=file.source.bytes_read,
        requests=file.source.requests,
        named_columns=() if file.is_in_table else (missing.name_column(error),),
        queried=tuple(QueriedValue(text, answer, missing.reason) for text, answer in answers) if len(values) <= MANY_VALUES else (),
    )


def _text_of(value: object) -> str:
    return "null" if value is None else str(value)


def _find_dialect(name: str) -> Dialect:
    from sbbf_tool.bloom.dialects import find_dialect

    return find_dialect(name)
