"""`probe`: query the filters for values. It reads the footer, the header of each filter, and the blocks that the values select."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from sbbf_tool.errors import NoColumnError
from sbbf_tool.file.answers import expect_answers, list_answers, query_damaged_filter
from sbbf_tool.file.missing_column import MissingColumn, find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.texts import values_of
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.probe import ProbeReport, RowGroupAnswer, ValueAnswer
from sbbf_tool.storage.inputs import find_input

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.storage.inputs import FileSystemLike, Readable


def probe(
    path: Readable,
    column: str,
    values: object,
    *,
    dialect: str | None = None,
    keys: KeysLike = None,
    reuse: Reuse | None = None,
    strict: bool = True,
    filesystem: FileSystemLike | None = None,
) -> ProbeReport:
    """Query the filters of `column` for each value, per row group.

    `values` is an iterable of values or one value: a string, or a Python object (`parse_object`); None queries null, and so does the string
    `null` unless the column holds text or bytes of variable length. Only the answer `absent` is certain. Filters of a draft of the format
    answer only if `dialect` is their dialect (see `bloom.dialects`) and some values of the column, which are read for this purpose, confirm
    it; filters of the released format are always queried as such. `keys` decrypts encrypted columns. Share one `Reuse` among the files of a
    table to parse schema and values once. A column that the file lacks is an error; unless `strict`, as for one of many files, its values
    are `absent`, or as `file.missing_column` determines. A filter whose bytes contradict the format answers `cannot say`; `unreadable`
    lists it. Values that the column cannot hold are `unfit`: a number is absent then, and of others nothing is said. Raises UsageError (no
    such column or dialect; with `strict`, only values that the column cannot hold), UnreadableError (not a Parquet file) and
    AuthenticationError (encrypted bytes that their writer did not write).
    """
    value_list = values_of(values)
    draft = None if dialect is None else _find_dialect(dialect)
    reuse = reuse or Reuse()
    with ParquetFile.open(find_input(path, filesystem), keys, reuse=reuse) as file:
        try:
            with file.locate_errors():
                leaf = reuse.find_column(file.footer.columns, column)
                question = reuse.question_of(leaf, value_list, is_strict=strict)
        except NoColumnError as error:
            missing = find_missing(file, path, column, strict=strict, tables=reuse.tables)
            if missing is None:
                raise
            return _probe_missing(file, missing, error, value_list)
        expect_answers(file, question)
        unreadable: list[str] = []
        numbers = range(file.footer.num_row_groups)
        filters = [query_damaged_filter(file, number, question, unreadable, draft) for number in numbers]
        return ProbeReport(
            file=file.name,
            column=leaf.name,
            type=leaf.type_name,
            values=list_answers(question, filters),
            bytes_read=file.source.bytes_read,
            requests=file.source.requests,
            unreadable=tuple(unreadable),
            warnings=question.warnings(file.footer),
            named_columns=(NamedColumn(column, leaf.type_name),),
            unfit=question.unfit,
        )


def _probe_missing(file: ParquetFile, missing: MissingColumn, error: NoColumnError, values: Sequence[object]) -> ProbeReport:
    """Return the report for a column that the file lacks."""
    numbers = range(file.footer.num_row_groups)

    @cache
    def answer_row_groups(answer: str) -> tuple[RowGroupAnswer, ...]:
        return tuple(RowGroupAnswer(number, answer, missing.reason) for number in numbers)

    return ProbeReport(
        file=file.name,
        column=missing.name,
        type=None,
        values=tuple(ValueAnswer("null" if value is None else str(value), answer_row_groups(missing.answer(value))) for value in values),
        bytes_read=file.source.bytes_read,
        requests=file.source.requests,
        named_columns=() if file.is_in_table else (missing.name_column(error),),
    )


def _find_dialect(name: str) -> Dialect:
    from sbbf_tool.bloom.dialects import find_dialect

    return find_dialect(name)
