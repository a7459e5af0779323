"""The adapters report correctly: a later test that states "this engine used our filter" is able to fail.

The same rows with filters and without, both by pyarrow, and an absent value between the minimum and the maximum of every row
group. With filters an engine skips row groups; without, or with filters disabled, it reads every one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sbbf_tool import add_filters
from support.engines import Engine, PruningEngine, Spark
from support.questions import absent_value, matching, present_value
from support.tables import each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines

FIXTURES = Path(__file__).parents[2] / "fixtures"
COLUMNS = ["id", "k", "price", "ratio", "name", "uuid", "tag", "blob", "maybe"]
"""Those of `*-plain.parquet` and `*-filters.parquet` that can have a filter."""
UNUSED = {"clickhouse": {"price", "ratio"}}
"""Columns of whose types an engine uses no filters."""
PLAIN = FIXTURES / "pyarrow-plain.parquet"
WITH_FILTERS = FIXTURES / "pyarrow-filters.parquet"


@each("column", COLUMNS)
def test_an_absent_value_is_skipped_by_the_filters_alone(pruning_engine: PruningEngine, column: str) -> None:
    absent = absent_value(WITH_FILTERS, column)

    assert pruning_engine.row_groups_read(PLAIN, column, absent) == (4, 4)
    if pruning_engine.can_ignore_filters:
        assert pruning_engine.row_groups_read(WITH_FILTERS, column, absent, filters=False) == (4, 4)
    assert _skips(pruning_engine, WITH_FILTERS, column) == (column not in UNUSED.get(pruning_engine.name, ()))


@each("writer", ["spark", "duckdb", "datafusion", "pyarrow"])
def test_filters_of_every_writer_are_used(pruning_engine: PruningEngine, writer: str) -> None:
    assert _skips(pruning_engine, FIXTURES / f"{writer}-filters.parquet", "id")


@each("column", ["id", "ratio", "name"])
def test_a_list_is_skipped_when_every_value_is_absent(pruning_engine: PruningEngine, column: str) -> None:
    absent, present = absent_value(WITH_FILTERS, column), present_value(WITH_FILTERS, column)
    is_used = column not in UNUSED.get(pruning_engine.name, ())

    assert (pruning_engine.row_groups_read(WITH_FILTERS, column, [absent, absent]).read < 4) == is_used
    assert pruning_engine.row_groups_read(WITH_FILTERS, column, [absent, present]).read >= 1
    assert pruning_engine.row_groups_read(WITH_FILTERS, column, present).read >= 1


@each("column", COLUMNS)
def test_every_engine_finds_the_rows(engine: Engine, column: str) -> None:
    absent, present = absent_value(WITH_FILTERS, column), present_value(WITH_FILTERS, column)

    assert engine.rows(WITH_FILTERS, column, absent).num_rows == 0
    for operand in (present, [absent, present]):
        assert engine.rows(WITH_FILTERS, column, operand).equals(matching(WITH_FILTERS, column, operand))


def _skips(engine: PruningEngine, path: Path, column: str) -> bool:
    scan = engine.row_groups_read(path, column, absent_value(path, column))
    assert scan.total == 4
    return scan.read < scan.total


def test_sparks_own_output_folder(spark: SparkSession, spark_engine: Spark, tmp_path: Path) -> None:
    """Next to each file Spark leaves a checksum of the old bytes, and it refuses a file that does not match."""
    folder = tmp_path / "written_by_spark"
    spark.range(0, 4000, 10).coalesce(1).write.option("parquet.block.row.count.limit", 100).parquet(str(folder))
    (part,) = folder.glob("part-*.parquet")
    assert (folder / f".{part.name}.crc").exists()

    add_filters(part, ["id"], in_place=True)

    assert spark.read.parquet(str(folder)).count() == 400
    assert spark_engine.row_groups_read(part, "id", 55).read == 0
