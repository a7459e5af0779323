"""Rows of a table that are not in the Parquet files that are queried: no value is absent then, and
what was not queried is named."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

import sbbf_tool
from extensions.tables.iceberg.iceberg_tables import open_table, rows, sql_catalog
from support.calls import outcome
from support.ducklakes import SmallLake, fill
from support.tables import each

FILE_ID = "1f0c9a3e-5b7d-4a57-9c8e-2d6b1e0f7a11-0"


@pytest.mark.slow
@each(
    "log, is_absent",
    [
        (None, True),
        (f".{FILE_ID}_20240101000000000.log.1_0-2-2", False),
        (f".{FILE_ID}_20240101000000000.log.12", False),
        (".00000001-d8f8-4d1c-a5b2-000000000000_20240102.log.1_3-0-1", False),
        (f".{FILE_ID}_20240101000000000.log.1_0-2-2.cdc", True),
        (".application_1.log", True),
        (".hoodie_partition_metadata", True),
    ],
)
@each("names", ["h", "h/p=1", "h/*", "."])
def test_log_files_of_hudi(tmp_path, capsys, monkeypatch, log, is_absent, names):
    monkeypatch.chdir(tmp_path)
    path = f"h/p=1/{FILE_ID}_0-1-1_20240101000000000.parquet"
    for folder in ("h/p=1", "h/p=2", "h/.hoodie"):
        os.makedirs(folder)
    pq.write_table(pa.table({"k": ["a", "b", "c"], "id": range(3)}), "f.parquet")
    sbbf_tool.add_filters("f.parquet", ["k"], output=path, allow_table_files=True)
    os.unlink("f.parquet")
    if log is not None:
        Path("h/p=1", log).write_bytes(b"#HUDI#" + b"\0" * 40)
    for command in (
        ("probe", names, "k", "zz"),
        ("explain", names, "k", "zz"),
        ("probe", names, "nothing", "zz"),
    ):
        code, text = outcome(capsys, *command)
        assert (code, "log file of a Hudi table" in text) == (
            (1, False) if is_absent else (0, True)
        ) or command[2] == "nothing"
    assert outcome(capsys, "probe", names, "k", "a")[0] == 0
    assert outcome(capsys, "verify", names)[0] == outcome(capsys, "check", names)[0] == 0
    assert outcome(capsys, "probe", "h", "-c", "k", "--value", "zz", "--where", "p = 2")[0] == 3, (
        "no file of the partition"
    )


def test_data_files_of_another_format(tmp_path, capsys, monkeypatch):
    catalog = sql_catalog(tmp_path)
    table = catalog.create_table("n.t", rows(0, 1).schema)
    table.append(rows(0, 100))
    path = tmp_path / "warehouse" / "x.orc"
    orc.write_table(rows(5000, 2), path)
    names = (
        "column_sizes",
        "value_counts",
        "null_value_counts",
        "nan_value_counts",
        "lower_bounds",
        "upper_bounds",
    )
    file = DataFile.from_args(
        content=DataFileContent.DATA, file_path=f"file://{path}", file_format=FileFormat.ORC,
        partition=Record(), record_count=2,
        file_size_in_bytes=path.stat().st_size, **{name: {} for name in names}, key_metadata=None,
        split_offsets=None, equality_ids=None,
        sort_order_id=None,
    )  # fmt: skip
    file.spec_id = 0
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        update.append_data_file(file)
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  c:\n    type: sql\n    uri: sqlite:///{tmp_path}/catalog.db\n    "
        f"warehouse: file://{tmp_path}/warehouse\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setattr(
        "sbbf_tool.extensions.tables.locate.find_catalog",
        lambda name: "lake" if name == "lake:n.t" else None,
    )
    monkeypatch.setattr(
        "sbbf_tool.extensions.tables.iceberg.table.open_in_catalog",
        lambda name: open_table(catalog),
    )
    for command, code in (
        (("add-filter", "-c", "id", "--in-place"), 0),
        (("inspect",), 0),
        (("verify",), 0),
        (("check",), 0),
        (("advise",), 0),
    ):
        result = outcome(capsys, command[0], "lake:n.t", *command[1:])
        assert (result[0], "in ORC, not Parquet" in result[1] or command[0] == "advise") == (
            code,
            True,
        ), result
    for command in ("probe", "explain"):
        for value in ("5000", "50", "7777"):
            assert outcome(capsys, command, "lake:n.t", "id", value)[0] == 0


@pytest.fixture(params=["sqlite", pytest.param("duckdb", marks=pytest.mark.heavy)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> SmallLake:
    """A catalog as DuckDB 1.5 writes it, whose table has a file, and rows inlined under two
    schemas: `s` was renamed from `name`."""
    pytest.importorskip("duckdb")
    lake = SmallLake(tmp_path, request.param)
    lake.add_file()
    fill(lake.events, "user_id")
    lake.run(
        "update ducklake_column set column_name = 'old_id', end_snapshot = 5 where column_id = 1"
    )
    lake.insert(
        "column",
        column_id=1,
        begin_snapshot=5,
        table_id=1,
        column_name="user_id",
        column_type="int64",
    )
    lake.insert(
        "column",
        column_id=7,
        begin_snapshot=5,
        table_id=1,
        column_name="note",
        column_type="varchar",
        initial_default="none",
    )
    lake.run(
        "create table ducklake_inlined_data_tables(table_id bigint, table_name varchar, "
        "schema_version bigint)"
    )
    for version, columns in (
        (1, "old_id bigint"),
        (2, "user_id bigint, note varchar"),
        (3, "user_id bigint"),
    ):
        name = f"ducklake_inlined_data_1_{version}"
        lake.run(
            f"create table {name}(row_id bigint, begin_snapshot bigint, end_snapshot bigint, "
            f"{columns})"
        )
        lake.insert("inlined_data_tables", table_id=1, table_name=name, schema_version=version)
    lake.insert("inlined_data_1_1", row_id=100, begin_snapshot=4, old_id=5000)
    lake.insert("inlined_data_1_2", row_id=101, begin_snapshot=6, user_id=6000, note="x")
    lake.insert(
        "inlined_data_1_2",
        row_id=102,
        begin_snapshot=6,
        end_snapshot=7,
        user_id=7000,
        note="deleted",
    )
    return lake


@pytest.mark.slow
@each("column, value, may_be_inlined", [
        ("user_id", "5000", True), ("user_id", "6e3", True), ("user_id", "7000", False),
        ("user_id", "9999", False),
        ("user_id", "0x10", True), ("note", "x", True), ("note", "none", True),
        ("note", "deleted", False), ("s.b", "b9999", True),
        ("tags", "q", True),
    ])  # fmt: skip
def test_rows_that_a_ducklake_catalog_keeps(lake, capsys, column, value, may_be_inlined):
    for command in ("probe", "explain"):
        code, text = outcome(capsys, command, lake.events, column, value)
        assert ("the catalog has in place of files" in text) is may_be_inlined
        if column == "user_id":
            assert code == (0 if may_be_inlined else 1) or value.startswith(("0x", "6e"))


def test_a_ducklake_table_without_files(tmp_path, capsys):
    lake = SmallLake(tmp_path, "sqlite")
    assert outcome(capsys, "probe", lake.events, "user_id", "1")[0] == 1
    lake.run(
        "create table ducklake_inlined_data_tables(table_id bigint, table_name varchar, "
        "schema_version bigint)"
    )
    lake.insert(
        "inlined_data_tables", table_id=1, table_name="ducklake_inlined_data_1_1", schema_version=1
    )
    assert outcome(capsys, "probe", lake.events, "user_id", "1")[0] == 3
    lake.run(
        "create table ducklake_inlined_data_1_1(row_id bigint, begin_snapshot bigint, "
        "end_snapshot bigint, user_id bigint)"
    )
    assert outcome(capsys, "probe", lake.events, "user_id", "1")[0] == 1
    lake.insert("inlined_data_1_1", row_id=0, begin_snapshot=3, user_id=1)
    assert [
        outcome(capsys, command, lake.events, "user_id", "1")[0] for command in ("probe", "explain")
    ] == [0, 0]
    assert outcome(capsys, "probe", lake.events, "user_id", "2")[0] == 1
