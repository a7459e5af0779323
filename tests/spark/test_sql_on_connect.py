"""The functions of SQL, and keys as a DataFrame, on a Spark Connect server to which the client sends this package."""

from __future__ import annotations

import sys

import pytest

from support.lake_folders import connect_server
from support.sql_queries import assert_answers, run_queries

pytestmark = [pytest.mark.engines, pytest.mark.heavy]
pytest.importorskip("pyspark")


def test_queries_of_a_client(tmp_path, fixtures):
    path = fixtures / "pyarrow-filters.parquet"
    with connect_server(tmp_path) as address:
        values = run_queries(sys.executable, address, path)
    assert_answers(values, path)
