"""A DuckLake table whose data is in S3: copies beside the objects, and paths in the catalog."""

from __future__ import annotations

import pytest

from sbbf_tool import inspect
from sbbf_tool.cli import run
from sbbf_tool.errors import WriteError
from sbbf_tool.extensions.tables.ducklake.table import DuckLakeTable
from sbbf_tool.extensions.tables.lake_table import Replacement
from support.ducklakes import CHANGE, SmallLake

pytestmark = pytest.mark.slow


@pytest.fixture
def lake(bucket, tmp_path) -> SmallLake:
    lake = SmallLake(tmp_path, "sqlite")
    lake.run("update ducklake_metadata set value = ? where key = 'data_path'", bucket.url("lake/"))
    for number in (1, 2):
        path = lake.write_file(tmp_path / f"{number}.parquet")
        bucket.put(f"lake/main/events/{number}.parquet", path.read_bytes())
        lake.insert(
            "data_file", data_file_id=number, table_id=1, begin_snapshot=3, path=f"{number}.parquet", path_is_relative=True,
            file_format="parquet", record_count=100, file_size_bytes=path.stat().st_size, footer_size=1,
        )  # fmt: skip
    return lake


def test_a_run(lake, bucket):
    table = DuckLakeTable(lake.events)
    assert table.location == bucket.url("lake/main/events")
    assert run(["add-filter", lake.events, "-c", "user_id", "--in-place"]) == 0
    urls = [file.path for file in DuckLakeTable(lake.events).live_files()]
    stored = lake.run("select path, file_size_bytes, footer_size from ducklake_data_file order by data_file_id")
    for url, (path, size, footer) in zip(urls, stored, strict=True):
        assert url == bucket.url(f"lake/main/events/{path}")
        data = bucket.get(f"lake/main/events/{path}")
        assert (size, footer) == (len(data), int.from_bytes(data[-8:-4], "little"))
        assert {chunk.column for chunk in inspect(url).filters} == {"user_id"}
    scheduled = lake.run("select path, path_is_relative from ducklake_files_scheduled_for_deletion order by 1")
    assert scheduled == [("main/events/1.parquet", 1), ("main/events/2.parquet", 1)]
    assert len(bucket.list_keys()) == 4


def test_a_copy_that_is_missing(lake, bucket):
    table = DuckLakeTable(lake.events)
    url = bucket.url("lake/main/events/1.parquet")
    with pytest.raises(WriteError, match="none"):
        table.commit([Replacement(url, bucket.url("lake/main/events/none.parquet"), 1, 0)], CHANGE)
    assert lake.run("select count(*) from ducklake_files_scheduled_for_deletion") == [(0,)]
