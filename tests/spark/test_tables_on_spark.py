"""Tables on Spark: executors make the copies, and the driver commits."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import inspect
from sbbf_tool.cli import run
from sbbf_tool.editing.edit import Edit
from sbbf_tool.extensions.tables.table_run import TableRun
from sbbf_tool.file.context import Context
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.reports.rows import OK
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.table import Change
from sbbf_tool.running.work import Work
from sbbf_tool.spark import pipeline
from sbbf_tool.spark.runner import Spark
from sbbf_tool.verbs.add_filter import AddFilter
from sbbf_tool.verbs.remove_filter import RemoveFilter
from sbbf_tool.verbs.verify import Verify
from support.json_table import JsonTable, copies_in, make_table, rows_of

pytestmark = [pytest.mark.engines, pytest.mark.slow]


@pytest.mark.heavy
def test_executors_make_copies_and_the_driver_commits(tmp_path, spark):
    names = ColumnNames(by_path={("id",): ("user",), ("name",): ("id",)})
    table = make_table(tmp_path / "t", columns=names)
    before = rows_of(table)
    with Spark() as runner:
        run = TableRun(table, Change("ADD BLOOM FILTERS", ("user",)))
        rows = list(
            run.rows(
                runner.run,
                Work(AddFilter(FilterSpec(("user",))), Context(), Edit(in_place=True)),
            )
        )
        assert [row.status for row in rows] == [OK] * 3
        assert {chunk.column for row in rows for chunk in row.report.filters} == {"user"}
        assert (run.commits[0].num_files, len(copies_in(table)), rows_of(table)) == (3, 3, before)
        fresh = JsonTable(Path(table.location), names)
        verified = list(runner.run(Selection(table.name, table=fresh), Work(Verify(), Context())))
        assert {chunk.column for row in verified for chunk in row.report.filters} == {"user"}
        assert {row.status for row in verified} == {OK}
        again = TableRun(fresh, Change("REMOVE BLOOM FILTERS"))
        assert (
            len(list(again.rows(runner.run, Work(RemoveFilter(), Context(), Edit(in_place=True)))))
            == 3
        )
        assert rows_of(table) == before


def test_discover_lists_the_live_files_of_a_table(tmp_path, spark):
    folder = tmp_path / "t"
    for day in range(3):
        rows = pa.table({"id": [day], "day": [f"d{day}"]})
        deltalake.write_deltalake(folder, rows, mode="append", partition_by=["day"])
    deltalake.DeltaTable(folder).delete("day = 'd0'")
    paths = [row.path for row in pipeline.discover(spark, str(folder), table=True).collect()]
    assert sorted(Path(path).parent.name for path in paths) == ["day=d1", "day=d2"]
    assert len(pipeline.discover(spark, str(folder), "day = 'd2'", table=True).collect()) == 1


def test_a_table_of_the_catalog_is_found_by_its_location(tmp_path, spark):
    folder = tmp_path / "t"
    deltalake.write_deltalake(folder, pa.table({"Location": [1]}))
    deltalake.write_deltalake(folder, pa.table({"Location": [2]}), mode="overwrite")
    # Spark's own reader of Parquet files would list those of the old version too.
    spark.sql(f"CREATE TABLE orders_at USING parquet LOCATION '{folder}'")
    try:
        (file,) = pipeline.discover(spark, "orders_at", table=True).collect()
    finally:
        spark.sql("DROP TABLE orders_at")
    assert [file.path] == deltalake.DeltaTable(folder).file_uris()


def test_the_command_takes_tables_of_the_catalog(tmp_path, spark, capsys):
    """A Delta table as TABLE does, with a commit; a table of plain files; and a name that does not
    exist."""
    folder, plain = tmp_path / "t", tmp_path / "plain"
    deltalake.write_deltalake(folder, pa.table({"id": [1, 2]}))
    deltalake.write_deltalake(folder, pa.table({"id": [3]}), mode="overwrite")
    (tmp_path / "plain").mkdir()
    pq.write_table(pa.table({"id": [1]}), plain / "a.parquet")
    spark.sql(f"CREATE TABLE live USING parquet LOCATION '{folder}'")
    spark.sql(f"CREATE TABLE plain USING parquet LOCATION '{plain}'")
    words = ["add-filter", "-c", "id", "--in-place", "--on", "spark"]
    try:
        assert run([*words, "spark:live"]) == 0, capsys.readouterr().err
        assert run([*words, "spark:default.plain"]) == 0, capsys.readouterr().err
        capsys.readouterr()
        assert run([*words, "spark:no_such"]) == 2
        assert (
            "sbbf: there is no table or view `no_such` in Spark's catalog"
            in capsys.readouterr().err
        )
    finally:
        spark.sql("DROP TABLE live")
        spark.sql("DROP TABLE plain")
    table = deltalake.DeltaTable(folder)
    assert table.version() == 2
    (live_file,) = table.file_uris()
    assert len(inspect(live_file).filters) == len(inspect(plain / "a.parquet").filters) == 1
    assert run(["inspect", "spark:live"]) == 2
    assert (
        "spark:live is a table in Spark's catalog: give --on spark too" in capsys.readouterr().err
    )
    assert run(["inspect", "spark:live", str(plain), "--on", "spark"]) == 2
    assert "give it as the only PATH" in capsys.readouterr().err
