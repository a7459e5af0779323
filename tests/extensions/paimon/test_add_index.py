"""Adding and removing indexes: what is published, what is carried on, and that no row, entry or
other index changes."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from extensions.paimon.paimon_tables import NewFile, NewTable, TableMaker, columns, contents
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UsageError, WriteError
from sbbf_tool.extensions.avro.file import iter_values, parse_header
from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, build_bloom64
from sbbf_tool.extensions.paimon.corpus import FILE_FIELDS, nullable
from sbbf_tool.extensions.paimon.index_container import build_container
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.paimon.manifest import ADD, DELETE
from sbbf_tool.extensions.paimon.partition import parse_row
from sbbf_tool.extensions.paimon.reports import AddIndexReport
from sbbf_tool.extensions.paimon.table import open_table
from sbbf_tool.extensions.paimon.table_schema import parse_type_text
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
from sbbf_tool.extensions.paimon.verbs.remove_index import remove_paimon_index
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from sbbf_tool.storage.folders import LocalFolders
from support.tables import each


def newest_snapshot(maker: TableMaker) -> dict[str, Any]:
    number = (maker.root / "snapshot" / "LATEST").read_text()
    document: dict[str, Any] = json.loads(
        (maker.root / "snapshot" / f"snapshot-{number}").read_text()
    )
    return document


def records(maker: TableMaker, name: str) -> list[dict[str, Any]]:
    data = (maker.root / "manifest" / name).read_bytes()
    return list(iter_values(data, parse_header(data)))


def index_s(files: Any, maker: TableMaker, **how: Any) -> AddIndexReport:
    return add_paimon_index(maker.root, ["s"], files=files, **how)


@each("threshold, place", [("500 B", "embedded"), ("1 b", "file")])
def test_indexes_are_added_where_there_are_none(
    files: LocalFolders, new_table: NewTable, threshold: str, place: str
) -> None:
    maker = new_table(options={"file-index.in-manifest-threshold": threshold})
    assert index_s(files, maker).new_indexes == ()
    maker.commit(NewFile(columns(0), name="a.parquet"))
    maker.commit(NewFile(columns(100), name="b.parquet"))
    before = contents(maker.root)

    report = index_s(files, maker)

    assert (report.snapshot_before, report.snapshot_after, report.skipped) == (2, 3, ())
    assert [(row.data_file, row.place) for row in report.new_indexes] == [
        ("a.parquet", place),
        ("b.parquet", place),
    ]
    assert "does not name s" in report.notes[0]
    after = contents(maker.root)
    assert after.items() >= before.items() - {("snapshot/LATEST", before["snapshot/LATEST"])}
    new = {name.partition("/")[0] for name in after.keys() - before.keys()}
    assert new == (
        {"manifest", "snapshot", "bucket-0"} if place == "file" else {"manifest", "snapshot"}
    )
    verification = verify_paimon(str(maker.root))
    assert [column.rows for file in verification.files for column in file.columns] == [50, 50]
    assert not verification.has_false_negatives
    assert [
        file.data_file for file in probe_paimon(str(maker.root), "s", ["value 3"]).remaining
    ] == ["a.parquet"]
    assert len(probe_paimon(str(maker.root), "s", ["value 3"], snapshot=2).remaining) == 2


def test_what_the_commit_says(files: LocalFolders, new_table: NewTable) -> None:
    fields = (("id", "BIGINT"), ("s", "STRING"), ("day", "DATE"))
    rest = {
        "indexManifest": "index-manifest-1",
        "statistics": "stat-1",
        "watermark": 7,
        "nextRowId": 99,
        "properties": {"x": "y"},
    }
    rest |= {
        "baseManifestListSize": 1,
        "deltaManifestListSize": 1,
        "uuid": "old",
        "timeMillis": 9_999_999_999_999,
    }
    maker = new_table(fields, partition_keys=("day",), extra_snapshot_fields=rest)
    maker.commit(NewFile(columns(0), partition=(3,)), directory="day=3/bucket-0")
    maker.commit(NewFile(columns(0), partition=(-2,)), directory="day=-2/bucket-0")
    maker.commit(
        NewFile(columns(0), partition=(None,)), directory="day=__DEFAULT_PARTITION__/bucket-0"
    )
    before = newest_snapshot(maker)

    index_s(files, maker)

    after = newest_snapshot(maker)
    assert (
        after["id"],
        after["commitKind"],
        after["commitIdentifier"],
        after["deltaRecordCount"],
        after["totalRecordCount"],
    ) == (4, "COMPACT", (1 << 63) - 1, 0, 150)
    carried = (
        "version",
        "schemaId",
        "indexManifest",
        "statistics",
        "watermark",
        "nextRowId",
        "logOffsets",
        "timeMillis",
    )
    assert {name: after[name] for name in carried} == {name: before[name] for name in carried}
    assert "properties" not in after
    assert after["uuid"] != "old"
    for which in ("base", "delta"):
        assert (
            after[f"{which}ManifestListSize"]
            == (maker.root / "manifest" / after[f"{which}ManifestList"]).stat().st_size
        )
    assert records(maker, after["baseManifestList"]) == maker.manifests
    (manifest,) = records(maker, after["deltaManifestList"])
    assert (
        manifest["_FILE_SIZE"] == (maker.root / "manifest" / manifest["_FILE_NAME"]).stat().st_size
    )
    assert (
        manifest["_NUM_ADDED_FILES"],
        manifest["_NUM_DELETED_FILES"],
        manifest["_MIN_BUCKET"],
        manifest["_MAX_BUCKET"],
    ) == (3, 3, 0, 0)
    date = [parse_type_text("DATE")]
    stats = manifest["_PARTITION_STATS"]
    assert (
        parse_row(stats["_MIN_VALUES"], date),
        parse_row(stats["_MAX_VALUES"], date),
        stats["_NULL_COUNTS"],
    ) == ((-2,), (3,), [2])
    old = {
        entry["_FILE"]["_FILE_NAME"]: entry
        for number in (1, 2, 3)
        for entry in records(maker, f"manifest-{number}")
    }
    for delete, add in zip(*[iter(records(maker, manifest["_FILE_NAME"]))] * 2, strict=True):
        original = old[delete["_FILE"]["_FILE_NAME"]]
        assert delete == original | {"_KIND": 1}
        differences = {
            name for name in add["_FILE"] if add["_FILE"][name] != original["_FILE"][name]
        }
        assert (differences, add["_KIND"]) == ({"_EMBEDDED_FILE_INDEX"}, 0)


def test_files_that_get_no_index(new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(
        NewFile(columns(0), name="indexed.parquet", embedded=b"anything"),
        NewFile(columns(0), name="x.csv"),
        NewFile({"id": pa.array([1])}, name="lacks.parquet"),
        NewFile(columns(0), name="good.parquet"),
    )
    maker.put_schema(1, [(0, "id", "BIGINT"), (1, "s", "STRING"), (2, "newer", "INT")])
    report = add_paimon_index(str(maker.root), [IndexRequest("s"), IndexRequest("newer")])
    assert [row.data_file for row in report.new_indexes] == ["good.parquet"]
    reasons = {file.data_file: file.reason for file in report.skipped if "newer" not in file.reason}
    assert reasons.keys() == {"indexed.parquet", "x.csv", "lacks.parquet"}
    assert "csv" in reasons["x.csv"]
    assert len(report.skipped) == 6


def test_an_index_file_that_is_there_already_is_not_touched(
    files: LocalFolders, new_table: NewTable
) -> None:
    maker = new_table(options={"file-index.in-manifest-threshold": "1 b"})
    maker.commit(NewFile(columns(0), name="a.parquet"))
    stranger = maker.root / "bucket-0" / "a.parquet.index"
    stranger.write_bytes(b"old")
    (row,) = index_s(files, maker).new_indexes
    assert row.path == str(maker.root / "bucket-0" / "a.parquet-1.index")
    assert stranger.read_bytes() == b"old"


@each("threshold", ["1 b", "1 mb"])
def test_an_external_file_gets_an_index_in_the_manifest_alone(
    files: LocalFolders, new_table: NewTable, tmp_path: Path, threshold: str
) -> None:
    options = {
        "file-index.in-manifest-threshold": threshold,
        "data-file.external-paths": f"file://{tmp_path}/else",
    }
    maker = new_table(options=options)
    maker.commit(NewFile(columns(0), name="a.parquet", external_path=f"{tmp_path}/else/a.parquet"))
    assert add_paimon_index(str(maker.root), ["s"], files=files).new_indexes == ()
    report = add_paimon_index(str(maker.root), ["s"], files=files, allow_outside=True)
    assert [row.place for row in report.new_indexes] == (
        ["embedded"] if threshold == "1 mb" else []
    )
    assert [file.reason for file in report.skipped] == (
        [] if report.new_indexes else ["the index would be written outside the table"]
    )
    assert os.listdir(tmp_path / "else") == ["a.parquet"]
    assert not verify_paimon(str(maker.root), allow_outside=True).has_false_negatives


def test_manifests_from_before_file_indexes_are_refused(
    files: LocalFolders, new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a field for embedded indexes in the schema, as before 0.8."""
    maker = new_table()
    monkeypatch.delitem(FILE_FIELDS, "_EMBEDDED_FILE_INDEX")
    monkeypatch.setattr(TableMaker, "_entry", _without_embedded(TableMaker._entry))
    maker.commit(NewFile(columns(0)))
    with pytest.raises(RefusedError, match=r"before 0\.8"):
        index_s(files, maker)


def _without_embedded(entry_of: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def make(maker: TableMaker, kind: int, new: NewFile) -> dict[str, Any]:
        entry = entry_of(maker, kind, new)
        del entry["_FILE"]["_EMBEDDED_FILE_INDEX"]
        return entry

    return make


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("primary key", {"primary_keys": ("id",)}),
    ("some of the columns", {"options": {"data-evolution.enabled": "true"}}),
    ("Iceberg", {"options": {"metadata.iceberg.storage": "table-location"}}),
    ("of type format-table", {"options": {"type": "format-table"}}),
    ("newer Paimon: _CHECKSUM", {"extra_file_fields": {"_CHECKSUM": nullable("long")}}),
    ("newer Paimon: _MAX_MOON", {"extra_list_fields": {"_MAX_MOON": nullable("long")}}),
    ("newer Paimon: moon", {"extra_snapshot_fields": {"moon": 1}}),
    ("version 4", {"extra_snapshot_fields": {"version": 4}}),
]


@each("message, arguments", REFUSED)
def test_tables_this_must_not_be_done_to(
    files: LocalFolders, new_table: NewTable, message: str, arguments: dict[str, Any]
) -> None:
    options = {"file-index.in-manifest-threshold": "1 b"} | arguments.pop("options", {})
    maker = new_table(options=options, **arguments)
    maker.commit(NewFile(columns(0)))
    before = contents(maker.root)
    with pytest.raises(RefusedError, match=message):
        index_s(files, maker)
    assert contents(maker.root) == before


def test_branches_addresses_and_storage_that_only_reads_are_refused(
    files: LocalFolders, new_table: NewTable
) -> None:
    class Reader:
        read = files.read
        list = files.list
        resolve = files.resolve

    maker = new_table()
    maker.commit(NewFile(columns(0)))
    with pytest.raises(RefusedError, match="local"):
        index_s(Reader(), maker)
    branch = new_table(name="table/branch/branch-b")
    branch.commit(NewFile(columns(0)))
    with pytest.raises(RefusedError, match="branch"):
        index_s(files, branch)


class Disturbed(LocalFolders):
    """Local files, but something happens before a path is created: whatever `before` does."""

    def __init__(self, before: Callable[[str], None]) -> None:
        super().__init__()
        self.before = before

    def create(self, path: str, data: bytes) -> None:
        self.before(path)
        super().create(path, data)


@each("threshold", ["500 B", "1 b"])
def test_another_commit_that_comes_first_is_built_upon(
    files: LocalFolders, new_table: NewTable, threshold: str
) -> None:
    maker = new_table(options={"file-index.in-manifest-threshold": threshold})
    stays, goes = (
        NewFile(columns(0), name="stays.parquet"),
        NewFile(columns(100), name="goes.parquet"),
    )
    maker.commit(stays, goes)
    disturbed: list[str] = []

    def commit_first(path: str) -> None:
        if "/snapshot/snapshot-" in path and len(disturbed) < 2:
            disturbed.append(path)
            maker.drop(goes) if len(disturbed) == 1 else maker.commit(
                NewFile(columns(200), name="new.parquet")
            )

    report = index_s(Disturbed(commit_first), maker)

    assert report.snapshot_after == 4
    assert [row.data_file for row in report.new_indexes] == ["stays.parquet"]
    assert [file.data_file for file in report.skipped] == ["goes.parquet"]
    table = open_table(files, str(maker.root))
    assert [live.file.name for live in table.live_files] == ["new.parquet", "stays.parquet"]
    left_in_manifest = {
        name.split("/")[1] for name in contents(maker.root) if name.startswith("manifest/")
    }
    referenced = set(table.manifest_names()) | {
        name for number in range(1, 5) for name in _lists(maker, number)
    }
    assert left_in_manifest == referenced
    assert not (maker.root / "bucket-0" / "goes.parquet.index").exists()
    assert not verify_paimon(str(maker.root)).has_false_negatives


def _lists(maker: TableMaker, number: int) -> list[str]:
    snapshot = json.loads((maker.root / "snapshot" / f"snapshot-{number}").read_text())
    return [snapshot["baseManifestList"], snapshot["deltaManifestList"]]


@pytest.mark.slow
def test_a_writer_that_always_comes_second_gives_up(new_table: NewTable) -> None:
    maker = new_table(options={"file-index.in-manifest-threshold": "1 b"})
    maker.commit(NewFile(columns(0), name="a.parquet"))

    def commit_first(path: str) -> None:
        if "/snapshot/snapshot-" in path:
            maker.commit(NewFile(columns(100)))

    with pytest.raises(RefusedError, match="other commits came first"):
        index_s(Disturbed(commit_first), maker)
    leftovers = contents(maker.root)
    assert not any(
        name.endswith(".index") or ("manifest-list" in name and len(name) > 40)
        for name in leftovers
    )


def test_two_at_the_same_index_file(new_table: NewTable) -> None:
    maker = new_table(options={"file-index.in-manifest-threshold": "1 b"})
    maker.commit(NewFile(columns(0), name="a.parquet"), NewFile(columns(0), name="b.parquet"))
    before = contents(maker.root)
    theirs = maker.root / "bucket-0" / "b.parquet.index"

    def come_first(path: str) -> None:
        if path == str(theirs):
            theirs.write_bytes(b"theirs")

    with pytest.raises(RefusedError, match="another process adds indexes, too") as caught:
        index_s(Disturbed(come_first), maker)
    assert caught.value.file == str(theirs)
    assert contents(maker.root) == before | {"bucket-0/b.parquet.index": b"theirs"}


def test_a_commit_whose_outcome_is_unknown_takes_nothing_away(new_table: NewTable) -> None:
    """The snapshot may be there or not; files that it would need stay."""

    class Vanishing(LocalFolders):
        is_gone = False

        def create(self, path: str, data: bytes) -> None:
            if "/snapshot/snapshot-" in path:
                self.is_gone = True
            self.read(str(maker.root / "schema" / "schema-0"))
            super().create(path, data)

        def read(self, path: str, most: int | None = None) -> bytes:
            if self.is_gone:
                raise OSError(5, "Input/output error", path)
            return super().read(path, most)

    maker = new_table(options={"file-index.in-manifest-threshold": "1 b"})
    maker.commit(NewFile(columns(0), name="a.parquet"))
    with pytest.raises(WriteError, match="it is unknown whether the commit succeeded"):
        index_s(Vanishing(), maker)
    assert "bucket-0/a.parquet.index" in contents(maker.root)


def test_a_lost_answer_is_not_a_lost_commit(new_table: NewTable) -> None:
    """The snapshot was created, but the storage says that the name is taken, as a network file
    system may."""

    class Forgetful(LocalFolders):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            if "/snapshot/snapshot-" in path:
                raise FileExistsError(17, "File exists", path)

    maker = new_table()
    maker.commit(NewFile(columns(0)))
    assert index_s(Forgetful(), maker).snapshot_after == 2
    assert not verify_paimon(str(maker.root)).has_false_negatives


PLACES = each("threshold, place", [("10 kb", "embedded"), ("1 b", "file")])


def make_table(new_table: NewTable, threshold: str = "500 B", **rest: Any) -> TableMaker:
    """Make a table of two commits without indexes."""
    maker = new_table(options={"file-index.in-manifest-threshold": threshold}, **rest)
    maker.commit(NewFile(columns(0), name="a.parquet"))
    maker.commit(NewFile(columns(100), name="b.parquet"))
    return maker


def read_as_paimon_does(root: Path) -> list[str]:
    """Return the data files that Paimon 1.0 and later find: added entries that no manifest deletes.
    Each must be added and deleted once."""
    entries = list(open_table(LocalFolders(), str(root)).entries())
    assert max(Counter((entry.kind, entry.identity) for entry in entries).values()) == 1
    deleted = {entry.identity for entry in entries if entry.kind == DELETE}
    return sorted(
        entry.file.name for entry in entries if entry.kind == ADD and entry.identity not in deleted
    )


def filters_of(root: Path) -> dict[str, list[str]]:
    return {
        file.data_file: [index.column for index in file.indexes]
        for file in inspect_paimon(str(root)).files
    }


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
    assert [[column.column for column in row.columns] for row in report.new_indexes] == [
        ["s"],
        ["s"],
    ]
    assert filters_of(maker.root) == {"a.parquet": ["id", "s"], "b.parquet": ["id", "s"]}
    assert not verify_paimon(str(maker.root)).has_false_negatives


def with_bitmap() -> bytes:
    full = build_bloom64(BloomFilter64(np.full(9, 255, np.uint8), 3))
    return build_container({"id": {"bitmap": b"any bytes"}, "s": {KIND: full}})


def test_indexes_of_other_types_stay(new_table: NewTable) -> None:
    maker = new_table()
    maker.commit(NewFile(columns(0), name="a.parquet", embedded=with_bitmap()))
    remove_paimon_index(str(maker.root))
    ((file,),) = (inspect_paimon(str(maker.root)).files,)
    assert [(index.column, index.kind, index.size) for index in file.indexes] == [
        ("id", "bitmap", 9)
    ]
    add_paimon_index(str(maker.root), ["id"])
    ((file,),) = (inspect_paimon(str(maker.root)).files,)
    assert [(index.column, index.kind) for index in file.indexes] == [
        ("id", "bitmap"),
        ("id", KIND),
    ]
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
    assert (again.new_indexes, [file.reason for file in again.skipped]) == (
        (),
        ["the index has the same filters already"],
    )


def test_renamed_and_former_columns(new_table: NewTable) -> None:
    maker = make_table(new_table)
    add_paimon_index(str(maker.root), ["s", "id"])
    maker.put_schema(1, [(0, "number", "BIGINT")])
    with pytest.raises(UsageError, match="there is no column 'nowhere'"):
        remove_paimon_index(str(maker.root), ["nowhere"])
    assert remove_paimon_index(str(maker.root), ["id"], dry_run=True).removed_indexes == ()
    assert [
        row.columns for row in remove_paimon_index(str(maker.root), ["number"]).removed_indexes
    ] == [("id",)] * 2
    assert [row.columns for row in remove_paimon_index(str(maker.root), ["s"]).removed_indexes] == [
        ("s",)
    ] * 2


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
    assert all(
        "removing unreadable indexes removes it" in file.reason for file in report.unreadable
    )
    assert len(add_paimon_index(str(maker.root), ["s"]).unreadable) == 3
    report = remove_paimon_index(str(maker.root), unreadable=True)
    assert [(row.data_file, row.columns, row.place) for row in report.removed_indexes] == [
        (name, (), "none") for name in ("broken.parquet", "missing.parquet", "several.parquet")
    ]
    files = {
        live.file.name: live.file for live in open_table(LocalFolders(), str(maker.root)).live_files
    }
    assert files["several.parquet"].extra_files == ("kept",)
    assert not inspect_paimon(str(maker.root)).errors
    assert read_as_paimon_does(maker.root) == sorted(files)
    with pytest.raises(
        UsageError, match="unreadable indexes are removed as a whole: name no column"
    ):
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
    maker = new_table(
        options={
            "data-file.external-paths": f"file://{tmp_path}/else",
            "file-index.in-manifest-threshold": "1 b",
        }
    )
    maker.commit(
        NewFile(
            columns(0),
            name="a.parquet",
            external_path=f"{tmp_path}/else/a.parquet",
            extra_files=("a.parquet.index",),
        )
    )
    (tmp_path / "else" / "a.parquet.index").write_bytes(with_bitmap())
    assert remove_paimon_index(str(maker.root)).removed_indexes == ()
    report = remove_paimon_index(str(maker.root), allow_outside=True)
    assert (report.removed_indexes, [file.reason for file in report.skipped]) == (
        (),
        ["the index would be written outside the table"],
    )
    assert sorted(os.listdir(tmp_path / "else")) == ["a.parquet", "a.parquet.index"]


@each("drop_first", [False, True])
def test_a_removal_is_built_upon_another_commit(new_table: NewTable, drop_first: bool) -> None:
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
    assert filters_of(maker.root) == {
        name: [] if drop_first else ["s", "id"] for name in ("a.parquet", "b.parquet")
    }
    assert read_as_paimon_does(maker.root) == ["a.parquet", "b.parquet"]


def test_filters_that_exclude_hardly_any_value_are_left_out(
    new_table: NewTable, capfd: pytest.CaptureFixture[str]
) -> None:
    maker = make_table(new_table)
    report = add_paimon_index(str(maker.root), ["s:items=1,fpp=0.04", "id"])
    assert [[column.column for column in row.columns] for row in report.new_indexes] == [
        ["id"],
        ["id"],
    ]
    assert len(report.refused) == 2
    assert re.fullmatch(
        r"the filter of column s would have a false-positive rate of [\d.]+ %: "
        r"items = 1 for 50 values; it is written only if forced",
        report.refused[0].reason,
    )
    assert not verify_paimon(str(maker.root)).has_false_negatives
    assert run(["paimon", "add-index", str(maker.root), "-c", "s:items=1"]) == 4
    out, err = capfd.readouterr()
    assert "only if forced" in out
    assert err == ""
    assert (
        run(["paimon", "add-index", str(maker.root), "-c", "s:items=1", "--allow", "weak-filters"])
        == 0
    )
    assert filters_of(maker.root) == {"a.parquet": ["id", "s"], "b.parquet": ["id", "s"]}
