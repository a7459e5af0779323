"""Rows for other programs: CSV and Parquet, both from the Arrow form of the reports."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast, get_args

from sbbf_tool.cli.formats import Item, View
from sbbf_tool.cli.formats.target import MARK, OutputTarget
from sbbf_tool.cli.spelling import write_command
from sbbf_tool.display import escape, has_command, to_json
from sbbf_tool.errors import WriteError
from sbbf_tool.reports.arrow import schema_of, to_batch
from sbbf_tool.reports.findings import CheckReport, FindingRow
from sbbf_tool.reports.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH, _ROWS_PER_BATCH = 1000, 1 << 16


class Records:
    """Rows in batches: of each report or, for commands that change files, one row per file."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._row = view.row
        self._is_of_files = view.has_rows_of_files
        (report,) = get_args(view.row) or (view.row,)
        schema = schema_of(view.row) if view.has_rows_of_files else cast(type[Tabular], report).arrow_schema()
        self._writer = _Text(target, schema) if name == "csv" else _Binary(target, schema)
        self._waiting: list[Item] = []

    def add(self, item: Item) -> None:
        if self._is_of_files or item.report is not None:
            self._waiting.append(item)
        if len(self._waiting) >= _BATCH:
            self._flush()

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        self._flush()
        self._writer.end()

    def _flush(self) -> None:
        for batch in self._batches():
            self._writer.write(batch)
        self._waiting.clear()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._is_of_files:
            yield to_batch(self._row, [item.row for item in self._waiting])
        else:
            yield from _merge_batches(batch for item in self._waiting for batch in _batches_of(item.report))


def _batches_of(report: Any) -> Iterable[pa.RecordBatch]:
    """Return the rows of a report, with fixes as commands."""
    if not isinstance(report, CheckReport):
        return cast("Iterable[pa.RecordBatch]", report.to_batches())
    return [to_batch(FindingRow, report.rows(write_command))] if report.findings else []


def _merge_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge small batches, since each becomes a row group of a Parquet report."""
    import pyarrow as pa

    parts: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        parts.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS_PER_BATCH:
            yield from pa.Table.from_batches(parts).combine_chunks().to_batches()
            parts, rows = [], 0
    if rows:
        yield from pa.Table.from_batches(parts).combine_chunks().to_batches()


class _Text:
    """CSV with a header. Fields of structs have names with a dot; lists are JSON; null is an empty field.

    Text is as it is, but escaped for a terminal, and if a CI runner would take a line of it for a command.
    """

    def __init__(self, target: OutputTarget, schema: pa.Schema) -> None:
        self._target = target
        self._write_line([name for name, _ in _flat_fields(schema)])

    def write(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            fields = [_field(row, path) for _, path in _flat_fields(batch.schema)]
            self._write_line([escape(field) if self._target.is_terminal or has_command(field) else field for field in fields])

    def end(self) -> None:
        pass

    def _write_line(self, fields: list[str]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(fields)
        self._target.write(line.getvalue())


def _flat_fields(schema: pa.Schema) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name and the path of each field, with the fields of structs in place of the struct."""
    import pyarrow as pa

    flat: list[tuple[str, tuple[str, ...]]] = []
    for field in schema:
        if pa.types.is_struct(field.type):
            flat += [(f"{field.name}.{name}", (field.name, *path)) for name, path in _flat_fields(pa.schema(list(field.type)))]
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

    def write(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        try:
            self._writer.write_batch(batch.replace_schema_metadata(self._schema.metadata))
        except pa.ArrowException as error:
            raise WriteError(f"the rows cannot be written: {error}") from error

    def end(self) -> None:
        self._writer.close()
