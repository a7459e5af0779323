"""Other readers of Iceberg tables, before and after a commit: PyIceberg, Polars, ClickHouse, and DuckDB in its own environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

from pyiceberg.transforms import IdentityTransform

from sbbf_tool.extensions.tables.iceberg import commit_plan
from support.iceberg_tables import convert, delete_by_position, delete_by_value, ids_of, open_table, rows, source_of

pytestmark = [pytest.mark.slow, pytest.mark.engines]

# ClickHouse reads only below its working folder, and a new process has no earlier version of the table in a cache.
CLICKHOUSE = """
import chdb, sys
table = f"icebergLocal('{sys.argv[1]}', SETTINGS iceberg_metadata_file_path = '{sys.argv[2]}')"
print(chdb.query(f"SELECT * FROM {table} {sys.argv[3]} ORDER BY ALL", "TSV").bytes().decode(), end="")
"""


def metadata_of(catalog):
    return Path(catalog.load_table("n.t").metadata_location.removeprefix("file://"))


def read_clickhouse(catalog, where=""):
    path = metadata_of(catalog)
    folder = path.parent.parent
    command = [sys.executable, "-c", CLICKHOUSE, str(folder), os.path.relpath(path, folder), where]
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return sorted(tuple(line.split("\t")) for line in answer.stdout.splitlines())


def read_polars(catalog):
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    return sorted(polars.scan_iceberg(catalog.load_table("n.t")).collect().rows())


def test_rows_are_the_same_for_every_reader(catalog, monkeypatch):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    table.append(rows(0, 50))
    with table.update_spec() as update:
        update.add_field("day", IdentityTransform(), "day")
    table.append(rows(50, 50))
    with table.update_schema() as update:
        update.rename_column("day", "date")
        update.add_column("size", pa_type())
    table.append(pa.table({"id": [1000], "date": ["d0"], "size": [7]}))
    before = ids_of(table), read_polars(catalog), read_clickhouse(catalog), read_clickhouse(catalog, "WHERE id = 70")
    assert [len(answer) for answer in before] == [101, 101, 101, 1]
    assert convert(open_table(catalog)).num_files == 5
    table.refresh()
    assert (ids_of(table), read_polars(catalog), read_clickhouse(catalog), read_clickhouse(catalog, "WHERE id = 70")) == before
    assert read_clickhouse(catalog, "WHERE id = 101") == []


def pa_type():
    from pyiceberg.types import LongType

    return LongType()


@pytest.mark.parametrize("keeps_number", [True, False])
def test_equality_deletes(catalog, table, tmp_path, monkeypatch, keeps_number):
    """The control, without the data sequence number of the old file, brings rows back."""
    delete_by_value(source_of(catalog), tmp_path / "warehouse/n/t", 1, "id", list(range(50)))
    assert len(read_clickhouse(catalog)) == 150
    if not keeps_number:
        build_entry = commit_plan.build_entry

        def forget_number(entry, status, *arguments, **options):
            record = build_entry(entry, status, *arguments, **options)
            return record if "path" not in options else {**record, "sequence_number": None}

        monkeypatch.setattr(commit_plan, "build_entry", forget_number)
    assert convert(open_table(catalog)).num_files == 2
    assert len(read_clickhouse(catalog)) == (150 if keeps_number else 200)


def test_position_deletes(catalog, table, tmp_path):
    file = next(iter(open_table(catalog).live_files()))
    delete_by_position(source_of(catalog), tmp_path / "warehouse/n/t", {f"file://{file.path}": [0, 1, 2]})
    before = read_clickhouse(catalog)
    assert len(before) == 197
    assert convert(open_table(catalog)).num_files == 1
    assert read_clickhouse(catalog) == before


def test_clickhouse_uses_the_filters(catalog):
    """With the data pages overwritten, only a reader that skips the row group by its filter has an answer."""
    table = catalog.create_table("n.t", schema=pa.schema([("id", pa.int64())]), properties={"write.parquet.dict-size-bytes": "1"})
    table.append(pa.table({"id": pa.array(range(0, 20_000, 2), pa.int64())}))
    convert(open_table(catalog))
    path = Path(next(iter(open_table(catalog).live_files())).path)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    end = (chunk.dictionary_page_offset or start) + chunk.total_compressed_size
    data[start:end] = bytes(end - start)
    path.write_bytes(data)
    assert read_clickhouse(catalog, "WHERE id = 9999") == []
    with pytest.raises(AssertionError):
        read_clickhouse(catalog, "WHERE id = 9998")
