"""`remove_filters(ours=True)`: a file gets its length and bytes from before the first change by sbbf, or stays as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, remove_filters, repair, resize_filters
from sbbf_tool.errors import LockedError, NothingToDoError, RefusedError, UsageError
from support.defects import miss_values, unreadable_filter, wrong_block, wrong_length
from support.tables import each

CHANGES: dict[str, Callable[[Path], object]] = {
    "add": lambda path: add_filters(path, "name", in_place=True),
    "append": lambda path: add_filters(path, "name", in_place=True, append=True),
    "replace": lambda path: add_filters(path, ["id", "name", "k"], in_place=True, rebuild="all", fpp=0.2),
    "replace by an append": lambda path: add_filters(path, "id", in_place=True, rebuild="all", append=True),
    "remove": lambda path: remove_filters(path, "id", in_place=True),
    "resize": lambda path: resize_filters(path, "id", num_bytes=64, force=True, in_place=True),
}


@pytest.fixture
def path(fixtures: Path, tmp_path: Path) -> Path:
    """A file with filters of one column by DataFusion."""
    return Path(shutil.copy(fixtures / "datafusion-one-column.parquet", tmp_path / "file.parquet"))


@each("second", list(CHANGES))
@each("first", list(CHANGES), every=3)
def test_the_bytes_are_those_from_before_the_first_change(first: str, second: str, path: Path) -> None:
    old = path.read_bytes()
    CHANGES[first](path)
    with suppress(RefusedError, NothingToDoError):  # such as a column that has its filter already
        CHANGES[second](path)
    changed = path.read_bytes()
    assert changed != old
    report = remove_filters(path, ours=True, dry_run=True)
    assert (report.old_bytes, report.new_bytes, path.read_bytes()) == (len(changed), len(old), changed)
    remove_filters(path, ours=True, in_place=True)
    assert path.read_bytes() == old
    with pytest.raises(NothingToDoError):
        remove_filters(path, ours=True, in_place=True)


@each("defect", [miss_values, unreadable_filter, wrong_block, wrong_length])
@each("drop", [False, True])
def test_a_wrong_filter_that_a_repair_removed_does_not_come_back(defect: Callable[[Path], None], drop: bool, path: Path) -> None:
    defect(path)
    repair(path, in_place=True, drop=drop)
    add_filters(path, "id", in_place=True, rebuild="all")
    repaired = path.read_bytes()
    for options in ({"in_place": True}, {"dry_run": True}):
        with pytest.raises(RefusedError, match="is wrong, and would come back"):
            remove_filters(path, ours=True, **options)
    assert path.read_bytes() == repaired


def test_a_file_with_locked_columns_is_refused(fixtures: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(fixtures / "encrypted" / "java-columns.parquet.encrypted", tmp_path / "x.parquet"))
    keys = json.loads((fixtures / "encrypted" / "keys.json").read_text())["keys"]
    old = path.read_bytes()
    add_filters(path, "id", in_place=True, rebuild="all", keys={"keys": keys})
    changed = path.read_bytes()
    with pytest.raises(LockedError):
        remove_filters(path, ours=True, in_place=True, keys={"keys": {name: key for name, key in keys.items() if name != "names"}})
    assert path.read_bytes() == changed
    remove_filters(path, ours=True, in_place=True, keys={"keys": keys})
    assert path.read_bytes() == old


def test_columns_are_not_chosen(path: Path) -> None:
    for options in ({"columns": "id"}, {"compact": True}):
        with pytest.raises(UsageError):
            remove_filters(path, ours=True, in_place=True, **options)


@each("ours", [False, True])
def test_a_repeated_footer_of_a_file_without_row_groups_goes(ours: bool, tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    pq.ParquetWriter(path, pa.schema([("id", pa.int64())])).close()
    old = path.read_bytes()
    footer = old[-8 - int.from_bytes(old[-8:-4], "little") :]
    path.write_bytes(old + footer * 2)
    remove_filters(path, ours=ours, in_place=True)
    assert path.read_bytes() == old
