"""Removing indexes from a table, and adding some where others are: no row, no entry and no other index changes."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sbbf_tool.cli import run
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, build_bloom64
from sbbf_tool.extensions.paimon.index_container import build_container, lay_out
from sbbf_tool.extensions.paimon.manifest import ADD, DELETE
from sbbf_tool.extensions.paimon.table import open_table
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
from sbbf_tool.extensions.paimon.verbs.remove_index import remove_paimon_index
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from sbbf_tool.storage.folders import LocalFolders
from support.paimon_tables import NewFile, NewTable, TableMaker, columns
from support.tables import each

PLACES = each("threshold, place", [("10 kb", "embedded"), ("1 b", "file")])


def make_table(new_table: NewTable, threshold: str = "500 B", **rest: Any) -> TableMaker:
    """Make a table of two commits without indexes."""
    maker = new_table(options={"file-index.in-manifest-threshold": threshold}, **rest)
    maker.commit(NewFile(columns(0), name="a.parquet"))
    maker.commit(NewFile(columns(100), name="b.parquet"))
    return maker


def read_as_paimon_does(root: Path) -> list[str]:
    """Return the data files that Paimon 1.0 and later find: added entries that no manifest deletes. Each must be added and deleted once."""
    entries = list(open_table(LocalFolders(), str(root)).entries())
    assert max(Counter((entry.kind, entry.identity) for entry in entries).values()) == 1
    deleted = {entry.identity for entry in entries if entry.kind == DELETE}
    return sorted(entry.file.name for entry in entries if entry.kind == ADD and entry.identity not in deleted)


def filters_of(root: Path) -> dict[str, list[str]]:
    return {file.data_file: [index.column for index in file.indexes] for file in inspect_paimon(str(root)).files}


@PLACES
def test_indexes_come_and_go(new_table: NewTable, threshold: str, place: str) -> None:
    """Each state recurs, and with it the entries of the data files, which Paimon must find each time."""
    maker = make_table(new_table, threshold)
    for number in range(3):
        assert len(add_paimon_index(str(maker.root), ["s"]).new_indexes) == 2
        assert read_as_paimon_does(maker.root) == ["a.parquet", "b.parquet"]
        assert [file.place for file in inspect_paimon(str(maker.root)).files] == [place] * 2
        assert len(probe_paimon(str(maker.root), "s", ["nowhere"]).skipped) == 2
        assert len(remove_paimon_index(str(maker.root), ["s"]).removed_indexes) == 2
        assert read_as_paimon_does(maker.root) == ["a.parquet", "b.parquet"]
        maker.snapshots = open_table(LocalFolders(), str(maker.root)).snapshot.id  # type: ignore[union-attr]
        assert maker.snapshots == 4 + 2 * number
        # When Paimon deletes orphans, the name of the index file is free again.
        for path in maker.root.rglob("*.index"):
            path.unlink()


@PLACES
def test_one_column(new_table: NewTable, threshold: str, place: str) -> None:
    maker = make_table(new_table, threshold)
    add_paimon_index(str(maker.root), ["s", "id"])
    (first, second) = remove_paimon_index(str(maker.root), "s").removed_indexes
    assert (first.columns, first.place, second.place) == (("s",), place, place)
    assert filters_of(maker.root) == {"a.parquet": ["id"], "b.parquet": ["id"]}
    assert not verify_paimon(str(maker.root)).has_false_negatives
    assert len(probe_paimon(str(maker.root), "id", [120]).remaining) == 1
    assert read_as_paimon_does(maker.root) == ["a.parquet", "b.parquet"]
    report = add_paimon_index(str(maker.root), ["s"])
    assert [[column.column for column in row.columns] for row in report.new_indexes] == [["s"], ["s"]]
    assert filters_of(maker.root) == {"a.parquet": ["id", "s"], "b.parquet": ["id", "s"]}
    assert not verify_paimon(str(maker.root)).has_false_negatives


def with_bitmap() -> bytes:
    full = build_bloom64(BloomFilter64(np.full(9, 255, np.uint8), 3))
    return build_container(lay_out({"id": {"bitmap": b"any bytes"}, "s": {KIND: full}}))


def test_indexes_of_other_types_stay(new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(NewFile(columns(0), name="a.parquet", embedded=with_bitmap()))
    remove_paimon_index(str(maker.root))
    ((file,),) = (inspect_paimon(str(maker.root)).files,)
    assert [(index.column, index.kind, index.size) for index in file.indexes] == [("id", "bitmap", 9)]
    add_paimon_index(str(maker.root), ["id"])
    ((file,),) = (inspect_paimon(str(maker.root)).files,)
    assert [(index.column, index.kind) for index in file.indexes] == [("id", "bitmap"), ("id", KIND)]
    assert not verify_paimon(str(maker.root)).has_false_negatives


def test_replace_rebuilds_the_filter_of_the_column(new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(NewFile(columns(0), name="a.parquet", embedded=with_bitmap()))
    assert add_paimon_index(str(maker.root), ["s"]).new_indexes == ()
    assert len(probe_paimon(str(maker.root), "s", ["nowhere"]).skipped) == 0
    add_paimon_index(str(maker.root), ["s:fpp=0.001"], rebuild="all")
    assert len(probe_paimon(str(maker.root), "s", ["nowhere"]).skipped) == 1
    assert filters_of(maker.root) == {"a.parquet": ["id", "s"]}
    again = add_paimon_index(str(maker.root), ["s:fpp=0.001"], rebuild="all")
    assert (again.new_indexes, [file.reason for file in again.skipped]) == ((), ["the index has the same filters already"])


def test_renamed_and_former_columns(new_table: NewTable) -> None:
    maker = make_table(new_table)
    add_paimon_index(str(maker.root), ["s", "id"])
    maker.put_schema(1, [(0, "number", "BIGINT")])
    with pytest.raises(UsageError, match="there is no column 'nowhere'"):
        remove_paimon_index(str(maker.root), ["nowhere"])
    assert remove_paimon_index(str(maker.root), ["id"], dry_run=True).removed_indexes == ()
    assert [row.columns for row in remove_paimon_index(str(maker.root), ["number"]).removed_indexes] == [("id",)] * 2
    assert [row.columns for row in remove_paimon_index(str(maker.root), ["s"]).removed_indexes] == [("s",)] * 2


def test_unreadable_indexes(new_table: NewTable, tmp_path: Path) -> None:
    maker = new_table()
    maker.commit(
        NewFile(columns(0), name="broken.parquet", embedded=b"no container"),
        NewFile(columns(0), name="missing.parquet", extra_files=("missing.parquet.index",)),
        NewFile(columns(0), name="several.parquet", extra_files=("x.index", "kept", "y.index")),
        NewFile(columns(0), name="good.parquet", embedded=with_bitmap()),
    )
    report = remove_paimon_index(str(maker.root), ["s"], dry_run=True)
    assert [row.data_file for row in report.removed_indexes] == ["good.parquet"]
    assert len(report.unreadable) == 3
    assert all("removing unreadable indexes removes it" in file.reason for file in report.unreadable)
    assert len(add_paimon_index(str(maker.root), ["s"]).unreadable) == 3
    report = remove_paimon_index(str(maker.root), unreadable=True)
    assert [(row.data_file, row.columns, row.place) for row in report.removed_indexes] == [
        (name, (), "none") for name in ("broken.parquet", "missing.parquet", "several.parquet")
    ]
    files = {live.file.name: live.file for live in open_table(LocalFolders(), str(maker.root)).live_files}
    assert files["several.parquet"].extra_files == ("kept",)
    assert not inspect_paimon(str(maker.root)).errors
    assert read_as_paimon_does(maker.root) == sorted(files)
    with pytest.raises(UsageError, match="unreadable indexes are removed as a whole: name no column"):
        remove_paimon_index(str(maker.root), ["s"], unreadable=True)


def test_an_index_that_cannot_be_read_now_is_not_removed(new_table: NewTable) -> None:
    class Failing(LocalFolders):
        def read(self, path: str, most: int | None = None) -> bytes:
            if path.endswith(".index"):
                raise OSError(5, "Input/output error", path)
            return super().read(path, most)

    maker = make_table(new_table, "1 b")
    add_paimon_index(str(maker.root), ["s"])
    report = remove_paimon_index(str(maker.root), unreadable=True, files=Failing())
    assert (report.removed_indexes, report.snapshot_after) == ((), None)
    assert len(report.unreadable) == 2


def test_an_index_outside_the_table_is_skipped(new_table: NewTable, tmp_path: Path) -> None:
    maker = new_table(options={"data-file.external-paths": f"file://{tmp_path}/else", "file-index.in-manifest-threshold": "1 b"})
    maker.commit(NewFile(columns(0), name="a.parquet", external_path=f"{tmp_path}/else/a.parquet", extra_files=("a.parquet.index",)))
    (tmp_path / "else" / "a.parquet.index").write_bytes(with_bitmap())
    assert remove_paimon_index(str(maker.root)).removed_indexes == ()
    report = remove_paimon_index(str(maker.root), allow_outside=True)
    assert (report.removed_indexes, [file.reason for file in report.skipped]) == ((), ["the index would be written outside the table"])
    assert sorted(os.listdir(tmp_path / "else")) == ["a.parquet", "a.parquet.index"]


@each("drop_first", [False, True])
def test_another_commit_that_comes_first_is_built_upon(new_table: NewTable, drop_first: bool) -> None:
    maker = make_table(new_table)
    add_paimon_index(str(maker.root), ["s"])

    class Disturbed(LocalFolders):
        is_disturbed = False

        def create(self, path: str, data: bytes) -> None:
            if "/snapshot/snapshot-" in path and not self.is_disturbed:
                self.is_disturbed = True
                if drop_first:
                    remove_paimon_index(str(maker.root))
                else:
                    add_paimon_index(str(maker.root), ["id"])
            super().create(path, data)

    report = remove_paimon_index(str(maker.root), files=Disturbed())
    assert (len(report.removed_indexes), len(report.skipped)) == (0, 2)
    assert filters_of(maker.root) == {name: [] if drop_first else ["s", "id"] for name in ("a.parquet", "b.parquet")}
    assert read_as_paimon_does(maker.root) == ["a.parquet", "b.parquet"]


def test_filters_that_exclude_hardly_any_value_are_left_out(new_table: NewTable, capfd: pytest.CaptureFixture[str]) -> None:
    maker = make_table(new_table)
    report = add_paimon_index(str(maker.root), ["s:items=1,fpp=0.04", "id"])
    assert [[column.column for column in row.columns] for row in report.new_indexes] == [["id"], ["id"]]
    assert len(report.refused) == 2
    assert re.fullmatch(
        r"the filter of column s would have a false-positive rate of [\d.]+ %: items = 1 for 50 values; it is written only if forced",
        report.refused[0].reason,
    )
    assert not verify_paimon(str(maker.root)).has_false_negatives
    assert run(["paimon", "add-index", str(maker.root), "-c", "s:items=1"]) == 4
    out, err = capfd.readouterr()
    assert "only if forced" in out
    assert err == ""
    assert run(["paimon", "add-index", str(maker.root), "-c", "s:items=1", "--force"]) == 0
    assert filters_of(maker.root) == {"a.parquet": ["id", "s"], "b.parquet": ["id", "s"]}
