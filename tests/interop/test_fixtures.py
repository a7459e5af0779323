"""`fixtures/README.md` and the files beside it say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq

from support.tables import each

FIXTURES = Path(__file__).parents[2] / "fixtures"
ROWS = re.findall(
    r"^\| `([\w.-]+\.parquet)` \| (\S+) (\S+?),? ",
    (FIXTURES / "README.md").read_text(),
    re.MULTILINE,
)

CREATED_BY = {
    "pyarrow": "parquet-cpp-arrow version {version}",
    "DataFusion": "datafusion-python",
    "DuckDB": "DuckDB version v{version} ",
    "Spark": "parquet-mr version ",
}

"""Files without the rows of the common table."""


def test_each_file_has_one_row() -> None:
    assert sorted(name for name, _, _ in ROWS) == sorted(
        path.name for path in FIXTURES.glob("*.parquet")
    )


@each("name, writer, version", ROWS)
def test_the_writer_is_who_the_table_says(name: str, writer: str, version: str) -> None:
    assert name.startswith((writer.lower(), "events"))
    metadata = pq.read_metadata(FIXTURES / name)
    assert metadata.created_by.startswith(CREATED_BY[writer].format(version=version))
    if writer == "Spark":
        assert metadata.metadata[b"org.apache.spark.version"] == version.encode()
