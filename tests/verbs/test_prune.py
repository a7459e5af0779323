"""`prune`: readers that never query a filter get the same rows and read fewer bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UnreadableError, UsageError

ROWS, ROW_GROUP_ROWS, FILES = 40_000, 10_000, 4
DAYS = (1, 2)


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Path:
    """Files in folders `day=1` and `day=2`, of a random even `id` spread over everything, with filters; `name` has none."""
    folder = tmp_path_factory.mktemp("lake")
    random = np.random.default_rng(3)
    for number in range(FILES):
        path = folder / f"day={DAYS[number % 2]}" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        ids = random.integers(0, 1 << 40, ROWS) * 2
        ids[:2] = 0, 1 << 41
        table = pa.table({"id": ids, "number": range(number * ROWS, (number + 1) * ROWS), "name": [f"n{n}" for n in range(ROWS)]})
        pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS)
        sbbf_tool.add_filters(path, ["id"], in_place=True)
    return folder


def some_id(lake: Path, number: int, row: int) -> int:
    (path,) = lake.glob(f"*/{number}.parquet")
    return pq.read_table(path, columns=["id"], partitioning=None)["id"][row].as_py()


def test_a_pruned_dataset_gives_the_same_rows_and_reads_fewer_bytes(lake):
    whole = ds.dataset(str(lake), partitioning="hive", format="parquet")
    for value in (some_id(lake, 1, 25_000), (1 << 40) + 1):
        condition = ds.field("id") == value
        expected = whole.to_table(filter=condition)
        report = sbbf_tool.prune(whole, "id", [value])
        rows = report.dataset().to_table(filter=condition)
        assert rows.equals(expected)
        assert rows.schema.names == ["id", "number", "name", "day"]
        assert report.bytes_to_read < report.total_bytes / 4
        assert report.row_groups <= 2
        assert report.skipped_by_filter == report.total_row_groups - report.row_groups
    assert expected.num_rows == 0


def test_row_groups_outside_the_dataset_stay_outside(lake):
    value = some_id(lake, 0, 5)
    whole = ds.dataset(lake, partitioning="hive")
    with pytest.raises(UsageError, match="prune first, then filter"):
        sbbf_tool.prune(whole.filter(ds.field("day") == 2), "id", [value])
    subsets = [fragment.subset(row_group_ids=[1, 3]) for fragment in whole.get_fragments()]
    half = ds.FileSystemDataset(subsets, whole.schema, whole.format, whole.filesystem)
    report = sbbf_tool.prune(half, "number", [ROWS // 4 * 3 + 1, 1])
    assert report.total_row_groups == FILES * 2
    assert [file.row_groups for file in report.files] == [(3,)]


def test_a_union_of_datasets_is_pruned(lake):
    parts = [ds.dataset(lake / f"day={day}") for day in DAYS]
    value = some_id(lake, 1, 3)
    report = sbbf_tool.prune(ds.dataset(parts), "id", [value])
    assert report.total_files == FILES
    assert report.dataset().to_table(filter=ds.field("id") == value).num_rows == 1


def test_a_file_without_the_column_remains(lake, tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"something": [1, 2]}), path)
    report = sbbf_tool.prune([*sorted(lake.glob("*/*.parquet")), path], "number", [-1])
    assert [file.file for file in report.files] == [str(path)]
    assert report.warnings[0].startswith(f"{path}: not pruned: there is no column 'number'")


def test_invalid_requests_are_usage_errors(lake, tmp_path):
    with pytest.raises(UsageError, match="no column 'idd'"):
        sbbf_tool.prune(lake, "idd", [1])
    with pytest.raises(UsageError, match="no value"):
        sbbf_tool.prune(lake, "id", [])
    with pytest.raises(UsageError):
        sbbf_tool.prune(lake, "id", ["not a number"])
    with pytest.raises(UnreadableError):
        sbbf_tool.prune(tmp_path / "none", "id", [1])
    with pytest.raises(UsageError, match="must consist of Parquet files"):
        sbbf_tool.prune(ds.dataset(pa.table({"id": [1]})), "id", [1])


def test_the_root_of_a_table_is_refused_and_its_dataset_is_pruned(fixtures, tmp_path):
    """After `add-filter`, the folder has the files of two versions, and each row twice."""
    deltalake = pytest.importorskip("deltalake")
    shutil.copytree(fixtures / "delta" / "orders", tmp_path / "orders")
    assert run(["add-filter", str(tmp_path / "orders"), "-c", "user_id", "--in-place"]) == 0
    table = deltalake.DeltaTable(tmp_path / "orders").to_pyarrow_dataset()
    user = table.to_table(columns=["user_id"])["user_id"][5].as_py()

    with pytest.raises(RefusedError, match=r"the folder is a Delta table, and also has files of its earlier versions; give a dataset"):
        sbbf_tool.prune(tmp_path / "orders", "user_id", [user])
    is_user = ds.field("user_id") == user
    rest = sbbf_tool.prune(table, "user_id", [user]).dataset()
    assert rest.to_table(filter=is_user).num_rows == table.to_table(filter=is_user).num_rows > 0
