"""The life of a table after a commit that replaced its files: clean-up, undo, change feed, checkpoint, compaction; real tables too."""

from __future__ import annotations

import os
from pathlib import Path

import deltalake
import pytest

from sbbf_tool.errors import SbbfError
from sbbf_tool.extensions.tables.delta.table import DeltaTable
from support.delta_logs import CHANGE, actions_of, commit_copies, copies_of
from support.delta_tables import copy_table, ids_of, make_table, read_rows, rows_of
from support.tables import each

ROOT = os.environ.get("SBBF_CONFORMANCE")
REAL = sorted(path.name for path in (Path(ROOT) / "delta").iterdir() if path.is_dir()) if ROOT else [""]


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
    """Whole actions come from the checkpoint, as only their names are kept when the table is opened."""
    make_table(tmp_path, 2, partitioned=True)
    old = {action["add"]["path"]: action["add"] for version in (0, 1) for action in actions_of(tmp_path, version) if "add" in action}
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
    """Return the versions by delta-rs, newest first; None for a table whose history it cannot read."""
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
    assert (type(rows), len(rows) if isinstance(rows, list) else 0) == (type(after), len(after) if isinstance(after, list) else 0)
    assert isinstance(rows, str) or rows == after
    if history is not None:
        assert history_of(path)[1 if result.num_files else 0 :] == history
    assert len(list(DeltaTable(str(path)).live_files())) == len(list(table.live_files()))
