"""Look up many values in one file: report which row groups may contain each value. Absent values are not listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.bloom.dialects import Dialect, find_dialect
from sbbf_tool.errors import AuthenticationError, NoColumnError, UnreadableError, UsageError
from sbbf_tool.file.answers import describe_unreadable, query_filter
from sbbf_tool.file.missing_column import MissingColumn, find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.texts import values_of
from sbbf_tool.parquet.literals import ABSENT, CANNOT_SAY, MAYBE, parse_object
from sbbf_tool.reports import bitmaps
from sbbf_tool.reports.lookup import InconclusiveRowGroups, KeyHit, LookupReport
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.probe import FilterAnswers
from sbbf_tool.storage.inputs import find_input

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.storage.inputs import FileSystemLike, Readable

    Compared = bool | Callable[[object], bool]
    """All values, none, or those that a function accepts."""

_OTHER_TYPE = "the values are of another type than the column, and filters show no conversion"


def probe_values(
    path: Readable,
    column: str,
    values: object,
    *,
    dialect: str | None = None,
    keys: KeysLike = None,
    reuse: Reuse | None = None,
    strict: bool = True,
    filesystem: FileSystemLike | None = None,
    compares: Callable[[Column], Compared] | None = None,
) -> LookupReport:
    """Query the filters of `column` for one value or an iterable of values, as in `probe`; None queries null.

    `keys` decrypts encrypted filters; `reuse` caches what files have in common; `strict` is as in `probe`. The filters cannot say anything
    of values that `compares` does not accept for the column. Raises UsageError (no such column, or a value that it cannot contain),
    UnreadableError (not a Parquet file), AuthenticationError and RefusedError (an encrypted footer without a key).
    """
    draft = None if dialect is None else find_dialect(dialect)
    reuse = reuse or Reuse()
    with ParquetFile.open(find_input(path, filesystem), keys, reuse=reuse) as file:
        value_list = values_of(values)
        try:
            with file.locate_errors():
                leaf_column = reuse.find_column(file.footer.columns, column)
                known, unknown = _divide(value_list, True if compares is None else compares(leaf_column))
                try:
                    question = reuse.question_of(leaf_column, known, is_strict=strict or compares is not None)
                except UsageError:
                    if compares is None:
                        raise
                    known, beyond = _divide(known, partial(_is_value_of, leaf_column))
                    question, unknown = reuse.question_of(leaf_column, known, is_strict=True), (*unknown, *beyond)
        except NoColumnError as error:
            missing = find_missing(file, path, column, strict=strict, tables=reuse.tables)
            if missing is None:
                raise
            return _look_up_missing(file, missing, error, value_list)
        unreadable: list[str] = []
        numbers = range(file.footer.num_row_groups)
        filters = [_query_row_group(file, number, question, unreadable, draft) for number in numbers] if question.row.hashes else []
        open_row_groups: dict[tuple[str, str | None], list[int]] = {}
        for each in filters:
            if each.answer != ABSENT:
                open_row_groups.setdefault((each.answer, each.reason), []).append(each.row_group)
        inconclusive = [InconclusiveRowGroups(tuple(group), answer, reason) for (answer, reason), group in open_row_groups.items()]
        hits = list(_find_hits(question, filters, numbers))
        if unknown and numbers and not known:
            inconclusive = [InconclusiveRowGroups(tuple(numbers), CANNOT_SAY, _OTHER_TYPE)]
        elif numbers:
            hits += [KeyHit("null" if value is None else str(value), tuple(numbers)) for value in unknown]
        return LookupReport(
            file=file.name,
            column=leaf_column.name,
            type=leaf_column.type_name,
            keys=len(value_list),
            row_groups=len(numbers),
            hits=tuple(hits),
            inconclusive=tuple(inconclusive),
            bytes_read=file.source.bytes_read,
            requests=file.source.requests,
            unreadable=tuple(unreadable),
            warnings=question.warnings(file.footer),
            named_columns=(NamedColumn(column, leaf_column.type_name),),
            unfit=question.unfit,
            notes=tuple(dict.fromkeys(literal.note for literal in question.row.special.values() if literal.note is not None)),
        )


def _divide(values: Sequence[object], accepts: Compared) -> tuple[Sequence[object], Sequence[object]]:
    """Return the values that are accepted, and the others."""
    if isinstance(accepts, bool):
        return (values, ()) if accepts else ((), values)
    others = [value for value in values if value is not None and not accepts(value)]
    return ([value for value in values if value is None or accepts(value)], others) if others else (values, ())


def _is_value_of(column: Column, value: object) -> bool:
    try:
        parse_object(column, value)
    except UsageError:
        return False
    return True


def _look_up_missing(file: ParquetFile, missing: MissingColumn, error: NoColumnError, values: Sequence[object]) -> LookupReport:
    """Return the report for a column that the file lacks."""
    numbers = tuple(range(file.footer.num_row_groups))
    hits = dict.fromkeys("null" if value is None else str(value) for value in values if missing.answer(value) == MAYBE)
    return LookupReport(
        file=file.name,
        column=missing.name,
        type=None,
        keys=len(values),
        row_groups=len(numbers),
        hits=tuple(KeyHit(value, numbers) for value in hits) if numbers else (),
        inconclusive=() if missing.is_certain or not numbers else (InconclusiveRowGroups(numbers, CANNOT_SAY, missing.reason),),
        bytes_read=file.source.bytes_read,
        requests=file.source.requests,
        named_columns=() if file.is_in_table else (missing.name_column(error),),
    )


def _query_row_group(file: ParquetFile, number: int, question: Question, unreadable: list[str], dialect: Dialect | None) -> FilterAnswers:
    """Query one filter; if it is unreadable, append its place and the reason, and answer `cannot say`. Raises AuthenticationError."""
    try:
        return query_filter(file, number, question, dialect)
    except AuthenticationError:
        raise
    except UnreadableError as error:
        unreadable.append(describe_unreadable(error))
        return FilterAnswers(number, b"", CANNOT_SAY, "the filter is unreadable")


def _find_hits(question: Question, filters: Sequence[FilterAnswers], numbers: Iterable[int]) -> Iterator[KeyHit]:
    """Yield the values that row groups may hold. Those that no filter can judge may be in all."""
    every = tuple(numbers)
    answers = [each.values for each in filters]
    unknowable = question.row.unknowable if every else b""
    if not unknowable:
        for at, row_groups in bitmaps.iterate(answers):
            yield KeyHit(question.text(at), row_groups)
        return
    for at, row_groups in bitmaps.iterate([*answers, unknowable]):
        yield KeyHit(question.text(at), every if bitmaps.is_set(unknowable, at) else row_groups)
