"""Each engine once per test session, started by the first test that needs it, skipped with a reason where it is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support import engines
from support.corpus_pairs import PairMaker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PRUNING = ["duckdb_engine", "datafusion_engine", "clickhouse_engine", "spark_engine"]
_ALL = [*_PRUNING, "pyarrow_engine", "polars_engine", "fastparquet_engine"]


@pytest.fixture(scope="session", params=_PRUNING)
def pruning_engine(request: pytest.FixtureRequest) -> engines.PruningEngine:
    """In turn each engine that uses Bloom filters."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session", params=_ALL)
def engine(request: pytest.FixtureRequest) -> engines.Engine:
    """In turn each engine."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def spark_engine(spark: SparkSession) -> engines.Spark:
    return engines.Spark(spark)


@pytest.fixture(scope="session")
def duckdb_engine() -> engines.DuckDB:
    _need("duckdb")
    return engines.DuckDB()


@pytest.fixture(scope="session")
def datafusion_engine() -> engines.DataFusion:
    _need("datafusion")
    return engines.DataFusion()


@pytest.fixture(scope="session")
def clickhouse_engine() -> Iterator[engines.ClickHouse]:
    _need("chdb")
    engine = engines.ClickHouse()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def pyarrow_engine() -> engines.PyArrow:
    return engines.PyArrow()


@pytest.fixture(scope="session")
def polars_engine() -> engines.Polars:
    _need("polars")
    return engines.Polars()


@pytest.fixture(scope="session")
def fastparquet_engine() -> engines.FastParquet:
    _need("fastparquet")
    return engines.FastParquet()


@pytest.fixture(scope="session")
def pairs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PairMaker:
    """Files of every writer with many types, without filters and with ours."""
    return PairMaker(tmp_path_factory.mktemp("pairs"), lambda: request.getfixturevalue("spark"))


def _need(package: str) -> None:
    pytest.importorskip(package, reason=f"the Python package {package} is not installed")
