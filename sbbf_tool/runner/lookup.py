"""Look up many values in one file: report which row groups may contain each value. Absent values are not listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_iterable
from sbbf_tool.bloom.dialects import Dialect, find_dialect
from sbbf_tool.errors import AuthenticationError, NoColumnError, UnreadableError
from sbbf_tool.file.answers import NO_FILTER, describe_unreadable, may_hold
from sbbf_tool.file.drafts import in_dialect
from sbbf_tool.file.missing_column import MissingColumn, find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.literals import CANNOT_SAY, MAYBE
from sbbf_tool.reports.lookup import InconclusiveRowGroups, KeyHit, LookupReport
from sbbf_tool.reports.named_columns import NamedColumn
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
        value_list = tuple(as_iterable(values))
        try:
            with file.locate_errors():
                leaf_column = reuse.find_column(file.footer.columns, column)
                question = reuse.question_of(leaf_column, value_list)
        except NoColumnError as error:
            missing = find_missing(file, path, column, strict=strict, tables=reuse.tables)
            if missing is None:
                raise
            return _look_up_missing(file, missing, error, value_list)
        hits: dict[int, list[int]] = {}
        open_row_groups: dict[tuple[str, str | None], list[int]] = {}
        unreadable: list[str] = []
        for number in range(file.footer.num_row_groups):
            try:
                reason = _query_row_group(file, number, question, hits, draft)
            except AuthenticationError:
                raise
            except UnreadableError as error:
                unreadable.append(describe_unreadable(error))
                reason = CANNOT_SAY, "the filter is unreadable"
            if reason is not None:
                open_row_groups.setdefault(reason, []).append(number)
        literals = question.literals
        return LookupReport(
            file=file.name,
            column=leaf_column.name,
            type=leaf_column.type_name,
            keys=len(literals),
            row_groups=file.footer.num_row_groups,
            hits=tuple(KeyHit(literals[at].text, tuple(hits[at])) for at in sorted(hits)),
            inconclusive=tuple(
                InconclusiveRowGroups(tuple(numbers), answer, reason) for (answer, reason), numbers in open_row_groups.items()
            ),
            bytes_read=file.source.bytes_read,
            requests=file.source.requests,
            unreadable=tuple(unreadable),
            named_columns=(NamedColumn(column, leaf_column.type_name),),
        )


def _look_up_missing(file: ParquetFile, missing: MissingColumn, error: NoColumnError, values: tuple[object, ...]) -> LookupReport:
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


def _query_row_group(
    file: ParquetFile, number: int, question: Question, hits: dict[int, list[int]], dialect: Dialect | None
) -> tuple[str, str | None] | None:
    """Add the row group to the hits of the values that it may contain. Return the answer and reason if its filter is inconclusive."""
    rows = question.row
    for at in rows.unknowable:
        hits.setdefault(at, []).append(number)
    if not rows.hashes:
        return None
    reason = file.encryption_of(number, question.column)
    stored = None if reason else file.stored_filter(number, question.column)
    if stored is not None:
        reason = stored.header.refusal
        if dialect is not None:
            stored, hasher, reason = in_dialect(file, stored, dialect)
            rows = rows if hasher is None else question.rehash(hasher).row
    if reason:
        return CANNOT_SAY, reason
    if stored is None:
        return NO_FILTER, None
    for position in _positions(bytes(may_hold(file, stored, rows.hashes))):
        row_groups = hits.setdefault(rows.owners[position], [])
        if row_groups[-1:] != [number]:
            row_groups.append(number)
    uncertain = equals.uncertainty(file.footer, question.column)
    return (CANNOT_SAY, uncertain) if uncertain else None


def _positions(flags: bytes) -> Iterator[int]:
    position = flags.find(1)
    while position >= 0:
        yield position
        position = flags.find(1, position + 1)
