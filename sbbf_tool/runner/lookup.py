"""Look up many values in one file: report which row groups may contain each value. Absent values are not listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sbbf_tool.bloom.dialects import Dialect, find_dialect
from sbbf_tool.errors import AuthenticationError, NoColumnError, UnreadableError
from sbbf_tool.file.answers import describe_unreadable, query_filter
from sbbf_tool.file.missing_column import MissingColumn, find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.texts import values_of
from sbbf_tool.parquet.literals import ABSENT, CANNOT_SAY, MAYBE
from sbbf_tool.reports import bitmaps
from sbbf_tool.reports.lookup import InconclusiveRowGroups, KeyHit, LookupReport
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.probe import FilterAnswers
from sbbf_tool.storage.inputs import find_input

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.storage.inputs import FileSystemLike, Readable


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
) -> LookupReport:
    """Query the filters of `column` for one value or an iterable of values, as in `probe`; None queries null.

    `keys` decrypts encrypted filters; `reuse` caches what files have in common; `strict` is as in `probe`. Raises UsageError (no such
    column, or a value that it cannot contain), UnreadableError (not a Parquet file), AuthenticationError and RefusedError (an encrypted
    footer without a key).
    """
    draft = None if dialect is None else find_dialect(dialect)
    reuse = reuse or Reuse()
    with ParquetFile.open(find_input(path, filesystem), keys, reuse=reuse) as file:
        value_list = values_of(values)
        try:
            with file.locate_errors():
                leaf_column = reuse.find_column(file.footer.columns, column)
                question = reuse.question_of(leaf_column, value_list, is_strict=strict)
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
        return LookupReport(
            file=file.name,
            column=leaf_column.name,
            type=leaf_column.type_name,
            keys=len(question),
            row_groups=len(numbers),
            hits=tuple(_find_hits(question, filters, numbers)),
            inconclusive=tuple(InconclusiveRowGroups(tuple(group), answer, reason) for (answer, reason), group in open_row_groups.items()),
            bytes_read=file.source.bytes_read,
            requests=file.source.requests,
            unreadable=tuple(unreadable),
            warnings=question.warnings(file.footer),
            named_columns=(NamedColumn(column, leaf_column.type_name),),
            unfit=question.unfit,
        )


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
