"""Footers without fields that the format calls optional: the same values as in pyarrow and DuckDB, or a refusal."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import fastparquet
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import SbbfError, UnreadableError, UsageError, add_filters, probe
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.structs import parse_struct
from support.corpus_edits import edit_footer
from support.refusals import assert_refused
from support.tables import each

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"]


def leave_out(path: Path, struct: str, name: str, of: str | None = None) -> Path:
    """The same file without the field `name` of every Thrift `struct`, or of those schema elements that are called `of`."""

    def change(metadata: FileMetaData) -> None:
        for value in structs(metadata):
            if type(value).__name__ == struct and of in (None, getattr(value, "name", None)):
                setattr(value, name, None)

    return edit_footer(path, change)


def structs(value: Any) -> Iterator[Any]:
    """Every Thrift struct in a footer."""
    if isinstance(value, list):
        for item in value:
            yield from structs(item)
    elif hasattr(value, "thrift_spec"):
        yield value
        for field in vars(value).values():
            yield from structs(field)


# Repetition types


def test_files_of_fastparquet(tmp_path):
    """It leaves the field out for columns without nulls, but writes levels where the values are strings: every reader takes those for
    a value. Then the page holds as many values as it states, and bytes are left over.
    """
    path = tmp_path / "f.parquet"
    fastparquet.write(str(path), pd.DataFrame({"s": pd.Series(WORDS, dtype=object), "n": range(5)}), has_nulls="infer")
    with ParquetFile.open(path) as file:
        assert {element.repetition_type for element in file.footer.metadata.schema} == {None}
    assert pq.read_table(path).column("s").to_pylist() != WORDS
    work = lambda: add_filters(path, ["n", "s"], in_place=True)  # noqa: E731
    message = "the page has 19 bytes after its last value"
    assert_refused(work, tmp_path, message=message, hint="", place="column s, row group 0, page at byte 4", error=UnreadableError)
    add_filters(path, ["n"], in_place=True)
    assert all(not probe(path, "n", [number]).is_absent for number in range(5))


@each("words", [["", "null", None], [""], ["a", "bb", None, "\0" * 8], [None, ""]])
@each("compression", [None, "GZIP"])
def test_pages_of_fastparquet_are_padded(tmp_path, words, compression):
    """Eight zero bytes follow the values of each page: they are no values, and nothing is wrong with the page."""
    path = tmp_path / "f.parquet"
    frame = pd.DataFrame({"s": pd.Series(words * 50, dtype=object)})
    fastparquet.write(str(path), frame, row_group_offsets=50, compression=compression, has_nulls=True)
    assert pq.read_table(path).column("s").to_pylist() == words * 50
    add_filters(path, ["s"], in_place=True)
    assert not any(probe(path, "s", [word]).is_absent for word in words)
    assert probe(path, "s", ["zeta"]).is_absent


# Every field


def write_pyarrow(path: Path, **options: Any) -> None:
    numbers = range(60)
    columns = {
        "id": (numbers, pa.int64()),
        "u": (numbers, pa.uint32()),
        "s": ([f"name {number % 40}" if number % 5 else None for number in numbers], pa.string()),
        "d": ([number / 8 for number in numbers], pa.float64()),
        "day": ([datetime.date(2024, 1, 1) + datetime.timedelta(number) for number in numbers], pa.date32()),
        "dec": ([decimal.Decimal(number).scaleb(-2) for number in numbers], pa.decimal128(12, 2)),
        "b": ([b"%04d" % number for number in numbers], pa.binary(4)),
        "l": ([[number, number + 100] if number % 3 else None for number in numbers], pa.list_(pa.int32())),
        "g": ([{"x": number} for number in numbers], pa.struct([("x", pa.int32())])),
    }
    schema = pa.schema([pa.field(name, kind, nullable=name not in ("id", "u", "b")) for name, (_, kind) in columns.items()])
    pq.write_table(pa.table([pa.array(*column) for column in columns.values()], schema=schema), path, row_group_size=30, **options)


def write_duckdb(path: Path) -> None:
    duckdb.sql(
        "copy (select i::bigint id, i::uinteger u, case when i % 5 > 0 then 'name ' || i % 40 end s, i / 8.0::double d, "
        f"date '2024-01-01' + i::int as day, i::decimal(12, 2) as dec from range(60) t(i)) to '{path}' (format parquet)"
    )


def write_fastparquet(path: Path) -> None:
    frame = pd.DataFrame({"id": range(60), "d": [number / 8 for number in range(60)], "s": [f"name {number}" for number in range(60)]})
    fastparquet.write(str(path), frame, has_nulls="infer", stats=True)


WRITERS: dict[str, Callable[[Path], None]] = {
    "pyarrow": lambda path: write_pyarrow(path, use_dictionary=False),
    "pyarrow-dictionary": write_pyarrow,
    "pyarrow-v2": lambda path: write_pyarrow(path, data_page_version="2.0", use_dictionary=["s"], compression="zstd"),
    "duckdb": write_duckdb,
    "fastparquet": write_fastparquet,
}


def fields(metadata: FileMetaData) -> list[tuple[str, str, str | None]]:
    """Each field that a struct of this footer has, required ones too; those of schema elements both throughout and one by one."""
    fields_by_id = {}
    for struct in structs(metadata):
        for name, value in vars(struct).items():
            if value is not None:
                fields_by_id[type(struct).__name__, name, None] = None
                if type(struct).__name__ == "SchemaElement":
                    fields_by_id[type(struct).__name__, name, struct.name] = None
    return list(fields_by_id)


@pytest.mark.nightly
@pytest.mark.engines
@each("writer", list(WRITERS))
def test_every_field_left_out(tmp_path, writer):
    """Where pyarrow or DuckDB reads a column, no value of it is absent from the filter that it gets; else it may be refused."""
    whole, path = tmp_path / "whole.parquet", tmp_path / "f.parquet"
    WRITERS[writer](whole)
    with ParquetFile.open(whole) as file:
        metadata, columns = parse_struct(FileMetaData, file.footer.raw), [column.name for column in file.footer.columns]
    compared = 0
    for struct, name, of in fields(metadata):
        for column in columns:
            if of is not None and of not in column.split("."):
                continue
            path.write_bytes(whole.read_bytes())
            leave_out(path, struct, name, of)
            # Of a LogicalType without a member, DuckDB takes converted_type, as we do; pyarrow takes the column for one of plain numbers.
            stored = values_in_pyarrow(path, column) if struct != "LogicalType" else []
            counts = counts_in_duckdb(path, column)
            try:
                add_filters(path, [column], in_place=True)
            except SbbfError as error:
                assert error.exit_code in (2, 3, 4), (struct, name, of, column, error)  # noqa: PT017  any of them will do
                continue
            here = f"{struct}.{name} of {of or 'all'}, column {column}"
            try:
                answers = [probe(path, column, [value]).is_absent for value in stored[:12]]
            except UsageError:
                answers = []  # values of the type that pyarrow reads, not ours
            assert not any(answers), here
            compared += len(answers)
            if counts:
                assert counts_in_duckdb(path, column) == counts, here
                compared += len(counts)
    assert compared > 300


def values_in_pyarrow(path: Path, column: str) -> list[Any]:
    """Distinct values of a leaf as pyarrow reads them; none where it does not."""
    try:
        table = pq.read_table(path, columns=[column.split(".")[0]])
        array = table.column(0).combine_chunks()
        while pa.types.is_nested(array.type):
            array = array.flatten()[0] if pa.types.is_struct(array.type) else array.flatten()
        return array.drop_null().unique().to_pylist()
    except (pa.ArrowException, OSError, IndexError, OverflowError):
        return []


def counts_in_duckdb(path: Path, column: str) -> dict[Any, int]:
    """How many rows DuckDB finds for each value of a column at the top; none where it does not read the file."""
    with duckdb.connect() as connection:
        try:
            connection.execute(f"select distinct {column} from '{path}' where {column} is not null order by 1")
            values = [value for (value,) in connection.fetchall()]
            counts = {}
            for value in values[:10]:
                (counts[value],) = connection.execute(f"select count(*) from '{path}' where {column} = ?", [value]).fetchall()[0]
        except (duckdb.Error, TypeError, OverflowError):
            return {}
        return counts
