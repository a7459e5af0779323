"""`fixtures/README.md` and the files beside it say the same."""

from __future__ import annotations

import re

import pyarrow.parquet as pq
import pytest

from support.facts import FIXTURES

ROWS = re.findall(r"^\| `([\w.-]+\.parquet)` \| (\S+) (\S+?),? ", (FIXTURES / "README.md").read_text(), re.MULTILINE)

CREATED_BY = {
    "pyarrow": "parquet-cpp-arrow version {version}",
    "DataFusion": "datafusion-python",
    "DuckDB": "DuckDB version v{version} ",
    "Spark": "parquet-mr version ",
}

OTHER_TABLES = {
    "events",
    "pyarrow-21-int96",
    "pyarrow-edges",
    "pyarrow-edges-filters",
    "pyarrow-empty",
    "pyarrow-floats",
    "pyarrow-floats-filters",
}
"""Files without the rows of the common table."""


def test_each_file_has_one_row() -> None:
    assert sorted(name for name, _, _ in ROWS) == sorted(path.name for path in FIXTURES.glob("*.parquet"))


@pytest.mark.parametrize(("name", "writer", "version"), ROWS)
def test_the_writer_is_who_the_table_says(name: str, writer: str, version: str) -> None:
    assert name.startswith((writer.lower(), "events"))
    metadata = pq.read_metadata(FIXTURES / name)
    assert metadata.created_by.startswith(CREATED_BY[writer].format(version=version))
    if writer == "Spark":
        assert metadata.metadata[b"org.apache.spark.version"] == version.encode()


@pytest.mark.parametrize("name", [name for name, _, _ in ROWS])
def test_minimum_and_maximum_prune_nothing(name: str) -> None:
    """The row groups of the common table share most of their range in every column that has many values."""
    metadata = pq.read_metadata(FIXTURES / name)
    if name.removesuffix(".parquet") in OTHER_TABLES:
        assert metadata.schema.names[0] != "id" or metadata.num_rows == 0
        return
    assert metadata.num_row_groups > 1
    statistics = [metadata.row_group(n).column(0).statistics for n in range(metadata.num_row_groups)]
    low, high = max(s.min for s in statistics), min(s.max for s in statistics)
    assert high - low > 0.9 * (max(s.max for s in statistics) - min(s.min for s in statistics))


def test_they_stay_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FIXTURES.glob("*.parquet")}

    assert {name for name, size in sizes.items() if size > 60_000} == {"events.parquet"}
    assert sum(sizes.values()) < 1_500_000
