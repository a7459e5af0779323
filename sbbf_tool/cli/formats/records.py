"""Rows for other programs, CSV and Parquet: the plain rows of the reports, in the columns of their
Arrow schema."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

from sbbf_tool.cli.formats import MARK, Item, OutputTarget, View
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.spelling import write_command
from sbbf_tool.display import escape, has_command, to_json
from sbbf_tool.errors import WriteError
from sbbf_tool.reports.findings import CheckReport
from sbbf_tool.reports.plain import schema_of, to_plain

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_PER_GROUP = 10_000


class Records:
    """The rows of each report or, for commands that change files, one row per file."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._view, self._is_of_files = view, view.has_rows_of_files
        (report,) = get_args(view.row) or (view.row,)
        schema = schema_of(view.row) if view.has_rows_of_files else report.arrow_schema()
        self._writer = _Text(target, schema) if name == "csv" else _Binary(target, schema)

    def add(self, item: Item) -> None:
        if self._is_of_files:
            self._writer.write(to_plain(item.row))
        for row in (
            _rows_of(item.report) if item.report is not None and not self._is_of_files else ()
        ):
            self._writer.write(row)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        self._writer.end()
        for line in self._view.unlisted():
            complain(f"sbbf: {line}", kind="note")


def _rows_of(report: Any) -> Iterable[dict[str, Any]]:
    """Return the rows of a report, with fixes as commands."""
    return (
        map(to_plain, report.rows(write_command))
        if isinstance(report, CheckReport)
        else report.plain_rows()
    )


class _Text:
    """CSV with a header. Fields of structs have names with a dot; lists are JSON; null is an empty
    field.

    Text is as it is, but escaped for a terminal, and if a CI runner would take a line of it for a
    command.
    """

    def __init__(self, target: OutputTarget, schema: pa.Schema) -> None:
        self._escapes, self._columns = target.is_terminal, _flat_fields(schema)
        self._writer = csv.writer(target, lineterminator="\n")
        self._writer.writerow([name for name, _ in self._columns])

    def write(self, row: dict[str, Any]) -> None:
        fields = [_field(row, path) for _, path in self._columns]
        self._writer.writerow(
            [escape(field) if self._escapes or has_command(field) else field for field in fields]
        )

    def end(self) -> None:
        pass


def _flat_fields(schema: pa.Schema) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name and the path of each field, with the fields of structs in place of the
    struct."""
    import pyarrow as pa

    flat: list[tuple[str, tuple[str, ...]]] = []
    for field in schema:
        if pa.types.is_struct(field.type):
            flat += [
                (f"{field.name}.{name}", (field.name, *path))
                for name, path in _flat_fields(pa.schema(list(field.type)))
            ]
        else:
            flat.append((field.name, (field.name,)))
    return flat


def _field(row: Any, path: tuple[str, ...]) -> str:
    for name in path:
        row = None if row is None else row[name]
    if row is None or row == []:
        return ""
    if isinstance(row, bool):
        return "true" if row else "false"
    if isinstance(row, list):
        return to_json(row)
    return repr(row) if isinstance(row, float) else str(row)


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
            self._writer.write_batch(pa.RecordBatch.from_pylist(self._waiting, schema=self._schema))
        except pa.ArrowException as error:
            raise WriteError(f"the rows cannot be written: {error}") from error
        self._waiting.clear()
