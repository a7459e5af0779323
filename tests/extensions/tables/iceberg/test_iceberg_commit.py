"""The commit of copies to Iceberg tables: snapshots, entries, deletes, conflicts."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")
from pyiceberg.transforms import IdentityTransform

from extensions.tables.iceberg.iceberg_tables import (
    ADD,
    RacingSource,
    convert,
    delete_by_position,
    edit_metadata,
    ids_of,
    make_copies,
    make_copy,
    make_later,
    newest_metadata,
    open_static,
    open_table,
    rows,
    source_of,
    times_of,
    to_hadoop,
)  # fmt: skip
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UncertainWriteError, UnreadableError, UsageError
from sbbf_tool.extensions.tables.iceberg import scan
from sbbf_tool.extensions.tables.iceberg import table as iceberg_table
from sbbf_tool.extensions.tables.iceberg.source import CommitConflictError, CommitStateUnknownError
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable, open_folder
from sbbf_tool.file.partitions import Predicate
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.table import Change

pytestmark = pytest.mark.slow


def entries_of(catalog):
    """All entries of the current snapshot's data manifests, with the record of each manifest."""
    state = source_of(catalog).load()
    _, manifests = scan.read_manifest_list(state, state.metadata.current)
    return [(file, list(scan.open_manifest(state, file).entries())) for file in manifests]


def test_files_are_replaced_in_one_snapshot(catalog, table):
    before = table.current_snapshot()
    table.manage_snapshots().create_branch(before.snapshot_id, "audit").create_tag(
        before.snapshot_id, "first"
    ).commit()
    iceberg = open_table(catalog)
    assert iceberg.version == f"snapshot {before.snapshot_id}"
    copies = make_copies(iceberg)
    commit = iceberg.commit(copies, Change("ADD BLOOM FILTERS", ("id",), {"a.b": "c"}))
    table.refresh()
    assert table.properties["a.b"] == open_table(catalog).properties["a.b"] == "c"
    assert (
        table.metadata.refs["audit"].snapshot_id
        == table.metadata.refs["first"].snapshot_id
        == before.snapshot_id
    )
    assert table.scan(snapshot_id=before.snapshot_id).to_arrow().num_rows == 200
    after = table.current_snapshot()
    assert (commit.version, commit.num_files, commit.vanished, commit.rebuilds) == (
        f"snapshot {after.snapshot_id}",
        2,
        (),
        0,
    )
    spark, python = commit.undo.removesuffix(" in PyIceberg").split(" in Spark, or ")
    assert spark == f"CALL lake.system.rollback_to_snapshot('n.t', {before.snapshot_id})"
    assert ids_of(table) == list(range(200))
    assert {file.path for file in open_table(catalog).live_files()} == {
        copy.new_path for copy in copies
    }
    assert after.summary.operation.value == "replace"
    summary = after.summary.additional_properties
    sizes = [
        sum(os.path.getsize(path) for path in paths)
        for paths in zip(*((copy.old_path, copy.new_path) for copy in copies), strict=True)
    ]
    assert {name: summary[name] for name in ("added-records", "deleted-records", "total-records",
        "total-data-files")} == {
        "added-records": "200", "deleted-records": "200", "total-records": "200",
        "total-data-files": "2",
    }  # fmt: skip
    assert [
        int(summary[name])
        for name in ("removed-files-size", "added-files-size", "total-files-size")
    ] == [*sizes, sizes[1]]
    assert after.parent_snapshot_id == before.snapshot_id
    assert after.sequence_number == before.sequence_number + 1
    eval(python, {"load_catalog": {"lake": catalog}.get})
    table.refresh()
    assert table.current_snapshot().snapshot_id == before.snapshot_id
    assert ids_of(table) == list(range(200))


def test_entries_keep_everything_but_path_and_size(catalog, table):
    before = {entry.path: entry for _, entries in entries_of(catalog) for entry in entries}
    iceberg = open_table(catalog)
    first = next(iter(iceberg.live_files()))
    copy = make_copy(iceberg, first)
    iceberg.commit([copy], ADD)
    (new, entries), (old, untouched) = entries_of(catalog)
    if len(entries) == 1:
        (new, entries), (old, untouched) = (old, untouched), (new, entries)
    deletion, addition = entries
    assert (deletion.status, addition.status, untouched[0].status) == (2, 1, 1)
    assert addition.path == f"file://{copy.new_path}"
    assert (deletion.path, deletion.sequence_number, deletion.file_sequence_number) == (
        f"file://{first.path}", before[deletion.path].sequence_number,
        before[deletion.path].sequence_number,
    )  # fmt: skip
    assert (addition.record["sequence_number"], addition.record["file_sequence_number"]) == (
        deletion.sequence_number,
        None,
    )
    changes = {"file_path", "file_size_in_bytes"}
    assert {key: value for key, value in addition.file.items() if key not in changes} == {
        key: value for key, value in before[deletion.path].file.items() if key not in changes
    }
    assert new.record["min_sequence_number"] == deletion.sequence_number
    assert [new.record[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")] == [
        1,
        0,
        1,
    ]


def test_other_files_of_a_manifest_are_kept_with_their_numbers(catalog, table):
    convert(open_table(catalog))  # one manifest per append
    table.refresh()
    with table.transaction() as transaction:
        transaction.set_properties(
            {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
        )
    table.append(rows(200, 100))
    numbers = {
        entry.path: entry.sequence_number
        for _, entries in entries_of(catalog)
        for entry in entries
        if entry.status != 2
    }
    assert len(entries_of(catalog)) == 1
    iceberg = open_table(catalog)
    iceberg.commit(
        [
            make_copy(
                iceberg, next(file for file in iceberg.live_files() if "sbbf-" not in file.path)
            )
        ],
        ADD,
    )
    [(_, entries)] = entries_of(catalog)
    existing = {entry.path: entry for entry in entries if entry.status == 0}
    assert len(existing) == 2
    assert all(entry.record["sequence_number"] == numbers[path] for path, entry in existing.items())
    assert all(entry.record["file_sequence_number"] is not None for entry in existing.values())
    table.refresh()
    assert ids_of(table) == list(range(300))


def test_a_commit_is_built_again_after_another_one(catalog, table, monkeypatch):
    monkeypatch.setattr(iceberg_table, "_FIRST_WAIT", 0)
    rival = catalog.load_table("n.t")
    source = RacingSource(
        source_of(catalog), lambda: rival.append(rows(200, 50)), lambda: rival.delete("id < 100")
    )
    commit = convert(IcebergTable(source))
    assert (commit.rebuilds, commit.num_files, len(commit.vanished)) == (2, 1, 1)
    table.refresh()
    assert ids_of(table) == list(range(100, 250))
    # The manifests of the attempts that failed are removed.
    referenced = {row["path"] for row in table.inspect.all_manifests().to_pylist()}
    manifests = {
        f"file://{path}" for path in Path(table.location()[7:], "metadata").glob("*-manifest*.avro")
    }
    assert manifests <= referenced


@pytest.mark.parametrize(
    ("answer", "succeeds"),
    [
        (CommitStateUnknownError("no answer"), True),
        (CommitStateUnknownError("no answer"), False),
        (CommitConflictError(), True),  # a proxy sent the request twice
        (RefusedError("forbidden"), True),  # a firewall refused the answer
    ],
)
def test_a_commit_without_an_answer_is_looked_for(catalog, table, monkeypatch, answer, succeeds):
    monkeypatch.setattr(iceberg_table, "_FIRST_WAIT", 0)
    source = source_of(catalog)
    commit_of, calls = source.commit, []

    def lose_answer(*arguments):
        calls.append(arguments)
        if succeeds or len(calls) > 1:
            commit_of(*arguments)
        if len(calls) == 1:
            raise answer

    monkeypatch.setattr(source, "commit", lose_answer)
    commit = convert(IcebergTable(source))
    assert (commit.num_files, len(calls)) == (2, 1 if succeeds else 2)
    table.refresh()
    assert table.current_snapshot().snapshot_id == int(commit.version.split()[1])
    assert ids_of(table) == list(range(200))


def test_files_stay_if_the_outcome_is_unknown_and_go_after_conflicts(catalog, table, monkeypatch):
    monkeypatch.setattr(iceberg_table, "_FIRST_WAIT", 0)
    source = source_of(catalog)
    iceberg = IcebergTable(source)
    copies = make_copies(iceberg)
    names = set(os.listdir(Path(table.location()[7:], "metadata")))

    def lose(*arguments):
        raise CommitConflictError

    monkeypatch.setattr(source, "commit", lose)
    with pytest.raises(RefusedError, match="other commits came first in all 20 attempts"):
        iceberg.commit(copies, ADD)
    assert set(os.listdir(Path(table.location()[7:], "metadata"))) == names
    monkeypatch.setattr(iceberg_table, "_ATTEMPTS", 2)

    def fail(*arguments):
        raise CommitStateUnknownError("gateway timeout")

    monkeypatch.setattr(source, "commit", fail)
    with pytest.raises(
        UncertainWriteError, match=r"unknown whether the commit succeeded \(gateway timeout\)"
    ):
        iceberg.commit(copies, ADD)
    assert len(list(Path(table.location()[7:], "metadata").glob("*-manifest?.avro"))) == 4


def test_a_refusal_after_an_unknown_outcome_keeps_the_copies(catalog, table, monkeypatch):
    monkeypatch.setattr(iceberg_table, "_FIRST_WAIT", 0)
    source = source_of(catalog)
    commit_of, calls = source.commit, []

    def succeed_late(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise CommitStateUnknownError("no answer")
        raise RefusedError("the token has expired")

    monkeypatch.setattr(source, "commit", succeed_late)
    with pytest.raises(
        UncertainWriteError, match=r"unknown whether the commit succeeded \(no answer\)"
    ):
        convert(IcebergTable(source))
    commit_of(*calls[0])
    table.refresh()
    assert ids_of(table) == list(range(200))


@pytest.mark.parametrize("unknown", [True, False])
def test_a_table_that_cannot_be_read_again_after_an_unknown_outcome(
    catalog, table, monkeypatch, unknown
):
    monkeypatch.setattr(iceberg_table, "_FIRST_WAIT", 0)
    source = source_of(catalog)
    iceberg = IcebergTable(source)
    copies = make_copies(iceberg)

    def be_gone():
        raise UnreadableError("gone")

    def fail(*arguments):
        monkeypatch.setattr(source, "load", be_gone)
        raise CommitStateUnknownError("no answer") if unknown else CommitConflictError

    monkeypatch.setattr(source, "commit", fail)
    with pytest.raises(UncertainWriteError, match="no answer" if unknown else "gone"):
        iceberg.commit(copies, ADD)


def test_a_position_delete_during_the_run_is_carried_over(catalog, table, tmp_path):
    iceberg = open_table(catalog)
    copies = make_copies(iceberg)
    delete_by_position(source_of(catalog), tmp_path, {f"file://{copies[0].old_path}": [0]})
    assert iceberg.commit(copies, ADD)[1:3] == (2, ())
    table.refresh()
    assert len(ids_of(table)) == 199


def test_evolved_partitions_and_renamed_columns(catalog, tmp_path):
    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    with table.update_spec() as update:
        update.add_field("day", IdentityTransform(), "day")
    table.append(rows(0, 6))
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "id_part")
    table.append(rows(6, 3))
    with table.update_schema() as update:
        update.rename_column("id", "key")
        update.rename_column("day", "date")
    iceberg = open_table(catalog)
    assert dict(iceberg.columns.by_id) == {1: ("key",), 2: ("date",)}
    partitions = [dict(file.partition) for file in iceberg.live_files()]
    assert {"day": "d1", "date": "d1"} in partitions
    assert {"day": "d2", "date": "d2", "id_part": "8", "key": "8"} in partitions
    assert len(partitions) == 6
    commit = iceberg.commit(make_copies(iceberg), ADD)
    table.refresh()
    assert commit.num_files == 6
    assert table.current_snapshot().summary["changed-partition-count"] == "6"
    assert sorted(table.scan().to_arrow()["key"].to_pylist()) == list(range(9))
    assert table.scan(row_filter="date == 'd1'").to_arrow().num_rows == 3
    assert [dict(file.partition) for file in open_table(catalog).live_files()] == partitions


def test_a_predicate_keeps_files_whose_spec_lacks_its_field(catalog):
    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    table.append(rows(0, 1))
    for start, column in ((1, "day"), (2, "id")):
        with table.update_spec() as update:
            update.add_field(column, IdentityTransform(), f"{column}_part")
        table.append(rows(start, 1))

    def selected(where):
        live_files = Selection("lake:n.t", Predicate(where), table=open_table(catalog)).live_files()
        return sorted(
            file.partition.get("id_part") or file.partition.get("day_part") or "all"
            for file in live_files
        )

    assert selected("id_part = 5") == selected("id = 5") == ["all", "d1"]
    assert selected("id_part = 2") == ["2", "all", "d1"]
    assert selected("not day_part = 'd2' and day = 'd1'") == ["all", "d1"]
    assert selected("day_part = 'd1' or id is null") == ["all", "d1"]
    with pytest.raises(UsageError, match="no partition column 'no'; there are"):
        selected("no = 1")


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_hadoop_table_gets_its_next_version(catalog, version):
    table = catalog.create_table(
        "n.h", schema=rows(0, 1).schema, properties={"format-version": version}
    )
    table.append(rows(0, 100))
    folder = to_hadoop(table, 7)
    edit_metadata(folder, x_unknown={"a": [1]})
    (folder / "metadata" / ".version-hint.text.crc").write_bytes(b"stale")
    (folder / "metadata" / ".v8.metadata.json.crc").write_bytes(b"stale")
    before = json.loads(newest_metadata(folder).read_text())
    commit = convert(open_folder(str(folder)), Change("ADD BLOOM FILTERS", ("id",), {"p": "q"}))
    assert commit.num_files == 1
    after = json.loads(newest_metadata(folder).read_text())
    assert newest_metadata(folder).name == "v8.metadata.json"
    assert (folder / "metadata" / "version-hint.text").read_text() == "8"
    assert not list((folder / "metadata").glob(".*"))
    number = after["current-snapshot-id"]
    assert after["refs"]["main"] == {"snapshot-id": number, "type": "branch"}
    assert (
        after["snapshot-log"][-1]["snapshot-id"] == after["snapshots"][-1]["snapshot-id"] == number
    )
    assert (
        after["metadata-log"][-1]["metadata-file"] == f"file://{folder}/metadata/v7.metadata.json"
    )
    assert after["x-unknown"] == {"a": [1]}
    assert after["properties"]["p"] == "q"
    same = before.keys() - {
        "last-sequence-number",
        "last-updated-ms",
        "current-snapshot-id",
        "refs",
        "properties",
    }
    assert {name: before[name] for name in same if not isinstance(before[name], list)} == {
        name: after[name] for name in same if not isinstance(before[name], list)
    }
    assert ids_of(open_static(folder)) == list(range(100))
    assert convert(open_folder(str(folder))).num_files == 1
    assert ids_of(open_static(folder)) == list(range(100))


def test_a_stale_hint_is_followed_by_later_versions(catalog, table):
    folder = to_hadoop(table, 3)
    convert(open_folder(str(folder)))
    (folder / "metadata" / "version-hint.text").write_text("3")
    assert open_folder(str(folder)).version == convert_version(folder)
    (folder / "metadata" / "version-hint.text").unlink()
    assert open_folder(str(folder)).version == convert_version(folder)


def convert_version(folder):
    metadata = json.loads((folder / "metadata" / "v4.metadata.json").read_text())
    return f"snapshot {metadata['current-snapshot-id']}"


def test_compressed_metadata_stays_compressed(catalog, table):
    with table.transaction() as transaction:
        transaction.set_properties({"write.metadata.compression-codec": "gzip"})
    folder = to_hadoop(table, 1)
    convert(open_folder(str(folder)))
    assert (folder / "metadata" / "v2.gz.metadata.json").read_bytes().startswith(b"\x1f\x8b")
    assert convert(open_folder(str(folder))).num_files == 2
    iceberg = open_folder(str(folder))
    iceberg.commit((), Change("SET", properties={"a.b": "c"}))
    again = open_folder(iceberg.name)
    assert (again.properties["a.b"], again.version) == ("c", iceberg.version)


def test_a_table_of_a_catalog_is_read_by_its_folder_but_not_changed(catalog, table, capsys):
    folder = table.location().removeprefix("file://")
    iceberg = open_folder(folder)
    assert iceberg.version == f"snapshot {table.current_snapshot().snapshot_id}"
    assert len(list(iceberg.live_files())) == 2
    with pytest.raises(RefusedError, match="belongs to a catalog"):
        iceberg.ensure_changeable()
    with pytest.raises(RefusedError, match="belongs to a catalog"):
        iceberg.commit(make_copies(iceberg), ADD)
    # No command is proposed that would then be refused.
    run(["check", folder, "--require", "id"])
    out = capsys.readouterr().out
    assert ("belongs to a catalog" in out, "sbbf add-filter" in out) == (True, False), out


def test_nothing_is_written_outside_of_the_table_through_a_link(catalog, table, tmp_path):
    folder = Path(table.location().removeprefix("file://"))
    elsewhere = tmp_path / "elsewhere"
    (folder / "data").rename(elsewhere)
    (folder / "data").symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    reasons = [file.unchangeable or "" for file in open_table(catalog).live_files()]
    assert all("a link in its path leads out" in reason for reason in reasons)
    # A folder that the properties name may be anywhere.
    with table.transaction() as transaction:
        transaction.set_properties({"write.data.path": f"file://{tmp_path}/copies"})
    assert convert(open_table(catalog)).num_files == 2
    assert sorted(elsewhere.iterdir()) == before
    assert len(list((tmp_path / "copies").iterdir())) == 2


def test_metadata_and_copies_go_where_the_properties_say(catalog, table, tmp_path):
    outside = tmp_path / "outside.parquet"
    pa.parquet.write_table(rows(200, 10).cast(table.schema().as_arrow()), outside)
    table.add_files([f"file://{outside}"])
    (tmp_path / "m").mkdir()
    with table.transaction() as transaction:
        transaction.set_properties(
            {
                "write.data.path": f"file://{tmp_path}/d",
                "write.metadata.path": f"file://{tmp_path}/m",
            }
        )
    iceberg = open_table(catalog)
    copies = make_copies(iceberg)
    assert {str(Path(copy.new_path).parent) for copy in copies} == {
        f"{iceberg.location}/data",
        f"{tmp_path}/d",
    }
    assert iceberg.commit(copies, ADD).num_files == 3
    assert len(list((tmp_path / "m").glob("*.avro"))) == 4
    table.refresh()
    assert ids_of(table) == list(range(210))


def test_referenced_files_are_those_of_all_snapshots(catalog, table):
    iceberg = open_table(catalog)
    copies = make_copies(iceberg)
    unused = make_copy(iceberg, next(iter(iceberg.live_files())), run="2")
    iceberg.commit(copies, ADD)
    paths = {path for copy in copies for path in (copy.old_path, copy.new_path)}
    assert iceberg.referenced(paths | {unused.new_path}) == paths


def test_a_file_that_the_table_has_twice_is_left_out(catalog, table):
    path = next(iter(open_table(catalog).live_files())).path
    table.add_files([f"file://{path}"], check_duplicate_files=False)
    assert {
        file.unchangeable for file in open_table(catalog).live_files() if file.path == path
    } == {"the table has the file twice"}


def test_a_snapshot_is_later_than_all_others_where_the_clock_is_behind(catalog, table):
    """PyIceberg replaces a time of the last update that stays the same by that of its clock."""
    latest = make_later(table, 600)
    assert convert(open_table(catalog)).num_files == 2
    updated, earlier = times_of(catalog.load_table("n.t").metadata_location)
    assert updated > earlier == latest


def test_properties_alone_wait_for_the_clock(catalog, table):
    latest = make_later(table, 2)
    open_table(catalog).commit((), Change("SET", properties={"x.y": "z"}))
    table = catalog.load_table("n.t")
    updated, _ = times_of(table.metadata_location)
    assert (table.properties["x.y"], updated > latest) == ("z", True)


def test_properties_alone_are_refused_where_the_clock_is_far_behind(catalog, table):
    before = table.metadata_location
    make_later(table, 600)
    with pytest.raises(RefusedError) as caught:
        open_table(catalog).commit((), Change("SET", properties={"x.y": "z"}))
    assert len(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", caught.value.message)) == 2
    assert catalog.load_table("n.t").metadata_location == before


def test_the_metadata_of_a_folder_states_a_later_time(catalog, table):
    latest = make_later(table, 600)
    folder = to_hadoop(table)
    open_folder(str(folder)).commit((), Change("SET", properties={"x.y": "z"}))
    updated, _ = times_of(str(newest_metadata(folder)))
    assert updated == latest + 1


def test_properties_are_set_without_a_snapshot(catalog, table):
    before = table.current_snapshot().snapshot_id
    open_table(catalog).commit((), Change("SET", properties={"x.y": "z"}))
    open_table(catalog).commit((), Change("SET", properties={"x.y": "z"}))
    table.refresh()
    assert (table.properties["x.y"], table.current_snapshot().snapshot_id) == ("z", before)
    assert len(table.metadata.metadata_log) == 3
