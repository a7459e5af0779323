"""`probe`: query the filters for values. It reads the footer, the header of each filter, and the blocks that the values select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from sbbf_tool.errors import NoColumnError, UsageError
from sbbf_tool.file.answers import expect_answers, find_hits, query_damaged_filter
from sbbf_tool.file.missing_column import MissingColumn, find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.texts import values_of
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.probe import MANY_VALUES, Hit, InconclusiveRowGroups, ProbeReport, QueriedValue
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, as_name, opt

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect
    from sbbf_tool.file.question import Question
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.verbs.verb import ReadOptions

    Compared = bool | Callable[[object], bool]
    """All values, none, or those that a function accepts."""

_OTHER_TYPE = "the values are of another type than the column, and filters show no conversion"


class Probe(ReadingVerb[ProbeReport]):
    """Query the filters of `column` for each value: which row groups may hold it.

    `values` is an iterable of values or one value: a string, or a Python object (`parse_object`); None queries null, and so does the string
    `null` unless the column holds text or bytes of variable length. Only an absence is certain. Filters of a draft of the format
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
        if question.row.hashes:
            expect_answers(file, question)
        filters = [query_damaged_filter(file, number, question, unreadable, draft) for number in numbers if question.row.hashes]
        hits = find_hits(question, filters, len(numbers))
        by_answer: dict[tuple[str, str | None], list[int]] = {}
        for each in filters:
            if each.answer != ABSENT:
                by_answer.setdefault((each.answer, each.reason), []).append(each.row_group)
        if others and numbers and len(question):
            hits = (*hits, *(Hit(_text_of(value), tuple(numbers), CANNOT_SAY, _OTHER_TYPE) for value in others))
        elif others and numbers:
            by_answer = {(CANNOT_SAY, _OTHER_TYPE): list(numbers)}
        return ProbeReport(
            file=file.name,
            column=leaf.name,
            type=leaf.type_name,
            num_values=len(value_list),
            row_groups=len(numbers),
            hits=hits,
            inconclusive=tuple(InconclusiveRowGroups(tuple(group), answer, reason) for (answer, reason), group in by_answer.items()),
            bytes_read=file.source.bytes_read,
            requests=file.source.requests,
            unreadable=tuple(unreadable),
            named_columns=(NamedColumn(column, leaf.type_name),),
            unfit=question.unfit,
            warnings=question.warnings(file.footer),
            notes=tuple(dict.fromkeys(literal.note for literal in question.row.special.values() if literal.note is not None)),
            queried=question.queried if compares is None else (),
        )


def probe(path: Readable, column: str, values: object, *, dialect: str | None = None, **options: Unpack[ReadOptions]) -> ProbeReport:
    """Query the filters of one file; see `Probe`, and `ReadingVerb` for the options."""
    return Probe(column, values, dialect)(path, **options)


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
            Hit(text, numbers, MAYBE, missing.reason, at) for at, (text, answer) in enumerate(answers) if answer == MAYBE and numbers
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
