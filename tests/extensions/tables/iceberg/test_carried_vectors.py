"""Deletion vectors that a commit carries over to the copies of data files, in tables of format
3."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap64

from extensions.tables.iceberg.iceberg_tables import (
    ADD,
    RacingSource,
    convert,
    delete_by_position,
    delete_by_vectors,
    deletes_of,
    edit_metadata,
    ids_of,
    make_copies,
    make_copy,
    open_static,
    puffin_footer,
    to_hadoop,
)
from sbbf_tool.cli import run
from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.iceberg import table as iceberg_table
from sbbf_tool.extensions.tables.iceberg.folder import FolderSource
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable, open_folder

pytestmark = pytest.mark.slow


def upgrade(folder):
    edit_metadata(folder, format_version=3, next_row_id=0)


@pytest.fixture
def hadoop(table) -> Any:
    """A Hadoop table of format 3."""
    folder = to_hadoop(table)
    upgrade(folder)
    return FolderSource(str(folder))


def locations_of(source):
    return [f"file://{file.path}" for file in open_folder(source.name).live_files()][::-1]


def blob_of(entry):
    path = Path(entry.path.removeprefix("file://"))
    start = entry.file["content_offset"]
    return path.read_bytes()[start : start + entry.file["content_size_in_bytes"]]


def rows_of_all_snapshots(source):
    table = open_static(Path(source.name))
    return {
        snapshot.snapshot_id: sorted(
            table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist()
        )
        for snapshot in table.snapshots()
    }


def test_vectors_are_copied_unchanged_into_one_new_file(hadoop, tmp_path):
    first, second = locations_of(hadoop)
    old_path = delete_by_vectors(hadoop, tmp_path, {first: [3, 99], second: [*range(50, 60)]})
    old = {entry.rows: blob_of(entry) for entry in deletes_of(hadoop)[0]}
    before = rows_of_all_snapshots(hadoop)
    commit = convert(open_folder(hadoop.name))
    assert commit.num_files == 2
    assert rows_of_all_snapshots(hadoop).items() >= before.items()
    assert len(ids_of(open_static(Path(hadoop.name)))) == 188
    vectors, removed = deletes_of(hadoop)
    assert {entry.path for entry in removed} == {f"file://{old_path}"}
    assert len(removed) == 2
    assert {entry.rows: blob_of(entry) for entry in vectors} == old
    vectors.sort(key=lambda entry: entry.file["content_offset"])
    (path,) = {entry.path for entry in vectors}
    data = Path(path.removeprefix("file://")).read_bytes()
    assert os.path.basename(path) in commit.new_names
    copies = set(locations_of(hadoop))
    for blob, entry in zip(PuffinFile(data).footer.blobs, vectors, strict=True):
        location = entry.file["referenced_data_file"]
        copies.remove(location)
        assert blob.properties == {
            "referenced-data-file": location,
            "cardinality": str(entry.rows),
        }
        assert (blob.type, blob.fields, blob.compression_codec) == (
            "deletion-vector-v1",
            [2147483645],
            None,
        )
        assert (blob.snapshot_id, blob.sequence_number) == (-1, -1)
        assert (blob.offset, blob.length) == (
            entry.file["content_offset"],
            entry.file["content_size_in_bytes"],
        )
        assert (entry.file["content"], entry.file["first_row_id"]) == (1, None)
        assert (entry.size, entry.record["sequence_number"]) == (len(data), None)
    assert copies == set()


def test_a_second_commit_takes_one_of_two_vectors_in_a_file(hadoop, tmp_path):
    first, second = locations_of(hadoop)
    delete_by_vectors(hadoop, tmp_path, {first: [3], second: [4]})
    expected = ids_of(open_static(Path(hadoop.name)))
    for _ in range(2):
        table = open_folder(hadoop.name)
        old = [file for file in table.live_files() if "sbbf-" not in file.path]
        assert table.commit([make_copy(table, old[0])], ADD).num_files == 1
        assert ids_of(open_static(Path(hadoop.name))) == expected
        live, removed = deletes_of(hadoop)
        assert (len(live), len(removed)) == (2, 1)
    assert {entry.file["referenced_data_file"] for entry in live} == set(locations_of(hadoop))


def test_position_deletes_of_an_upgraded_table_become_vectors(catalog, table, tmp_path):
    source = FolderSource(str(to_hadoop(table)))
    first, second = locations_of(source)
    shared = delete_by_position(source, tmp_path, {first: [5, 1], second: [2]})
    single = delete_by_position(source, tmp_path, {first: [5, 99]})
    upgrade(Path(source.name))
    delete_by_vectors(source, tmp_path, {second: [2, 3]})
    before = rows_of_all_snapshots(source)
    assert convert(open_folder(source.name)).num_files == 2
    assert rows_of_all_snapshots(source).items() >= before.items()
    live, removed = deletes_of(source)
    assert {entry.format for entry in live} == {"PUFFIN"}
    positions = [list(BitMap64.deserialize(blob_of(entry)[8:-4])) for entry in live]
    assert sorted(positions) == [[1, 5, 99], [2, 3]]
    assert len(removed) == 3
    assert {f"file://{path}" for path in (shared, single)} < {entry.path for entry in removed}
    summary = source.load().metadata.current.summary
    assert {name: summary.get(name) for name in ("operation", "added-dvs", "removed-dvs",
        "added-delete-files", "removed-delete-files", "added-position-delete-files",
        "removed-position-delete-files", "added-position-deletes",
        "removed-position-deletes")} == {
        "operation": "replace", "added-dvs": "2", "removed-dvs": "1", "added-delete-files": "2",
        "removed-delete-files": "3", "added-position-delete-files": None,
        "removed-position-delete-files": "2", "added-position-deletes": "5",
        "removed-position-deletes": "7",
    }  # fmt: skip


def test_a_file_with_an_older_vector_is_left_out(hadoop, tmp_path):
    first, second = locations_of(hadoop)
    delete_by_vectors(hadoop, tmp_path, {first: [3], second: [4]}, sequence_number=1)
    expected = ids_of(open_static(Path(hadoop.name)))
    assert convert(open_folder(hadoop.name)).num_files == 1
    assert second in locations_of(hadoop)
    assert ids_of(open_static(Path(hadoop.name))) == expected


def change_blob(**changes):
    """Change the description of the second of two vectors in the footer."""

    def change(path):
        data = path.read_bytes()
        length = int.from_bytes(data[-12:-8], "little")
        start = len(data) - 12 - length
        tree = json.loads(data[start:-12])
        properties = {**tree["blobs"][1]["properties"], **changes.pop("properties", {})}
        tree["blobs"][1] |= {**changes, "properties": properties}
        path.write_bytes(data[: start - 4] + puffin_footer(tree))

    return change


def change_bytes(at, new):
    def change(path):
        data = bytearray(path.read_bytes())
        data[at : at + len(new) or None] = new
        path.write_bytes(data)

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change_bytes(20, b"\xff"), "checksum"),
        (change_bytes(4, b"\x7f\xff"), "states 2,1"),
        (change_bytes(4, b"\x0f"), "outside the file"),
        (change_bytes(-1, b"x"), "no footer of Puffin"),
        (change_bytes(-8, b"\1"), "no footer of Puffin"),
        (change_bytes(-12, b"\xff\xff\xff\x7f"), "no footer of Puffin"),
        (change_bytes(-12, b"\xff\xff\xff\0"), "outside the file"),
        (change_bytes(-12, b"\1\0\0\0"), "not valid JSON"),
        (lambda path: path.write_bytes(b""), "outside the file"),
        (lambda path: path.write_bytes(path.read_bytes()[:60] + puffin_footer({})), "blobs"),
        (lambda path: path.write_bytes(puffin_footer({"blobs": [[]]})), "no object"),
        (lambda path: path.write_bytes(b"[" * 100_000 + puffin_footer({})), "blobs is missing"),
        (change_blob(offset=5), "describes another"),
        (change_blob(length=5), "describes another"),
        (change_blob(type="apache-datasketches-theta-v1"), "describes another"),
        (change_blob(fields=[1]), "describes another"),
        (change_blob(**{"compression-codec": "zstd"}), "describes another"),
        (change_blob(properties={"cardinality": "3"}), "describes another"),
        (change_blob(properties={"referenced-data-file": "file:///other"}), "describes another"),
        (Path.unlink, "no such file"),
    ],
)
def test_a_damaged_file_changes_nothing(hadoop, tmp_path, damage, message):
    first, second = locations_of(hadoop)
    path = delete_by_vectors(hadoop, tmp_path, {first: [3, 4], second: [4, 5]})
    good = path.read_bytes()
    damage(path)
    table = open_folder(hadoop.name)
    copies = make_copies(table)
    assert len(copies) == 2
    names = set(os.listdir(Path(copies[0].new_path).parent))
    with pytest.raises(UnreadableError, match=message) as caught:
        table.commit(copies, ADD)
    assert (caught.value.file, "\n" in str(caught.value)) == (str(path), False)
    assert set(os.listdir(Path(copies[0].new_path).parent)) == names
    assert open_folder(hadoop.name).version == table.version
    path.write_bytes(good)
    assert open_folder(hadoop.name).commit(copies, ADD).num_files == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"content_offset": -5},
        {"content_offset": 1 << 60},
        {"content_offset": 5},
        {"content_size_in_bytes": 7},
        {"record_count": 3},
    ],
)
def test_an_entry_that_is_wrong_changes_nothing(hadoop, tmp_path, fields):
    first, _ = locations_of(hadoop)
    path = delete_by_vectors(hadoop, tmp_path, {first: [3, 4]}, **fields)
    table = open_folder(hadoop.name)
    with pytest.raises(UnreadableError) as caught:
        convert(table)
    assert caught.value.file == str(path)
    assert open_folder(hadoop.name).version == table.version


@pytest.mark.parametrize("position", [-1, 1 << 40, (1 << 63) - 1])
def test_a_position_that_no_file_has_is_unreadable(catalog, table, tmp_path, position):
    source = FolderSource(str(to_hadoop(table)))
    first, _ = locations_of(source)
    path = delete_by_position(source, tmp_path, {first: [5, position]})
    upgrade(Path(source.name))
    with pytest.raises(UnreadableError, match="that no data file has") as caught:
        convert(open_folder(source.name))
    assert caught.value.file == f"file://{path}"


@pytest.mark.parametrize(("limit", "value"), [("_PUFFIN_BYTES", 10), ("MOST_VECTORS", 1)])
def test_many_vectors_are_written_to_several_files(hadoop, tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(f"sbbf_tool.extensions.tables.iceberg.carried_deletes.{limit}", value)
    first, second = locations_of(hadoop)
    delete_by_vectors(hadoop, tmp_path, {first: [3], second: [4]})
    expected = ids_of(open_static(Path(hadoop.name)))
    assert convert(open_folder(hadoop.name)).num_files == 2
    live, _ = deletes_of(hadoop)
    assert len({entry.path for entry in live}) == 2
    assert ids_of(open_static(Path(hadoop.name))) == expected


def test_vectors_of_a_rival_are_carried_by_the_next_attempt(hadoop, tmp_path, monkeypatch):
    monkeypatch.setattr(iceberg_table, "_FIRST_WAIT", 0)
    first, second = locations_of(hadoop)
    rival = FolderSource(hadoop.name)
    source = RacingSource(
        hadoop,
        lambda: delete_by_vectors(rival, tmp_path, {first: [1]}),
        lambda: delete_by_vectors(rival, tmp_path, {second: [1, 7]}),
    )
    commit = convert(IcebergTable(source))
    assert (commit.rebuilds, commit.num_files, commit.vanished) == (2, 2, ())
    live, removed = deletes_of(hadoop)
    assert sorted(entry.rows for entry in live) == [1, 2]
    assert len(removed) == 2
    assert len(ids_of(open_static(Path(hadoop.name)))) == 197
    names = os.listdir(Path(hadoop.name, "data"))
    assert sum(name.endswith("deletes.puffin") for name in names) == 1


def test_a_damaged_vector_leaves_its_file_out(hadoop, tmp_path, capsys):
    first, second = locations_of(hadoop)
    path = delete_by_vectors(hadoop, tmp_path, {first: [3, 4], second: [4, 5]})
    change_bytes(20, b"\xff")(path)
    for target in ("--dry-run", "--in-place"):
        code = run(["add-filter", hadoop.name, "-c", "id", target])
        captured = capsys.readouterr()
        assert code == 3
        (line,) = [line for line in captured.err.splitlines() if "checksum" in line]
        assert "the deleted rows are unreadable" in line
        assert (path.name in line, os.path.basename(first) in line) == (True, True)
    live = [file.path for file in open_folder(hadoop.name).live_files()]
    assert sum("sbbf-" in path for path in live) == 1
    assert first.removeprefix("file://") in live
