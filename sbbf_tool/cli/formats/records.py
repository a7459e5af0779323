"""Rows for other programs, CSV and Parquet: the plain rows of the reports, in the columns of their
Arrow schema."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

from sbbf_tool.cli.formats import MARK, Conclusion, Item, Output, OutputTarget
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.spelling import write_command
from sbbf_tool.display import escape, has_command, to_json
from sbbf_tool.errors import WriteError
from sbbf_tool.reports.findings import CheckReport
from sbbf_tool.reports.plain import schema_of, to_plain

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_PER_GROUP = 10_000


class Records(Output):
    """The rows of each report or, for commands that change files, one row per file."""

    def begin(self) -> None:
        row = self._view.row
        if self._view.has_rows_of_files:
            schema = schema_of(row)
        else:
            (report,) = get_args(row) or (row,)
            schema = report.arrow_schema()
        writer = _Text if self._name == "csv" else _Binary
        self._writer = writer(self._target, schema)

    def add(self, item: Item) -> None:
        if self._view.has_rows_of_files:
            self._writer.write(to_plain(item.row))
        elif item.report is not None:
            for row in _rows_of(item.report):
                self._writer.write(row)

    def end(self, sums: Conclusion) -> None:
        self._writer.end()
        for line in self._view.unlisted():
            complain(f"sbbf: {line}", kind="note")


def _rows_of(report: Any) -> Iterable[dict[str, Any]]:
    """Return the rows of a report, with fixes as commands."""
    if isinstance(report, CheckReport):
        return map(to_plain, report.rows(write_command))
    rows: Iterable[dict[str, Any]] = report.plain_rows()
    return rows


class _Text:
    """CSV with a header. Fields of structs have names with a dot; lists are JSON; null is an empty
    field.

    Text is as it is, but escaped for a terminal, and if a CI runner would take a line of it for a
    command.
    """

    def __init__(self, target: OutputTarget, schema: pa.Schema) -> None:
        self._escapes = target.is_terminal
        columns = list(_flat_fields(schema))
        self._paths = [path for _, path in columns]
        self._writer = csv.writer(target, lineterminator="\n")
        self._writer.writerow([name for name, _ in columns])

    def write(self, row: dict[str, Any]) -> None:
        fields = [_field(row, path) for path in self._paths]
        for at, field in enumerate(fields):
            if self._escapes or has_command(field):
                fields[at] = escape(field)
        self._writer.writerow(fields)

    def end(self) -> None:
        pass


def _flat_fields(schema: pa.Schema) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the path of each field; those of a struct are in its place."""
    import pyarrow as pa

    for field in schema:
        if pa.types.is_struct(field.type):
            for name, path in _flat_fields(pa.schema(list(field.type))):
                yield f"{field.name}.{name}", (field.name, *path)
        else:
            yield field.name, (field.name,)


def _field(row: dict[str, Any], path: tuple[str, ...]) -> str:
    """Return the field at a path in a row, as text."""
    value: Any = row
    for name in path:
        if value is None:
            return ""
        value = value[name]
    if value is None or value == []:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return to_json(value)
    return repr(value) if isinstance(value, float) else str(value)


class _Binary:
    """A Parquet file."""

    def __init__(self, target: OutputTarget, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._schema = schema.with_metadata({MARK: b"0"})
        self._writer: Any = pq.ParquetWriter(target.binary(), self._schema)
        self._waiting: list[dict[str, Any]] = []

    def write(self, row: dict[str, Any]) -> None:
        self._waiting.append(row)
        if len(self._waiting) == _ROWS_PER_GROUP:
            self._flush()

    def end(self) -> None:
        if self._waiting:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        try:
            batch = pa.RecordBatch.from_pylist(self._waiting, schema=self._schema)
            self._writer.write_batch(batch)
        except pa.ArrowException as error:
            raise WriteError(f"the rows cannot be written: {error}") from error
        self._waiting.clear()
