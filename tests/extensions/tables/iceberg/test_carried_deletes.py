"""Position deletes that a commit carries over to the copies of data files: which apply, what the
new delete files say, and which old ones leave the snapshot."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

from pyiceberg.table.snapshots import Operation

from extensions.tables.iceberg.iceberg_tables import (
    ADD,
    RacingSource,
    convert,
    delete_by_position,
    delete_by_value,
    deletes_of,
    ids_of,
    make_copies,
    make_copy,
    open_static,
    open_table,
    rows,
    source_of,
    to_hadoop,
)
from sbbf_tool.cli import run
from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.iceberg import table as iceberg_table
from sbbf_tool.extensions.tables.iceberg.deletes import DataFileKey, DeleteIndex
from sbbf_tool.extensions.tables.iceberg.manifest import FILE_PATH_ID, IcebergEntry
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable, open_folder

pytestmark = pytest.mark.slow


def locations_of(table):
    """The locations of the live files, in the order of their first `id`."""
    files = {}
    for task in table.scan().plan_files():
        path = task.file.file_path
        files[pq.read_table(path.removeprefix("file://"))["id"][0].as_py()] = path
    return [files[number] for number in sorted(files)]


def rows_of_all_snapshots(table):
    table.refresh()
    snapshots = [snapshot.snapshot_id for snapshot in table.snapshots()]
    return {
        number: sorted(table.scan(snapshot_id=number).to_arrow()["id"].to_pylist())
        for number in snapshots
    }


@pytest.mark.parametrize("has_bounds", [False, True])
def test_each_copy_gets_a_delete_file_of_its_own(catalog, table, tmp_path, has_bounds):
    first, second = locations_of(table)
    source = source_of(catalog)
    folder = tmp_path / "warehouse"
    delete_by_position(source, folder, {first: [3, 99], second: [0]}, bounds=has_bounds)
    delete_by_position(source, folder, {first: [50, 3]}, bounds=has_bounds)
    before = rows_of_all_snapshots(table)
    assert convert(open_table(catalog)).num_files == 2
    after = rows_of_all_snapshots(table)
    assert after.items() >= before.items()
    copies = locations_of(table)
    assert ids_of(table) == [number for number in range(200) if number not in (3, 50, 99, 100)]
    live, removed = deletes_of(source_of(catalog))
    assert len(removed) == 2
    assert all(Path(entry.path.removeprefix("file://")).is_file() for entry in removed)
    positions = {}
    snapshot = source.load().metadata.current
    for entry in live:
        location = entry.file["referenced_data_file"]
        assert entry.bounds_of(FILE_PATH_ID) == (location.encode(),) * 2
        assert (entry.file["sort_order_id"], entry.record["sequence_number"]) == (None, None)
        assert entry.sequence_number == snapshot.sequence_number
        path = entry.path.removeprefix("file://")
        content = pq.read_table(path)
        assert content.column_names == ["file_path", "pos"]
        assert set(content["file_path"].to_pylist()) == {location}
        assert (entry.rows, entry.size) == (content.num_rows, os.path.getsize(path))
        positions[location] = content["pos"].to_pylist()
    assert positions == {copies[0]: [3, 50, 99], copies[1]: [0]}
    summary = table.current_snapshot().summary
    assert {name: summary[name] for name in ("operation", "added-delete-files",
        "removed-delete-files", "added-position-deletes", "removed-position-deletes")} == {
        "operation": Operation.REPLACE, "added-delete-files": "2", "removed-delete-files": "2",
        "added-position-deletes": "4", "removed-position-deletes": "5",
    }  # fmt: skip


def test_a_delete_file_leaves_when_no_live_file_is_named(catalog, table, tmp_path):
    table.append(rows(200, 100))
    first, second, third = locations_of(table)
    path = delete_by_position(source_of(catalog), tmp_path, {first: [1], second: [2], third: [3]})
    expected = [number for number in range(300) if number not in (1, 102, 203)]
    left = []
    for _ in range(3):
        iceberg = open_table(catalog)
        files = [file for file in iceberg.live_files() if "sbbf-" not in file.path]
        iceberg.commit([make_copy(iceberg, files[0])], ADD)
        table.refresh()
        assert ids_of(table) == expected
        live, removed = deletes_of(source_of(catalog))
        left.append((len(live), [entry.path for entry in removed]))
    assert left == [(2, []), (3, []), (3, [f"file://{path}"])]
    assert convert(open_table(catalog)).num_files == 3
    assert [len(entries) for entries in deletes_of(source_of(catalog))] == [3, 3]
    table.refresh()
    assert ids_of(table) == expected


def test_a_delete_that_is_older_than_the_file_is_not_carried(catalog, table, tmp_path):
    """A file that leaves the table and is added again is younger than its deletes."""
    first, second = locations_of(table)
    delete_by_position(source_of(catalog), tmp_path, {first: [1]})
    delete_by_position(source_of(catalog), tmp_path, {second: [2]})
    table.refresh()
    table.delete("id < 100")
    table.add_files([first])
    delete_by_position(source_of(catalog), tmp_path, {first: [7]})
    table.refresh()
    before = rows_of_all_snapshots(table)
    assert ids_of(table) == [number for number in range(200) if number not in (7, 102)]
    assert convert(open_table(catalog)).num_files == 2
    assert rows_of_all_snapshots(table).items() >= before.items()
    assert ids_of(table) == [number for number in range(200) if number not in (7, 102)]


def test_equality_deletes_beside_carried_ones_stay(catalog, table, tmp_path):
    """They are in a manifest of their own or, after a clean-up, in that of the position deletes."""
    first, _ = locations_of(table)
    source = source_of(catalog)
    delete_by_value(source, tmp_path, 1, "id", [5, 105])
    delete_by_position(source, tmp_path, {first: [9]})
    (equality,) = [entry for entry in deletes_of(source_of(catalog))[0] if entry.content == 2]
    assert convert(open_table(catalog)).num_files == 2
    live, _ = deletes_of(source_of(catalog))
    (kept,) = [entry for entry in live if entry.content == 2]
    assert (kept.path, kept.sequence_number) == (equality.path, equality.sequence_number)
    assert len(live) == 2


def entry_of(path: str, sequence: int | None, partition: Any = (), **fields: Any) -> IcebergEntry:
    record = {"data_file": fields}
    return IcebergEntry(
        1, 1, sequence, sequence, None, 1, path, path, "PARQUET", 1, 1, partition, record
    )


def test_deletes_that_do_not_certainly_apply_leave_the_file_out(tmp_path):
    """Those of another spec or partition, those that cannot be read, and those that are listed
    twice."""
    deletes = str(tmp_path / "deletes.parquet")
    pq.write_table(pa.table({"file_path": ["/d/b", "/d/c"], "pos": [0, 1]}), deletes)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 but not")
    files = {
        location: DataFileKey(location, location, (0, "(1,)"), 5)
        for location in ("/d/a", "/d/b", "/d/c", "/d/c2", "/d/d")
    }

    def left_out(*entries, version=2):
        return set(DeleteIndex(entries, {}).why_not_carried(files, version))

    def bounds(lower, upper):
        names = ("lower_bounds", lower), ("upper_bounds", upper)
        return {name: [{"key": FILE_PATH_ID, "value": text.encode()}] for name, text in names}

    applied = entry_of(deletes, 5, (1,))
    assert left_out((0, applied)) == set()
    assert left_out((0, entry_of(deletes, 4, (1,)))) == set()
    assert left_out((0, applied), (0, applied)) == set(files)
    for spec_id, partition in ((1, (1,)), (0, (2,))):
        assert left_out((spec_id, entry_of(deletes, 5, partition))) == {"/d/b", "/d/c"}
        assert left_out((spec_id, entry_of(deletes, None, partition))) == {"/d/b", "/d/c"}
        assert left_out((spec_id, entry_of(deletes, 4, partition))) == set()
        limited = entry_of(deletes, 5, partition, **bounds("/d/c", "/d/d"))
        assert left_out((spec_id, limited)) == {"/d/c"}
        single = entry_of("/no/file", 5, partition, referenced_data_file="/d/d")
        assert left_out((spec_id, single)) == {"/d/d"}
        unread = replace(limited, format="AVRO")
        assert left_out((spec_id, unread)) == {"/d/c", "/d/c2", "/d/d"}
        for path in (str(damaged), str(tmp_path / "missing")):
            lost = entry_of(path, 5, partition, **bounds("/d/c", "/d/d"))
            assert left_out((spec_id, lost)) == {"/d/c", "/d/c2", "/d/d"}
    encrypted = entry_of(deletes, 5, (1,), key_metadata=b"k", **bounds("/d/b", "/d/c"))
    assert left_out((0, encrypted)) == {"/d/b", "/d/c", "/d/c2"}
    assert left_out((0, entry_of("/no/file", 5, (1,), **bounds("/d/c", "/d/c")))) == {"/d/c2"}
    single = entry_of("/no/file", 5, (1,), referenced_data_file="/d/d")
    for version, expected in ((1, {"/d/d"}), (2, set()), (3, set())):
        assert left_out((0, single), version=version) == expected
    fields = {"content_offset": 4, "content_size_in_bytes": 50, "referenced_data_file": "/d/d"}
    vector = replace(entry_of("/no/file", 5, (1,), **fields), format="PUFFIN")
    assert left_out((0, vector), version=3) == set()
    assert left_out((0, vector), version=2) == {"/d/d"}
    assert left_out((1, vector), version=3) == {"/d/d"}
    other = entry_of("/other/file", 5, (1,), **fields)
    assert left_out((0, vector), (0, replace(other, format="PUFFIN")), version=3) == {"/d/d"}
    assert left_out((0, vector), (0, single), version=3) == set()
    for name in fields:
        incomplete = entry_of(
            "/no/file", 5, (1,), **{**fields, name: None}, **bounds("/d/d", "/d/d")
        )
        assert left_out((0, replace(incomplete, format="PUFFIN")), version=3) == {"/d/d"}
    secret = replace(entry_of("/no/file", 5, (1,), **fields, key_metadata=b"k"), format="PUFFIN")
    assert left_out((0, secret), version=3) == {"/d/d"}


def test_damaged_deletes_change_nothing(catalog, table, tmp_path):
    first, second = locations_of(table)
    path = delete_by_position(source_of(catalog), tmp_path, {first: [1], second: [2]})
    good = path.read_bytes()
    version = open_table(catalog).version
    folder = Path(first.removeprefix("file://")).parent
    table_with_null = pa.table({"file_path": [first, None], "pos": [1, 2]})
    for content in (b"PAR1 but not", good[: len(good) // 2], b"", table_with_null, None):
        if content is None:
            path.unlink()
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)
        iceberg = open_table(catalog)
        copies = make_copies(iceberg, run=os.urandom(4).hex())
        names = set(os.listdir(folder))
        with pytest.raises(UnreadableError, match=path.name):
            iceberg.commit(copies, ADD)
        assert set(os.listdir(folder)) == names
        assert open_table(catalog).version == version
    path.write_bytes(good)
    assert convert(open_table(catalog)).num_files == 2


def test_a_run_keeps_its_delete_files(catalog, table, tmp_path, monkeypatch, capsys):
    """The clean-up at the end of a run deletes copies by name: delete files have such names."""
    first, second = locations_of(table)
    delete_by_position(source_of(catalog), tmp_path, {first: [1], second: [2]})
    table.refresh()
    expected = ids_of(table)
    folder = to_hadoop(table)
    for command in (["add-filter", "-c", "id"], ["remove-filter"]):
        name = command[0].upper().replace("-", "_")
        monkeypatch.setenv(f"SBBF_{name}_FILES_PER_COMMIT", "1")
        assert run([*command, str(folder), "--in-place"]) == 0, capsys.readouterr()
        assert ids_of(open_static(folder)) == expected
        assert all("sbbf-" in file.path for file in open_folder(str(folder)).live_files())
    iceberg = open_folder(str(folder))
    names = {Path(path.path).name for path in iceberg.live_files()}
    referenced = iceberg.referenced(set(os.listdir(folder / "data")))
    assert names < referenced
    assert {name for name in os.listdir(folder / "data") if name.endswith("deletes.parquet")} < (
        referenced
    )


def test_deletes_of_a_rival_are_carried_by_the_next_attempt(catalog, table, tmp_path, monkeypatch):
    monkeypatch.setattr(iceberg_table, "_FIRST_WAIT", 0)
    first, second = locations_of(table)
    rival = source_of(catalog)
    delete_by_position(rival, tmp_path, {first: [1], second: [1]})
    source = RacingSource(
        source_of(catalog),
        lambda: delete_by_position(rival, tmp_path, {first: [2]}),
        lambda: delete_by_position(rival, tmp_path, {first: [2], second: [3]}),
        lambda: delete_by_value(rival, tmp_path, 1, "id", [50]),
    )
    commit = convert(IcebergTable(source))
    assert (commit.rebuilds, commit.num_files, commit.vanished) == (3, 2, ())
    live, _ = deletes_of(source_of(catalog))
    copies = {file.path for file in open_table(catalog).live_files()}
    positions = {}
    for entry in live:
        if entry.content == 1:
            path = entry.path.removeprefix("file://")
            positions[entry.file["referenced_data_file"]] = pq.read_table(path)["pos"].to_pylist()
    assert sorted(positions.values()) == [[1, 2], [1, 3]]
    assert {location.removeprefix("file://") for location in positions} == copies
    # The delete files of the attempts that failed are removed.
    names = os.listdir(Path(first.removeprefix("file://")).parent)
    assert sum(name.endswith("deletes.parquet") for name in names) == 2
