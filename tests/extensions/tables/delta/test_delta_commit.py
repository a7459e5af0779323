"""The commit that replaces files by copies: its actions, what it carries, failing writes, and the
life of the table after it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import deltalake
import pytest

from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, SbbfError, UncertainWriteError
from sbbf_tool.extensions.tables.delta.table import DeltaTable
from support.delta_logs import (
    CHANGE,
    actions_of,
    add,
    before_create,
    commit_copies,
    copies_of,
    metadata,
    protocol,
    write_version,
)
from support.delta_tables import copy_table, ids_of, make_table, read_rows, rows_of
from support.tables import each

VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab",
    "offset": 1,
    "sizeInBytes": 3,
    "cardinality": 1,
}


def test_nothing_is_written_outside_of_the_table_through_a_link(tmp_path):
    """A folder of the table that is a link leads out of it; a file that is a link is only read, and
    its copy is beside it."""
    folder = tmp_path / "t"
    elsewhere = tmp_path / "elsewhere"
    make_table(folder, 3)
    (elsewhere / "deep").mkdir(parents=True)
    (folder / "lnk").symlink_to(elsewhere)
    names = sorted(path.name for path in folder.glob("*.parquet"))
    for name, place in zip(names, ("lnk", "lnk/deep", ""), strict=True):
        (folder / name).rename(elsewhere / place.removeprefix("lnk").lstrip("/") / name)
        if not place:
            (folder / name).symlink_to(elsewhere / name)
            continue
        for version in (folder / "_delta_log").glob("*.json"):
            text = version.read_text().replace(f'"path":"{name}', f'"path":"{place}/{name}')
            version.write_text(text)
    before = sorted(elsewhere.rglob("*"))
    reasons = [file.unchangeable or "" for file in DeltaTable(str(folder)).live_files()]
    assert sum("a link in its path leads out" in reason for reason in reasons) == 2
    assert run(["add-filter", str(folder), "-c", "id", "--in-place"]) == 0
    assert sorted(elsewhere.rglob("*")) == before
    assert [path.name for path in folder.glob("sbbf-*.parquet")] != []

    (folder / "_delta_log").rename(elsewhere / "_delta_log")
    (folder / "_delta_log").symlink_to(elsewhere / "_delta_log")
    with pytest.raises(RefusedError, match="_delta_log is a link that leads out"):
        DeltaTable(str(folder)).ensure_changeable()


def test_the_actions_of_a_commit(tmp_path):
    make_table(tmp_path, 2, partitioned=True)
    old = {
        action["add"]["path"]: action["add"]
        for version in (0, 1)
        for action in actions_of(tmp_path, version)
        if "add" in action
    }
    result = commit_copies(tmp_path)
    assert (result.version, result.num_files, result.vanished, result.rebuilds) == (
        "version 2",
        2,
        (),
        0,
    )
    assert result.undo == f"RESTORE TABLE delta.`{tmp_path}` TO VERSION AS OF 1"
    first, *actions = actions_of(tmp_path, 2)
    information = first["commitInfo"]
    assert next(iter(information)) == "timestamp"
    assert information["operation"] == "ADD BLOOM FILTERS"
    assert information["operationParameters"] == {"columns": '["id"]'}
    assert information["operationMetrics"] == {"numAddedFiles": "2", "numRemovedFiles": "2"}
    assert (
        information["readVersion"],
        information["isBlindAppend"],
        information["isolationLevel"],
    ) == (1, False, "SnapshotIsolation")
    removes = [action["remove"] for action in actions if "remove" in action]
    adds = [action["add"] for action in actions if "add" in action]
    assert {fields["path"] for fields in removes} == set(old)
    for fields in removes:
        before = old[fields["path"]]
        assert fields | {"deletionTimestamp": 0} == {
            "path": before["path"], "deletionTimestamp": 0, "dataChange": False,
            "extendedFileMetadata": True,
            "partitionValues": before["partitionValues"], "size": before["size"],
            "stats": before["stats"],
        }  # fmt: skip
    for fields in adds:
        before = old[fields["path"].replace("sbbf-run-1-", "")]
        expected = {name: value for name, value in before.items() if value is not None}
        assert {name: value for name, value in fields.items() if value is not None} == expected | {
            "path": fields["path"], "modificationTime": 1_700_000_000_000, "dataChange": False,
        }  # fmt: skip
    assert ids_of(tmp_path) == list(range(20))
    assert ids_of(tmp_path, 1) == list(range(20))


def one_file_table(
    path: Path, *features: str, configuration: dict[str, str] | None = None, **fields: object
) -> DeltaTable:
    path.mkdir(exist_ok=True)
    (path / "d=a b").mkdir()
    (path / "d=a b" / "x.parquet").write_bytes(b"old")
    write_version(
        path, 0, {"commitInfo": {"inCommitTimestamp": 9_999_999_999_999}},
        protocol(features=["deletionVectors"], writer_only=features),
        metadata(configuration), add("d=a%20b/x.parquet", **fields),
    )  # fmt: skip
    table = DeltaTable(str(path))
    table.ensure_changeable()
    return table


def replace_file(table: DeltaTable) -> dict[str, dict[str, object]]:
    """Replace the only file; return the actions by name."""
    result = table.commit(copies_of(table), CHANGE)
    assert result.num_files == 1
    return {
        name: fields
        for action in actions_of(Path(table.location), 1)
        for name, fields in action.items()
    }


def test_everything_that_the_log_has_of_a_file_is_carried(tmp_path):
    fields = {"tags": {"a": "b", "n": None}, "deletionVector": VECTOR,
        "clusteringProvider": "liquid", "stats": '{"numRecords":1.0}',
              "unknown": {"x": [1, 2.5, None]}}  # fmt: skip
    actions = replace_file(one_file_table(tmp_path, **fields))
    assert {name: actions["add"][name] for name in fields} == fields
    assert actions["add"]["path"] == "d=a%20b/sbbf-run-1-x.parquet"
    assert {name: actions["remove"][name] for name in ("tags", "deletionVector", "stats")} == {
        name: fields[name] for name in ("tags", "deletionVector", "stats")
    }
    assert "unknown" not in actions["remove"]
    assert "clusteringProvider" not in actions["remove"]


def test_the_time_of_a_commit_in_the_log_increases(tmp_path):
    actions = replace_file(
        one_file_table(
            tmp_path, "inCommitTimestamp", configuration={"delta.enableInCommitTimestamps": "true"}
        )
    )
    assert actions["commitInfo"]["inCommitTimestamp"] == 10_000_000_000_000
    assert "commitInfo" in actions_of(tmp_path, 1)[0]


ROW_IDS = {"baseRowId": 5, "defaultRowCommitVersion": 0}


def test_row_ids_are_carried(tmp_path):
    table = one_file_table(
        tmp_path,
        "rowTracking",
        "domainMetadata",
        configuration={"delta.enableRowTracking": "true"},
        **ROW_IDS,
    )
    actions = replace_file(table)
    assert ROW_IDS.items() <= actions["add"].items()
    assert ROW_IDS.items() <= actions["remove"].items()
    assert actions["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "true"}
    (tmp_path / "suspended").mkdir()
    configuration = {"delta.rowTrackingSuspended": "true"}
    actions = replace_file(
        one_file_table(
            tmp_path / "suspended", "rowTracking", configuration=configuration, **ROW_IDS
        )
    )
    assert not ROW_IDS.keys() & actions["add"].keys()
    assert ROW_IDS.items() <= actions["remove"].items()


def test_a_file_without_row_ids_is_left_out_where_rows_are_tracked(tmp_path):
    table = one_file_table(tmp_path, "rowTracking")
    assert [file.unchangeable for file in table.live_files()] == [
        "it has no row ids, although the table has the feature rowTracking"
    ]


def test_a_file_of_the_same_name_but_another_size_is_left_out(tmp_path):
    table = one_file_table(tmp_path)
    assert (
        table.copy_path(next(iter(table.live_files())), "sbbf-r-1-x")
        == f"{tmp_path}/d=a b/sbbf-r-1-x"
    )
    replacements = copies_of(table)
    write_version(tmp_path, 1, add("d=a%20b/x.parquet", size=4))
    assert table.commit(replacements, CHANGE).num_files == 0


def test_a_feature_that_came_meanwhile_is_refused(tmp_path, monkeypatch):
    table = one_file_table(tmp_path)
    before_create(
        table,
        monkeypatch,
        lambda: write_version(tmp_path, 1, protocol(writer_only=["somethingNew"])),
    )
    with pytest.raises(RefusedError, match="somethingNew"):
        table.commit(copies_of(table), CHANGE)


def test_a_response_that_got_lost(tmp_path, monkeypatch):
    """The version exists when the request is repeated: it is recognised by its transaction."""
    make_table(tmp_path)
    table = DeltaTable(str(tmp_path))
    create = table._folders.create

    def create_and_lose(path: str, data: bytes) -> None:
        create(path, data)
        raise FileExistsError(errno.EEXIST, "exists", path)

    monkeypatch.setattr(table._folders, "create", create_and_lose)
    result = table.commit(copies_of(table), CHANGE)
    assert (result.version, result.num_files) == ("version 3", 3)
    assert ids_of(tmp_path) == list(range(30))
    assert not (tmp_path / "_delta_log" / f"{4:020d}.json").exists()


@each("lands", [False, True])
def test_a_request_of_unknown_outcome(tmp_path, monkeypatch, lands):
    make_table(tmp_path)
    table = DeltaTable(str(tmp_path))
    create = table._folders.create

    def create_perhaps(path: str, data: bytes) -> None:
        if lands:
            create(path, data)
        raise UncertainWriteError("the store answered 500")

    monkeypatch.setattr(table._folders, "create", create_perhaps)
    if lands:
        assert table.commit(copies_of(table), CHANGE).version == "version 3"
    else:
        with pytest.raises(
            UncertainWriteError, match=f"{3:020d}.json.*unknown whether the commit succeeded"
        ):
            table.commit(copies_of(table), CHANGE)


@each(
    "error",
    [
        FileExistsError(errno.EEXIST, "exists"),
        UncertainWriteError("no answer"),
        OSError(errno.EIO, "input/output error"),
    ],
)
def test_a_version_that_cannot_be_read_back(tmp_path, monkeypatch, error):
    """It may be this commit, so that the copies must stay: it is not taken for the commit of
    another writer."""
    make_table(tmp_path)
    table = DeltaTable(str(tmp_path))
    create, read = table._folders.create, table._folders.read

    def create_and_lose(path: str, data: bytes) -> None:
        create(path, data)
        raise error

    def fail_to_read(path: str, most: int | None = None) -> bytes:
        if path.endswith("3.json"):
            raise OSError(errno.EIO, "input/output error", path)
        return read(path, most)

    monkeypatch.setattr(table._folders, "create", create_and_lose)
    monkeypatch.setattr(table._folders, "read", fail_to_read)
    with pytest.raises(UncertainWriteError, match="unknown whether the commit succeeded"):
        table.commit(copies_of(table), CHANGE)


@pytest.mark.slow
def test_it_gives_up_when_others_always_come_first(tmp_path, monkeypatch):
    make_table(tmp_path, 1)
    table = DeltaTable(str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    versions = iter(range(1, 1000))
    tries = before_create(
        table,
        monkeypatch,
        lambda: write_version(tmp_path, next(versions), {"commitInfo": {}}),
        1000,
    )
    with pytest.raises(RefusedError, match="other commits came first in all 100 attempts"):
        table.commit(copies_of(table), CHANGE)
    assert len(tries) == 100


def test_the_undo_is_one_statement_whatever_the_folder_is_called(tmp_path):
    make_table(tmp_path / "a`; DROP TABLE b")
    table = DeltaTable(str(tmp_path / "a`; DROP TABLE b"))
    undo = table.commit(copies_of(table), CHANGE).undo
    assert (
        undo == f"RESTORE TABLE delta.`{tmp_path}/a``; DROP TABLE b` TO VERSION AS OF "
        f"{int(table.version.split()[1])}"
    )


def test_files_that_some_version_refers_to(tmp_path):
    make_table(tmp_path)
    table = DeltaTable(str(tmp_path))
    abandoned = f"{tmp_path}/sbbf-run-0-x.parquet"
    replacements = copies_of(table)
    paths = {
        abandoned,
        *(replacement.new_path for replacement in replacements),
        *(replacement.old_path for replacement in replacements),
    }
    old = {replacement.old_path for replacement in replacements}
    assert table.referenced(paths) == old
    table.commit(replacements, CHANGE)
    assert table.referenced(paths) == paths - {abandoned}
    later = deltalake.DeltaTable(tmp_path)
    later.delete()
    later.create_checkpoint()
    # Only the checkpoint names the files now, as live or removed.
    for version in range(4):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    assert table.referenced(paths) == paths - {abandoned}
    assert table.referenced(set()) == set()


def test_a_statistic_without_json_form_and_numbers_without_limits_are_kept(tmp_path):
    write_version(
        tmp_path,
        0,
        protocol(1, 2),
        metadata(),
        json.dumps(add("x"))[:-2] + f',"big":{10**40},"text":"\\ud800"}}}}',
    )
    (tmp_path / "x").write_bytes(b"old")
    table = DeltaTable(str(tmp_path))
    table.commit(copies_of(table), CHANGE)
    (fields,) = (action["add"] for action in actions_of(tmp_path, 1) if "add" in action)
    assert (fields["big"], fields["text"]) == (10**40, "\ud800")


ROOT = os.environ.get("SBBF_CONFORMANCE")
REAL = (
    sorted(path.name for path in (Path(ROOT) / "delta").iterdir() if path.is_dir())
    if ROOT
    else [""]
)


def test_vacuum_removes_the_old_files_only(tmp_path):
    make_table(tmp_path)
    old = {file.path for file in DeltaTable(str(tmp_path)).live_files()}
    commit_copies(tmp_path)
    table = deltalake.DeltaTable(tmp_path)
    names = table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert {str(tmp_path / name) for name in names} == old
    assert ids_of(tmp_path) == list(range(30))


def test_restore_undoes_the_commit(tmp_path):
    make_table(tmp_path)
    old = {file.path for file in DeltaTable(str(tmp_path)).live_files()}
    assert commit_copies(tmp_path).undo == f"RESTORE TABLE delta.`{tmp_path}` TO VERSION AS OF 2"
    deltalake.DeltaTable(tmp_path).restore(2)
    assert {file.path for file in DeltaTable(str(tmp_path)).live_files()} == old
    assert ids_of(tmp_path) == list(range(30))


def test_the_change_feed_has_no_rows_of_the_commit(tmp_path):
    make_table(tmp_path, 2, configuration={"delta.enableChangeDataFeed": "true"})
    commit_copies(tmp_path)
    deltalake.write_deltalake(tmp_path, rows_of(100, 5), mode="append")
    changes = deltalake.DeltaTable(tmp_path).load_cdf(starting_version=0).read_all()
    versions = changes.column("_commit_version").to_pylist()
    assert (versions.count(2), versions.count(3), len(versions)) == (0, 5, 25)


def test_checkpoint_log_cleanup_and_compaction_after_the_commit(tmp_path):
    make_table(tmp_path)
    commit_copies(tmp_path)
    table = deltalake.DeltaTable(tmp_path)
    table.create_checkpoint()
    ours = DeltaTable(str(tmp_path))
    assert len(list(ours.live_files())) == 3
    assert commit_copies(tmp_path, "run-2").num_files == 3
    table = deltalake.DeltaTable(tmp_path)
    table.delete("id = 4")
    table.optimize.compact()
    table.cleanup_metadata()
    assert ids_of(tmp_path) == [number for number in range(30) if number != 4]
    assert commit_copies(tmp_path, "run-3").num_files == 1
    assert ids_of(tmp_path) == [number for number in range(30) if number != 4]


def test_a_commit_of_a_checkpoint_has_the_actions_of_its_files(tmp_path):
    """Whole actions come from the checkpoint, as only their names are kept when the table is
    opened."""
    make_table(tmp_path, 2, partitioned=True)
    old = {
        action["add"]["path"]: action["add"]
        for version in (0, 1)
        for action in actions_of(tmp_path, version)
        if "add" in action
    }
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    for version in (0, 1):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    commit_copies(tmp_path)
    for action in actions_of(tmp_path, 2):
        if "add" in action:
            before = old[action["add"]["path"].replace("sbbf-run-1-", "")]
            assert {name: action["add"][name] for name in ("partitionValues", "stats", "size")} == {
                name: before[name] for name in ("partitionValues", "stats", "size")
            }


def history_of(path: Path) -> list[dict[str, object]] | None:
    """Return the versions by delta-rs, newest first; None for a table whose history it cannot
    read."""
    try:
        return deltalake.DeltaTable(path).history()
    except deltalake.exceptions.DeltaProtocolError:
        return None


@pytest.mark.slow
@each("name", REAL, every=4)
def test_real_tables_have_the_same_rows_and_history(conformance: Path, tmp_path, name):
    path = copy_table(conformance / "delta" / name, tmp_path / "it")
    rows = read_rows(path)
    try:
        table = DeltaTable(str(path))
        table.ensure_changeable()
    except SbbfError:
        assert isinstance(rows, str) or name == "connectors__collations-table"
        return
    history = history_of(path)
    result = table.commit(copies_of(table), CHANGE)
    after = read_rows(path)
    # A reader's error may name the files.
    assert (type(rows), len(rows) if isinstance(rows, list) else 0) == (
        type(after),
        len(after) if isinstance(after, list) else 0,
    )
    assert isinstance(rows, str) or rows == after
    if history is not None:
        assert history_of(path)[1 if result.num_files else 0 :] == history
    assert len(list(DeltaTable(str(path)).live_files())) == len(list(table.live_files()))
