"""What `explain` says that an engine reads is what the engine reads."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, explain

from .engines import DataFusion, DuckDB

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten row groups: overlapping ids, sorted ones, and text; some values are there, some are not."""
    folder, random = tmp_path_factory.mktemp("explained"), Random(3)
    ids = random.sample(range(0, 10**6, 2), 10_000)
    names = [f"{number * 2654435761 % 2**32:08x}" for number in ids]
    rows = pa.table({"id": pa.array(ids, pa.int64()), "in_order": pa.array(sorted(ids), pa.int32()), "name": names})
    pq.write_table(rows, folder / "plain.parquet", row_group_size=1000, use_dictionary=False)
    add_filters(folder / "plain.parquet", ["id", "name"], output=folder / "mixed.parquet")
    return folder / "mixed.parquet"


@pytest.mark.parametrize("engine_fixture", ["duckdb_engine", "datafusion_engine"])
def test_engines_read_what_is_said(request: pytest.FixtureRequest, engine_fixture: str, mixed: Path) -> None:
    engine: DuckDB | DataFusion = request.getfixturevalue(engine_fixture)
    rows = pq.read_table(mixed)
    asked = [("id", 500_001), ("id", 77), ("id", -1), ("id", rows["id"][4500].as_py()), ("in_order", rows["in_order"][4500].as_py())]
    asked += [("in_order", 500_001), ("name", "0badcafe"), ("name", rows["name"][9999].as_py()), ("name", "zzz")]
    for column, value in asked:
        (said,) = explain(mixed, column, value, engine_name=engine.name).engines
        # Where min and max rule out the whole file, neither so much as counts its row groups.
        assert engine.row_groups_read(mixed, column, value).read == said.read, (column, value)
