"""An index that executors build is the one that this machine builds; a view has the files that may
hold a value."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from extensions.index.lakes_of_all_kinds import values_of, write_lake
from sbbf_tool import run
from sbbf_tool.extensions.index.build import build_index, update_index
from sbbf_tool.extensions.index.lake_index import prune_index
from sbbf_tool.spark.runner import Spark
from sbbf_tool.spark.source import SbbfDataSource
from sbbf_tool.verbs import Probe


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return write_lake(tmp_path / "lake", "int64", 14)


def units(index: Path) -> list[dict[str, object]]:
    (path,) = index.glob("*.units.parquet")
    rows = pq.read_table(path).drop_columns(["position"]).to_pylist()
    return sorted(rows, key=lambda row: (row["path"], row["row_group"]))


def blocks(index: Path) -> pa.Table:
    (path,) = index.glob("*.blocks.parquet")
    return pq.read_table(path)


def test_executors_build_the_same_index(spark, lake, tmp_path):
    here, there = tmp_path / "here.sbbfx", tmp_path / "there.sbbfx"
    one, other = build_index(lake, "v", str(here)), build_index(lake, "v", str(there), on=Spark())
    assert (one.files, one.units, one.filter_bytes, one.data_bytes) == (
        other.files,
        other.units,
        other.filter_bytes,
        other.data_bytes,
    )
    assert units(here) == units(there)
    assert sorted(blocks(here).column(0).to_pylist()) == sorted(blocks(there).column(0).to_pylist())
    for value in values_of(lake, 20):
        assert prune_index(here, {"v": [value]}) == prune_index(there, {"v": [value]})
    (lake / "000.parquet").unlink()
    assert update_index(str(there), on=Spark()).vanished_files == 1
    value = values_of(lake, 1)[0]
    of_spark = {row.path: row.report for row in run(Probe("v", [value]), there, on=Spark())}
    assert of_spark == {row.path: row.report for row in run(Probe("v", [value]), there)}


def test_a_view_has_the_files_of_a_value(spark, lake, tmp_path):
    index = str(tmp_path / "lake.sbbfx")
    build_index(lake, "v", index, false_files=0.01)
    spark.dataSource.register(SbbfDataSource)
    first, second = values_of(lake, 9)[::8]
    rows = (
        spark.read.format("sbbf")
        .option("index", "true")
        .option("where", f"v IN ({first}, {second})")
        .load(index)
        .collect()
    )
    assert {row.file for row in rows} == set(prune_index(index, {"v": [first, second]}))
    assert {row.status for row in rows} == {"ok"}
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW hits USING sbbf OPTIONS (path '{index}', index "
        f"'true', where 'v = {first}')"
    )
    assert {row.file for row in spark.sql("SELECT file FROM hits").collect()} == set(
        prune_index(index, {"v": [first]})
    )
    with pytest.raises(Exception, match="needs the option 'where'"):
        spark.read.format("sbbf").option("index", "true").load(index).collect()
