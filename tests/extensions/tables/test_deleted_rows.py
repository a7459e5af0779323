"""`probe --confirm` of tables with deleted rows: they are not present, as engines read the table;
in all its versions they are."""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from extensions.tables.iceberg.iceberg_tables import (
    delete_by_position,
    delete_by_value,
    ids_of,
    open_static,
    rows,
    sql_catalog,
    to_hadoop,
)
from sbbf_tool import run as run_verb
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.tables.deleted_rows import PositionFile, Vector
from sbbf_tool.extensions.tables.iceberg import scan
from sbbf_tool.extensions.tables.iceberg.folder import FolderSource
from sbbf_tool.extensions.tables.iceberg.puffin import PuffinVector
from sbbf_tool.extensions.tables.iceberg.scan import DeleteIndex
from sbbf_tool.file.table_file import UnknownDeletes
from sbbf_tool.verbs import Probe
from support.calls import outcome
from support.delta_logs import (
    add,
    inline_vector,
    metadata,
    protocol,
    vector_file,
    write_table_with_vector,
    write_version,
)
from support.delta_tables import copy_table, make_table, rows_of
from support.ducklakes import SmallLake
from support.present import count_present
from support.tables import each

ROOT = os.environ.get("SBBF_CONFORMANCE")


# Roaring bitmaps


def draw_rows(seed: int) -> list[int]:
    """Draw rows of which containers are arrays, bitsets and runs."""
    source = random.Random(seed)
    rows: set[int] = set()
    for _ in range(source.randint(1, 6)):
        first = source.choice((0, 65_536, 1 << 20, (1 << 32) - 40_000, 5 << 32)) + source.randint(
            0, 50_000
        )
        count, step = source.choice(
            ((10, 7), (60_000, 1), (20_000, 2), (4096, 1), (4097, 3), (1, 1))
        )
        rows.update(range(first, first + count * step, step))
    return sorted(rows)


@each("seed", list(range(12)))
@each("with_runs", [False, True])
def test_a_vector_has_the_rows_that_pyroaring_put_in(seed, with_runs):
    rows = draw_rows(seed)
    bitmap = BitMap64(rows)
    if with_runs:
        bitmap.run_optimize()
    data = struct.pack("<I", 1681511377) + bitmap.serialize()
    near = np.unique(
        np.clip(
            np.add.outer(np.asarray(rows[:: len(rows) // 500 + 1]), [-1, 0, 1, 65_536]).ravel(),
            0,
            None,
        )
    )
    assert near[Vector(len(rows), data=data).among(near)].tolist() == [
        row for row in near.tolist() if row in bitmap
    ]


def test_a_damaged_vector_is_unreadable_and_needs_no_memory():
    rows = draw_rows(3)
    bitmap = BitMap64(rows)
    bitmap.run_optimize()
    data, asked = (
        struct.pack("<I", 1681511377) + bitmap.serialize(),
        np.asarray(rows[:100], np.int64),
    )
    source = random.Random(4)
    for end in (*range(40), *(source.randrange(len(data)) for _ in range(200))):
        with pytest.raises(UnreadableError, match="damaged"):
            Vector(len(rows), data=data[:end]).among(asked)
    for _ in range(2000):
        changed = bytearray(data)
        changed[source.randrange(len(data))] = source.randrange(256)
        with suppress(UnreadableError):
            assert len(Vector(len(rows), data=bytes(changed)).among(asked)) == 100
    for count in (0, len(rows) + 1):
        with pytest.raises(UnreadableError):
            Vector(count, data=data).among(asked)
    # 2**32 containers are stated in a few bytes, and each would be a run of 65,536 rows.
    with pytest.raises(UnreadableError):
        Vector(1, data=struct.pack("<IqIII", 1681511377, 1, 0, 12346, (1 << 32) - 1)).among(asked)
    with pytest.raises(UnreadableError):
        Vector(1, data=struct.pack("<Iq", 1681511377, (1 << 62))).among(asked)


def test_a_vector_file_states_its_length_and_checksum(tmp_path):
    path, whole = tmp_path / "v.bin", b"\1" + vector_file([1, 5])
    path.write_bytes(whole)
    numbers = np.arange(8)
    assert numbers[Vector(2, str(path), 1).among(numbers)].tolist() == [1, 5]
    for damaged, message in (
        (whole[:-1], "outside the file"),
        (whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:], "checksum"),
        (b"\1\x7f" + whole[2:], "states 2,1"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(UnreadableError, match=message):
            Vector(2, str(path), 1).among(numbers)
    with pytest.raises(UnreadableError, match="outside"):
        Vector(2, str(path), -9).among(numbers)


@each(
    "columns, message",
    [
        ({"file_path": ["a"], "pos": ["x"]}, "cannot be read"),
        ({"pos": [1]}, "cannot be read"),
        ({"file_path": ["a"]}, "cannot be read"),
        ({"file_path": [["a"]], "pos": [1]}, "cannot be read"),
    ],
)
def test_a_damaged_position_delete_file_is_unreadable(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    with pytest.raises(UnreadableError, match=message):
        PositionFile(str(tmp_path / "d.parquet"), "a").among(np.arange(3))


# Delta


@each("kind", ["i", "u", "p"])
def test_rows_that_a_delta_table_has_deleted(tmp_path, capsys, kind):
    path = tmp_path / "t"
    write_table_with_vector(path, kind, [3, 17, 18, 39])
    theirs = (
        deltalake.QueryBuilder()
        .register("t", deltalake.DeltaTable(path))
        .execute("select id from t order by id")
        .read_all()
    )
    assert count_present(path, list(range(45))) == dict.fromkeys(
        pa.table(theirs)["id"].to_pylist(), 1
    )
    assert count_present(path, list(range(45)), all_versions=True) == dict.fromkeys(range(40), 1)
    assert outcome(capsys, "probe", path, "id", 17, "--confirm")[0] == 1
    assert outcome(capsys, "probe", path, "id", 17)[0] == 0, (
        "only reading shows that a row is deleted"
    )
    for number, code in ((17, 1), (20, 0)):
        assert outcome(capsys, "probe", path, f"id = {number}", "--confirm")[0] == code
        assert outcome(capsys, "probe", path, "*", number, "--confirm")[0] == code
    assert outcome(capsys, "probe", path, "id", 17, 20, "--rows", "--format", "csv") == (
        0,
        f"file,row_group,row,value,column\n{path}/a.parquet,1,20,20,id\n",
    )
    assert outcome(
        capsys, "probe", path, "id", 17, "--confirm", "--all-versions", "--format", "names"
    )[:1] == (0,)


def test_a_file_that_the_log_has_twice(tmp_path):
    """A row that is deleted in one place is live in the other."""
    path = tmp_path / "t"
    write_table_with_vector(path, "i", [3, 17])
    write_version(path, 2, add("a.parquet", deletionVector=inline_vector([3, 18])))
    rows = list(run_verb(Probe("id", [3, 17, 20, 99], confirm=True), str(path)))
    assert {(hit.value, hit.answer) for row in rows for hit in row.report.hits} == {
        (text, "cannot say") for text in ("3", "17", "20")
    }


def test_deletes_are_sent_to_processes(tmp_path):
    """More files than this process works on by itself."""
    files = [f"{number}.parquet" for number in range(60)]
    for number, name in enumerate(files):
        (tmp_path / "t").mkdir(exist_ok=True)
        pq.write_table(
            pa.table({"id": range(10 * number, 10 * number + 10)}), tmp_path / "t" / name
        )
    actions = [add(name, deletionVector=inline_vector([1, 8])) for name in files]
    write_version(tmp_path / "t", 0, protocol(features=["deletionVectors"]), metadata(), *actions)
    expected = [number for number in range(600) if number % 10 not in (1, 8)]
    assert count_present(tmp_path / "t", range(600), jobs=2) == dict.fromkeys(expected, 1)


@each(
    "change, message, code",
    [
        (
            lambda vector: vector.update(cardinality=9),
            "the deleted rows are unreadable: the deletion vector is damaged",
            3,
        ),
        (lambda vector: vector.update(storageType="x"), "stored in an unknown way", 0),
        (
            lambda vector: vector.update(pathOrInlineDv="*"),
            "the deleted rows are unreadable: the deletion vector is damaged",
            3,
        ),
        (
            lambda vector: vector.update(storageType="u", pathOrInlineDv="ä"),
            "its deletion vector is damaged",
            0,
        ),
        (
            lambda vector: vector.update(
                storageType="u", pathOrInlineDv="^-aqEH.-t@S}K{vb[*k^", offset=1
            ),
            "no such file",
            3,
        ),
        (lambda vector: vector.pop("cardinality"), "cardinality is missing", 0),
    ],
)
def test_a_deletion_vector_that_cannot_be_read(tmp_path, capsys, change, message, code):
    path = tmp_path / "t"
    write_table_with_vector(path, "i", [3, 17])
    log = path / "_delta_log" / "00000000000000000001.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    change(next(action["add"]["deletionVector"] for action in actions if "add" in action))
    log.write_text("\n".join(map(json.dumps, actions)))
    (row,) = run_verb(Probe("id", [17, 20, 99], confirm=True, rows=True), str(path))
    assert [(hit.value, hit.answer) for hit in row.report.hits] == [
        ("17", "cannot say"),
        ("20", "cannot say"),
    ]
    assert message in row.report.hits[0].reason
    assert (row.report.rows, row.report.inconclusive) == ((), ())
    result = outcome(capsys, "probe", path, "id", 17, "--confirm")
    assert (result[0], message in result[1]) == (code, True), result
    assert outcome(capsys, "probe", path, "id", 99, "--confirm")[0] == 1
    assert outcome(capsys, "probe", path, "id", 17, "--confirm", "--all-versions")[0] == 0


def test_rows_of_a_partition_less_those_that_are_deleted(tmp_path, capsys):
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("day", "date"), ("new", "string"))
    ]
    actions = [protocol(features=["deletionVectors"]), metadata(fields=fields, by=["day"])]
    for name, day, deleted in (("a", "2026-01-01", [1, 3]), ("b", "2026-01-02", [*range(6)])):
        pq.write_table(pa.table({"id": range(6)}), tmp_path / f"{name}.parquet", row_group_size=2)
        size = (tmp_path / f"{name}.parquet").stat().st_size
        vector = inline_vector(deleted)
        partition = {"day": day}
        file = add(f"{name}.parquet", size=size, partitionValues=partition, deletionVector=vector)
        actions.append(file)
    write_version(tmp_path, 0, *actions)
    for condition, expected in (
        ("day = '2026-01-01'", [0, 2, 4, 5]),
        ("day = '2026-01-02'", []),
        ("new IS NULL", [0, 2, 4, 5]),
        ("day = '2026-01-01' AND id = 3", []),
        ("day = '2026-01-01' AND id = 2", [2]),
    ):
        code, text = outcome(capsys, "probe", tmp_path, condition, "--rows", "--format", "csv")
        found = [int(line.split(",")[2]) for line in text.splitlines()[1:]]
        assert (code, found) == (int(not expected), expected), condition
    code, text = outcome(capsys, "probe", tmp_path, "day", "2026-01-01", "--confirm")
    assert "row groups 0-2 (4 rows)" in text


REAL = {  # each with a column of which the values tell rows apart
    "connectors__log-replay-dv-key-cases": "col1",
    "crates__table_with_deletion_logs": "id",
    "kernel__basic-dv-no-checkpoint": "id",
    "spark__partitioned-table-with-dv-large": "value",
    "spark__table-with-dv-small": "value",
}


@each("name", list(REAL) if ROOT else [""])
def test_rows_of_real_tables_with_deletion_vectors(conformance: Path, tmp_path, name):
    path = copy_table(conformance / "delta" / name, tmp_path / "t")
    for file in path.rglob(
        "test%dv%prefix-*"
    ):  # a prefix that Delta Spark gives names in its own tests
        file.rename(file.with_name(file.name.removeprefix("test%dv%prefix-")))
    table = pa.table(
        deltalake.QueryBuilder()
        .register("t", deltalake.DeltaTable(path))
        .execute("select * from t")
        .read_all()
    )
    column = REAL[name] if REAL[name] in table.column_names else table.column_names[0]
    expected: dict[Any, int] = {}
    for value in table[column].to_pylist():
        expected[value] = expected.get(value, 0) + 1
    numbers = list(range(3000))
    assert count_present(path, numbers, column) == expected
    assert count_present(path, numbers, column, all_versions=True).keys() > expected.keys()


def test_versions_of_a_delta_table(tmp_path, capsys):
    path = make_table(tmp_path / "t", files=3, partitioned=True)
    table = deltalake.DeltaTable(path)
    table.delete("id < 10")
    table.create_checkpoint()
    table.optimize.compact()
    assert count_present(path, [5, 15, 99]) == {15: 1}
    assert set(count_present(path, [5, 15, 99], all_versions=True)) == {5, 15}
    assert count_present(path, [5, 15], all_versions=True, where="day = 'b'") == {15: 1}
    code, text = outcome(capsys, "probe", path, "day", "a", "c", "--confirm", "--all-versions")
    assert (code, f"0 Parquet files below {path} are in no retained version\n" in text) == (
        0,
        True,
    ), text
    pq.write_table(rows_of(0, 10), path / "lost.parquet")
    code, text = outcome(capsys, "probe", path, "id", 99, "--confirm", "--all-versions")
    assert (
        code,
        f"1 Parquet file below {path} is in no retained version; --as-files searches that folder"
        in text,
    ) == (1, True), text
    deltalake.DeltaTable(path).delete("id = 29")
    gone = sorted({file.path for file in _old_files(path)})
    assert len(gone) > 1
    for name in gone:
        os.unlink(name)
    code, text = outcome(capsys, "probe", path, "id", 5, "--confirm", "--all-versions")
    assert (
        code,
        f"{len(gone)} files of earlier versions are gone" in text,
        "no such file" in text,
    ) == (1, True, False), text
    code, text = outcome(
        capsys, "probe", path, "id", 5, "--confirm", "--all-versions", "--format", "json"
    )
    summary = json.loads(text.splitlines()[-1])
    assert (
        summary["skipped"],
        summary["totals"]["files_gone"],
        summary["totals"]["files_unlisted"],
    ) == (len(gone), len(gone), 1)
    assert {type(number) for number in summary["totals"].values()} == {int}
    code, text = outcome(
        capsys, "probe", path, "id", 15, "--confirm", "--all-versions", "--format", "names"
    )
    assert (code, "files of earlier versions are gone" in text) == (0, True)


def _old_files(path: Path) -> Iterator[Any]:
    from sbbf_tool.running.selection import find_table

    table = find_table(str(path))
    assert table is not None
    live = {file.path for file in table.live_files()}
    return (file for file in table.all_files()[0] if file.path not in live)


def test_a_removed_file_whose_partition_is_unknown(tmp_path):
    path = make_table(tmp_path / "t", files=2, partitioned=True)
    deltalake.DeltaTable(path).delete("day = 'a'")
    log = path / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{2:020d}.json").read_text().splitlines()]
    for number in (0, 1):
        lines = [
            json.loads(line) for line in (log / f"{number:020d}.json").read_text().splitlines()
        ]
        (log / f"{number:020d}.json").write_text(
            "\n".join(json.dumps(line) for line in lines if "day=a" not in str(line.get("add")))
        )
    for action in actions:
        action.get("remove", {}).pop("partitionValues", None)
    (log / f"{2:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    rows = list(run_verb(Probe("day", ["a"], confirm=True), str(path), all_versions=True))
    assert [row.report.is_absent for row in rows] == [True, False]
    assert rows[1].report.inconclusive[0].answer == "cannot say"
    assert count_present(path, [1, 11], all_versions=True, where="day = 'a'") == {1: 1}


def test_all_versions_are_those_of_a_table(tmp_path):
    pq.write_table(rows_of(0, 10), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="all versions"):
        run_verb(Probe("id", [1]), str(tmp_path / "a.parquet"), all_versions=True)


# Iceberg


@pytest.fixture
def hadoop(tmp_path: Path) -> tuple[Path, FolderSource, list[str]]:
    """The folder of a table of two files of 100 rows, its source, and the locations of the
    files."""
    catalog = sql_catalog(tmp_path)
    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    table.append(rows(0, 100))
    table.append(rows(100, 100))
    folder = to_hadoop(table)
    catalog.close()
    return (
        folder,
        FolderSource(str(folder)),
        sorted(
            (task.file.file_path for task in open_static(folder).scan().plan_files()),
            key=lambda name: first_id(name),
        ),
    )


def first_id(location: str) -> int:
    number: int = pq.read_table(location.removeprefix("file://"))["id"][0].as_py()
    return number


@each("has_bounds", [False, True])
def test_rows_that_an_iceberg_table_has_deleted_by_position(hadoop, capsys, has_bounds):
    folder, source, files = hadoop
    before = source.load().metadata.current.id
    delete_by_position(source, folder, {files[0]: [3, 50], files[1]: [0, 99]}, bounds=has_bounds)
    delete_by_position(source, folder, {files[1]: [5]}, bounds=has_bounds)
    everything = list(range(210))
    expected = ids_of(open_static(folder))
    assert len(expected) == 195
    assert count_present(folder, everything) == dict.fromkeys(expected, 1)
    assert count_present(folder, everything, jobs=2) == dict.fromkeys(expected, 1)
    assert count_present(folder, everything, all_versions=True) == dict.fromkeys(range(200), 1)
    assert outcome(capsys, "probe", folder, "id", 50, "--confirm")[0] == 1
    code, text = outcome(capsys, "probe", folder, "id", 50, "--confirm", "--all-versions")
    assert (code, "0 Parquet files below" in text) == (0, True), "delete files are listed"
    assert before in source.load().metadata.snapshots


def test_rows_that_were_written_after_the_deletes(hadoop):
    """A later data file of the same rows has another path; a delete of an earlier sequence number
    does not reach it."""
    state = hadoop[1].load()
    _, (newest, *_) = scan.read_manifest_list(state, state.metadata.current)
    (entry,) = scan.open_manifest(state, newest).live_entries()
    for content, delays in ((1, (-1, 0)), (2, (0, 1))):
        earlier, later = (
            replace(entry, content=content, sequence_number=entry.sequence_number + delay)
            for delay in delays
        )
        assert DeleteIndex([(0, earlier)], {0: ()}).of(0, entry) == ()
        assert len(DeleteIndex([(0, later)], {0: ()}).of(0, entry)) == 1


def test_a_deletion_vector_is_that_of_one_path(hadoop):
    """Another file's path may begin with it; position deletes from before it count no more."""
    state = hadoop[1].load()
    _, (newest, *_) = scan.read_manifest_list(state, state.metadata.current)
    (file,) = scan.open_manifest(state, newest).live_entries()
    fields = {**file.file, "referenced_data_file": file.path, "content_offset": 4}
    puffin = replace(
        file,
        content=1,
        format="PUFFIN",
        path="/d/v.puffin",
        rows=3,
        record={**file.record, "data_file": fields},
    )
    positions = replace(file, content=1, path="/d/p.parquet")
    index = DeleteIndex([(0, positions), (0, puffin)], {0: ()})
    assert index.of(0, file) == (PuffinVector(3, "/d/v.puffin", 4, data_file=file.path),)
    longer = replace(file, path=f"{file.path}.parquet")
    assert index.of(0, longer) == (PositionFile("/d/p.parquet", longer.path),)
    nameless = replace(
        puffin, record={**file.record, "data_file": {**fields, "referenced_data_file": None}}
    )
    assert isinstance(DeleteIndex([(0, nameless)], {0: ()}).of(0, file)[0], UnknownDeletes)


def test_equality_deletes_are_not_applied(hadoop, capsys):
    folder, source, files = hadoop
    delete_by_value(source, folder, 1, "id", [7, 120])
    delete_by_position(source, folder, {files[0]: [9]})
    results = list(run_verb(Probe("id", [7, 8, 9, 300], confirm=True, rows=True), str(folder)))
    (report,) = (row.report for row in results if row.report.hits)
    assert {(hit.value, hit.answer) for hit in report.hits} == {
        ("7", "cannot say"),
        ("8", "cannot say"),
    }
    assert report.hits[0].reason == "rows may be deleted by equality deletes, which are not applied"
    assert (report.rows, report.inconclusive, report.unreadable) == ((), (), ())
    assert [
        outcome(capsys, "probe", folder, "id", number, "--confirm")[0] for number in (7, 9, 300)
    ] == [0, 1, 1]
    assert "equality deletes" in outcome(capsys, "probe", folder, "id", 7, "--confirm")[1]
    assert (
        "reading does not show"
        in outcome(capsys, "probe", folder, "id", 7, "--confirm", "--format", "names")[1]
    )
    assert count_present(folder, [7, 8, 9, 300], all_versions=True) == {7: 1, 8: 1, 9: 1}


@each("damage, message", [(b"PAR1 but not", "not a Parquet file"), (None, "no such file")])
def test_a_position_delete_file_that_cannot_be_read(hadoop, capsys, damage, message):
    folder, source, files = hadoop
    path = delete_by_position(source, folder, {files[0]: [3]})
    path.unlink() if damage is None else path.write_bytes(damage)
    code, text = outcome(capsys, "probe", folder, "id", 3, "--confirm")
    assert (code, "the deleted rows are unreadable" in text) == (3, True), text
    assert outcome(capsys, "probe", folder, "id", 300, "--confirm")[0] == 1
    assert outcome(capsys, "probe", folder, "id", 3, "--confirm", "--all-versions")[0] == 0


def test_branches_and_earlier_snapshots_of_an_iceberg_table(tmp_path, capsys):
    catalog = sql_catalog(tmp_path)
    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    table.append(rows(0, 100))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    table.append(rows(100, 100), branch="audit")
    table.delete("id < 50")
    table.append(rows(200, 100))
    folder = to_hadoop(table)
    asked = [10, 60, 150, 250, 999]
    assert count_present(folder, asked) == {60: 1, 250: 1}
    assert count_present(folder, asked, all_versions=True).keys() == {10, 60, 150, 250}
    code, text = outcome(capsys, "probe", folder, "id", 999, "--all-versions")
    assert (code, "0 Parquet files below" in text) == (1, True)
    catalog.close()


# DuckLake


@pytest.fixture(params=["sqlite", "duckdb"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> SmallLake:
    """A table of two files, of ids from 100 and from 200, with deleted rows; an earlier file has
    ids from 300."""
    pytest.importorskip("duckdb")
    lake = SmallLake(tmp_path, request.param)
    lake.add_file()
    lake.add_file()
    lake.add_file(end_snapshot=6)
    folder = lake.data / "main" / "events"
    pq.write_table(pa.table({"file_path": ["elsewhere"] * 2, "pos": [1, 7]}), folder / "d.parquet")
    (folder / "d.puffin").write_bytes(vector_file([2, 3]))
    usual = {"table_id": 1, "path_is_relative": True, "delete_count": 2}
    lake.insert(
        "delete_file",
        delete_file_id=1,
        data_file_id=1,
        begin_snapshot=4,
        end_snapshot=5,
        path="old",
        format="parquet",
        **usual,
    )
    lake.insert(
        "delete_file",
        delete_file_id=2,
        data_file_id=1,
        begin_snapshot=5,
        path="d.parquet",
        format="parquet",
        **usual,
    )
    lake.insert(
        "delete_file",
        delete_file_id=3,
        data_file_id=2,
        begin_snapshot=5,
        path="d.puffin",
        format="puffin",
        **usual,
    )
    lake.run(
        "create table ducklake_inlined_delete_1(file_id bigint, row_id bigint, begin_snapshot "
        "bigint)"
    )
    lake.insert("inlined_delete_1", file_id=2, row_id=9, begin_snapshot=7)
    lake.insert("inlined_delete_1", file_id=2, row_id=10, begin_snapshot=8)
    return lake


def test_rows_that_a_ducklake_table_has_deleted(lake, capsys):
    everything = range(90, 410)
    expected = set(range(100, 300)) - {101, 107, 202, 203, 209}
    assert count_present(lake.events, everything, "user_id") == dict.fromkeys(expected, 1)
    assert count_present(lake.events, everything, "user_id", all_versions=True) == dict.fromkeys(
        range(100, 400), 1
    )
    lake.run("update ducklake_delete_file set encryption_key = 'x'")
    code, text = outcome(capsys, "probe", lake.events, "user_id", 105, "--confirm")
    assert (code, "encrypted with a key of the catalog" in text) == (0, True)


def test_files_that_no_version_of_a_ducklake_table_lists(lake, capsys):
    os.unlink(lake.data / "main" / "events" / "ducklake-3.parquet")
    code, text = outcome(
        capsys, "probe", lake.events, "user_id", 305, "--confirm", "--all-versions"
    )
    assert (
        code,
        "1 file of earlier versions is gone" in text,
        "0 Parquet files below" in text,
    ) == (1, True, True), text
    lake.run(
        "create table ducklake_inlined_data_tables(table_id bigint, table_name varchar, "
        "schema_version bigint)"
    )
    lake.run(
        "create table ducklake_inlined_data_1_1(row_id bigint, begin_snapshot bigint, "
        "end_snapshot bigint, user_id bigint)"
    )
    lake.insert(
        "inlined_data_tables", table_id=1, table_name="ducklake_inlined_data_1_1", schema_version=1
    )
    lake.insert("inlined_data_1_1", row_id=102, begin_snapshot=6, end_snapshot=7, user_id=305)
    assert outcome(capsys, "probe", lake.events, "user_id", 305, "--confirm")[0] == 1
    assert (
        outcome(capsys, "probe", lake.events, "user_id", 305, "--confirm", "--all-versions")[0] == 0
    )


def test_no_value_is_said_to_be_absent_if_a_live_file_is_missing(lake, capsys):
    os.unlink(lake.data / "main" / "events" / "ducklake-2.parquet")
    assert (
        outcome(capsys, "probe", lake.events, "user_id", 9999, "--confirm", "--all-versions")[0]
        == 3
    )
