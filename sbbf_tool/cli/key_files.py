"""Keys in a column of a file: CSV, JSON lines, Parquet or Arrow.

The keys of JSON, Parquet and Arrow have types and are passed on as values; those of a CSV file are
text, in the notation of the queried column. A null among keys matches nothing, as in a join.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sbbf_tool.arguments import as_values
from sbbf_tool.cli.text_checks import ensure_text
from sbbf_tool.hints import suggest, suggest_other_form
from sbbf_tool.numbers import some_of

if TYPE_CHECKING:
    import pyarrow as pa

_CSV = "CSV"
_JSON = "JSON lines"
_PARQUET = "Parquet"
_ARROW = "Arrow"
_KINDS = {
    ".csv": _CSV,
    ".tsv": _CSV,
    ".jsonl": _JSON,
    ".ndjson": _JSON,
    ".parquet": _PARQUET,
    ".parq": _PARQUET,
    ".pq": _PARQUET,
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".ipc": _ARROW,
}
_MAGIC = {b"PAR1": _PARQUET, b"ARRO": _ARROW}
_DELIMITERS = (",", ";", "\t")
_START_BYTES = 4096
_MOST_HEADER_LINES = 1000
_MOST_FIELD = 1 << 26

Blocks = Iterator[Sequence[Any]]


class KeyFile(NamedTuple):
    """A file whose keys are in a column."""

    path: str
    kind: str
    column: str | None
    """The column that the name of the file ends with, after a colon."""

    @property
    def has_text(self) -> bool:
        """Whether the keys are text, as bytes, in the notation of the queried column."""
        return self.kind == _CSV

    @property
    def source(self) -> str:
        """The file as messages name it."""
        return f"values file {self.path}"

    def error(self, reason: str | Exception) -> click.UsageError:
        """Return the error for keys that cannot be read."""
        if isinstance(reason, Exception):
            reason = " ".join(str(reason).split())[:200]
        return click.UsageError(f"{self.source}: {reason}")


class KeyColumn(NamedTuple):
    """The chosen column of a file of keys."""

    name: str
    blocks: Blocks
    """The keys, None for null."""


def find_key_file(name: str) -> KeyFile | None:
    """Return the file with columns that the name of a file of values means; None if it is one of
    lines.

    Only a path that does not exist is split at a colon. Raises click.UsageError if the file has no
    columns.
    """
    path, column = _split_name(name)
    if not os.path.isfile(path):
        return None
    suffix = os.path.splitext(path)[1].lower()
    file = KeyFile(path, _KINDS.get(suffix, ""), column)
    kind = _kind_of(file)
    if kind == _CSV and column is None and not _has_several_fields(path):
        return None
    if kind is not None:
        return file._replace(kind=kind)
    if column is None:
        return None
    reason = f"a file with columns ends with {', '.join(_KINDS)}"
    if file.kind:
        reason = f"the file is not {file.kind}"
    raise file.error(f"cannot choose the column {column}: {reason}")


def read_column(file: KeyFile, queried: str | None) -> KeyColumn:
    """Return the column of keys: the one that is named, the only one, or the one with the name of
    the queried column. Raises click.UsageError, also while the keys are read."""
    return _READERS[file.kind](file, queried)


def _split_name(name: str) -> tuple[str, str | None]:
    """Return the longest path that exists before a colon, and the column after it."""
    path = name
    while path and not os.path.lexists(path):
        path = path.rpartition(":")[0]
    if not path or path == name:
        return name, None
    return path, name[len(path) + 1 :]


def _kind_of(file: KeyFile) -> str | None:
    """Return the format of a file with columns; None if it is one of lines. Raises click.UsageError
    if it cannot be read, or if its bytes are those of neither."""
    try:
        with open(file.path, "rb") as stream:
            start = stream.read(_START_BYTES)
    except OSError as error:
        raise file.error((error.strerror or "unreadable").lower()) from None
    if start[:4] in _MAGIC:
        return _MAGIC[start[:4]]
    if file.kind in (_CSV, _JSON):
        ensure_text(file.source, start.split(b"\n"))
        return file.kind
    # The checks of a file of lines say what other bytes are.
    return None


def _has_several_fields(path: str) -> bool:
    """Return whether a line of a CSV file has a delimiter outside of quotes."""
    with _open_text(path) as stream:
        delimiter = _delimiter_of(path, stream)
        stream.seek(0)
        for line in stream:
            if delimiter not in line:
                continue
            try:
                fields = next(_parse_csv([line], delimiter), [])
            except csv.Error:
                return False
            if len(fields) > 1:
                return True
    return False


def _open_text(path: str) -> Any:
    return open(path, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _delimiter_of(path: str, stream: Iterable[str]) -> str:
    """Return the delimiter in the first line of a file that is not empty."""
    line = next((line for line in stream if not line.isspace()), "")
    if path.lower().endswith(".tsv"):
        return "\t"
    for sign in _DELIMITERS:
        if sign in line:
            return sign
    return ","


def _parse_csv(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    limit = csv.field_size_limit(_MOST_FIELD)
    try:
        yield from csv.reader(lines, delimiter=delimiter)
    finally:
        csv.field_size_limit(limit)


def _choose(names: Sequence[str], file: KeyFile, queried: str | None) -> int:
    """Return the position of the column of keys among those of a file."""
    wanted = file.column
    if wanted is None and len(names) == 1:
        return 0
    if wanted is None and queried in names:
        wanted = queried
    if wanted is None:
        raise file.error(
            f"the file has {len(names)} columns, {some_of(names)}: name one, as "
            f"{file.path}:{names[0]}"
        )
    count = names.count(wanted)
    if count == 1:
        return names.index(wanted)
    if count > 1:
        raise file.error(f"{count} columns of the file have the name {wanted!r}")
    hint = suggest_other_form(wanted, names)
    if hint is None:
        hint = suggest(wanted, names, f"its columns are {some_of(names)}")
    raise file.error(f"the file has no column {wanted!r}; {hint}")


def _read_csv(file: KeyFile, queried: str | None) -> KeyColumn:
    with _open_text(file.path) as stream:
        delimiter = _delimiter_of(file.path, stream)
        stream.seek(0)
        lines = islice(stream, _MOST_HEADER_LINES)
        rows_before = 0
        names = []
        try:
            for row in _parse_csv(lines, delimiter):
                if row:
                    names = row
                    break
                rows_before += 1
        except csv.Error as error:
            raise file.error(error) from None
    if not names:
        return KeyColumn(file.column or "", iter(()))
    position = _choose(names, file, queried)
    blocks = _rows_of_csv(file, delimiter, len(names), position, rows_before + 1)
    return KeyColumn(names[position], blocks)


def _rows_of_csv(
    file: KeyFile, delimiter: str, num_columns: int, position: int, skipped: int
) -> Blocks:
    """Yield the bytes of a column; None for a field that is empty and not in quotes."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # By their positions: the file may have a name twice, or in another encoding.
    names = [str(number) for number in range(num_columns)]
    chosen = names[position]
    try:
        with arrow_csv.open_csv(
            file.path,
            arrow_csv.ReadOptions(column_names=names, skip_rows_after_names=skipped),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types={chosen: pa.binary()},
                include_columns=[chosen],
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        ) as reader:
            for batch in reader:
                yield batch.column(0).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise file.error(error) from None


def _read_json(file: KeyFile, queried: str | None) -> KeyColumn:
    # Not by pyarrow, which takes text that looks like a time for one.
    names: dict[str, None] = {}
    for row in islice(_rows_of_json(file), _MOST_HEADER_LINES):
        names.update(dict.fromkeys(row))
    if not names:
        return KeyColumn(file.column or "", iter(()))
    columns = [*names]
    if file.column is not None and file.column not in names:
        # An object may lack it.
        for row in _rows_of_json(file):
            if file.column in row:
                columns.append(file.column)
                break
    name = columns[_choose(columns, file, queried)]
    return KeyColumn(name, _keys_of_json(file, name))


def _keys_of_json(file: KeyFile, name: str) -> Blocks:
    for row in _rows_of_json(file):
        key = row.get(name)
        if isinstance(key, dict | list):
            raise file.error(f"column {name} has an array or object, which is no key")
        try:
            str(key).encode()
        except UnicodeEncodeError:
            raise file.error(f"{key!r} has half of a character") from None
        yield [key]


def _rows_of_json(file: KeyFile) -> Iterator[dict[str, Any]]:
    with open(file.path, encoding="utf-8-sig") as stream:
        number = 0
        try:
            for line in stream:
                number += 1
                if line.isspace():
                    continue
                row = json.loads(line, parse_float=Decimal)
                if not isinstance(row, dict):
                    raise ValueError("a line must be an object, such as {...}")
                yield row
        except (ValueError, RecursionError) as error:
            place = f"line {number:,}"
            if isinstance(error, UnicodeDecodeError):
                place = f"after line {number:,}"
            text = " ".join(str(error).split())
            raise file.error(f"{place}: {text[:200]}") from None


def _read_arrow(file: KeyFile, queried: str | None) -> KeyColumn:
    import pyarrow as pa
    from pyarrow import parquet

    from sbbf_tool.file.row_file import PYARROW_ERRORS

    reader: Any
    try:
        if file.kind == _PARQUET:
            reader = parquet.ParquetFile(file.path)
            fields = reader.schema_arrow
        else:
            reader = pa.ipc.open_file(pa.OSFile(file.path))
            fields = reader.schema
    except PYARROW_ERRORS as error:
        raise file.error(error) from None
    name = _choose_field(fields, file, queried)

    def blocks() -> Blocks:
        try:
            for batch in _batches_of(reader, name):
                yield as_values(batch.column(batch.schema.names.index(name)))
        except PYARROW_ERRORS as error:
            raise file.error(error) from None

    return KeyColumn(name, blocks())


def _batches_of(reader: Any, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file of Parquet or Arrow, with the column of this name."""
    if hasattr(reader, "iter_batches"):
        yield from reader.iter_batches(columns=[name])
        return
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _choose_field(fields: pa.Schema, file: KeyFile, queried: str | None) -> str:
    """Return the name of a field that can hold keys."""
    import pyarrow as pa

    position = _choose(fields.names, file, queried)
    field = fields.field(position)
    if pa.types.is_nested(field.type):
        raise file.error(f"the column {field.name} has {field.type}, no keys")
    return str(field.name)


_READERS: dict[str, Callable[[KeyFile, str | None], KeyColumn]] = {
    _CSV: _read_csv,
    _JSON: _read_json,
    _PARQUET: _read_arrow,
    _ARROW: _read_arrow,
}
