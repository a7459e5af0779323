"""What filters that other writers put into files can do to a reader: why this tool writes some of them otherwise.

Each test states a fault of today's engines. When one fails because an engine got better, the advice built on it can go.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from support.engines import ClickHouse, DataFusion, DuckDB, PruningEngine, Spark
from support.questions import absent_value
from support.tables import each

FIXTURES = Path(__file__).parents[2] / "fixtures"
pytestmark = pytest.mark.engines

FLOATS, FLOATS_WITH_FILTERS = FIXTURES / "pyarrow-floats.parquet", FIXTURES / "pyarrow-floats-filters.parquet"
TYPES, TYPES_WITH_FILTERS = FIXTURES / "pyarrow-types.parquet", FIXTURES / "pyarrow-types-filters.parquet"
THOUSAND_BYTES = FIXTURES / "spark-1000-bytes.parquet"


@each("zero", [0.0, -0.0])
def test_datafusion_and_spark_lose_the_other_zero(datafusion_engine: DataFusion, spark_engine: Spark, zero: float) -> None:
    """+0 and -0 are equal and hash differently: a row group that holds only one of them is skipped for a query of the other."""
    for engine in (datafusion_engine, spark_engine):
        assert engine.rows(FLOATS, "wide", zero).num_rows == 4
        assert engine.rows(FLOATS_WITH_FILTERS, "wide", zero).num_rows == 3


def test_spark_loses_nans_with_a_payload(spark_engine: Spark) -> None:
    """NaNs are equal in Spark, which queries the filter for the canonical one only."""
    assert spark_engine.rows(FLOATS, "wide", math.nan).num_rows == 5
    assert spark_engine.rows(FLOATS_WITH_FILTERS, "wide", math.nan).num_rows == 1


def test_duckdb_loses_every_half_float(duckdb_engine: DuckDB) -> None:
    """DuckDB reads FLOAT16 as FLOAT and queries the filter with four bytes where two were hashed."""
    assert duckdb_engine.rows(TYPES, "half", 7.5).num_rows == 1
    assert duckdb_engine.rows(TYPES_WITH_FILTERS, "half", 7.5).num_rows == 0


def test_a_filter_of_1000_bytes_fails_clickhouse(clickhouse_engine: ClickHouse) -> None:
    """Not a multiple of 32; parquet-java writes such sizes on request."""
    with pytest.raises(RuntimeError, match="Invalid bloom filter size"):
        clickhouse_engine.rows(THOUSAND_BYTES, "id", 1000)


def test_a_filter_of_1000_bytes_is_ignored_or_used(duckdb_engine: DuckDB, datafusion_engine: DataFusion, spark_engine: Spark) -> None:
    absent = absent_value(THOUSAND_BYTES, "id")

    assert duckdb_engine.row_groups_read(THOUSAND_BYTES, "id", absent).read == 4
    assert datafusion_engine.row_groups_read(THOUSAND_BYTES, "id", absent).read == 0
    assert spark_engine.row_groups_read(THOUSAND_BYTES, "id", absent).read == 0


def test_a_filter_of_96_bytes_serves_all_four(pruning_engine: PruningEngine) -> None:
    """Three blocks: not a power of two, which the format allows."""
    path = FIXTURES / "spark-96-bytes.parquet"

    assert pruning_engine.row_groups_read(path, "id", absent_value(path, "id")).read < 4
