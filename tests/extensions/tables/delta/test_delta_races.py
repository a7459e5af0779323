"""Other writers that commit while sbbf does: delta-rs before each try, and five processes at once.
No row is lost or doubled."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from sbbf_tool.extensions.tables.delta.table import DeltaTable
from support.delta_logs import (
    CHANGE,
    actions_of,
    before_create,
    commit_copies,
    copies_of,
    inline_vector,
    metadata,
    protocol,
    remove,
    write_version,
)
from support.delta_tables import ids_of, make_table, read_rows, rows_of
from support.tables import each


def append(path: Path, first: int = 1000, day: str = "a") -> None:
    deltalake.write_deltalake(path, rows_of(first, 10, day), mode="append")


def append_three(path: Path) -> None:
    for number in range(3):
        append(path, 1000 + 10 * number)


def checkpoint_and_clean(path: Path) -> None:
    """Remove versions between the one that was read and a checkpoint, so that they cannot be
    followed one by one."""
    append_three(path)
    deltalake.DeltaTable(path).create_checkpoint()
    for version in (0, 1, 2, 4):
        (path / "_delta_log" / f"{version:020d}.json").unlink(missing_ok=True)


def add_column(path: Path) -> None:
    wider = rows_of(1000, 10).append_column("new", pa.array(range(10), pa.int32()))
    deltalake.write_deltalake(path, wider, mode="append", schema_mode="merge")


RIVALS: dict[str, tuple[Callable[[Path], object], int, int]] = {
    # What another writer does, the number of rows afterwards, and how many of the three files are
    # still live.
    "append": (append, 40, 3),
    "three appends": (append_three, 60, 3),
    "delete all": (lambda path: deltalake.DeltaTable(path).delete(), 0, 0),
    "delete a day": (lambda path: deltalake.DeltaTable(path).delete("day = 'b'"), 20, 2),
    "delete rows": (lambda path: deltalake.DeltaTable(path).delete("id in (5, 15)"), 28, 1),
    "update": (
        lambda path: deltalake.DeltaTable(path).update({"id": "id + 100"}, predicate="id < 5"),
        30,
        2,
    ),
    "compact": (lambda path: deltalake.DeltaTable(path).optimize.compact(), 30, 1),
    "sort": (lambda path: deltalake.DeltaTable(path).optimize.z_order(["id"]), 30, 0),
    "overwrite": (
        lambda path: deltalake.write_deltalake(path, rows_of(7, 2), mode="overwrite"),
        2,
        0,
    ),
    "new column": (add_column, 40, 3),
    "new property": (
        lambda path: deltalake.DeltaTable(path).alter.set_table_properties(
            {"delta.appendOnly": "true"}
        ),
        30,
        3,
    ),
    "checkpoint and clean-up": (checkpoint_and_clean, 60, 3),
    "sbbf": (lambda path: commit_copies(path, "run-0"), 30, 0),
}


@each("act, rows, live", RIVALS)
def test_another_commit_comes_first(tmp_path, monkeypatch, act, rows, live):
    make_table(tmp_path, 3, partitioned=True)
    table = DeltaTable(str(tmp_path))
    replacements = copies_of(table)
    tries = before_create(table, monkeypatch, lambda: act(tmp_path))
    result = table.commit(replacements, CHANGE)
    assert (result.num_files, len(result.vanished), result.rebuilds) == (live, 3 - live, 1)
    assert len(tries) == 1 + (live > 0)
    assert len(read_rows(tmp_path)) == rows
    if live:
        before = int(result.version.removeprefix("version ")) - 1
        if act is not checkpoint_and_clean:
            assert read_rows(tmp_path, before) == read_rows(tmp_path)
        assert {
            replacement.new_path
            for replacement in replacements
            if replacement.old_path not in result.vanished
        } <= {file.path for file in DeltaTable(str(tmp_path)).live_files()}


def test_a_deletion_vector_that_grew_meanwhile_is_carried(tmp_path, monkeypatch):
    make_table(tmp_path / "source", 1)
    (file,) = (action["add"] for action in actions_of(tmp_path / "source", 0) if "add" in action)
    path = tmp_path / "it"
    path.mkdir()
    shutil.copyfile(tmp_path / "source" / file["path"], path / file["path"])
    first, second = inline_vector([0, 3]), inline_vector([0, 3, 4, 5])
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "day", "type": "string", "nullable": True, "metadata": {}},
    ]
    write_version(
        path,
        0,
        protocol(features=["deletionVectors"]),
        metadata({"delta.enableDeletionVectors": "true"}, fields),
        {"add": file | {"deletionVector": first}},
    )
    assert ids_of(path) == [1, 2, 4, 5, 6, 7, 8, 9]
    table = DeltaTable(str(path))
    actions = remove(file["path"], deletionVector=first), {"add": file | {"deletionVector": second}}
    before_create(table, monkeypatch, lambda: write_version(path, 1, *actions))
    result = table.commit(copies_of(table), CHANGE)
    assert (result.version, result.num_files, result.rebuilds) == ("version 2", 1, 1)
    assert ids_of(path) == [1, 2, 6, 7, 8, 9]
    assert ids_of(path, 0) == [1, 2, 4, 5, 6, 7, 8, 9]
    assert [
        action["add"]["deletionVector"] for action in actions_of(path, 2) if "add" in action
    ] == [second]


def _append_many(path: str, first: int, count: int) -> None:
    for number in range(count):
        while True:
            try:
                deltalake.write_deltalake(
                    path, rows_of(first + 10 * number, 10, "ab"[number % 2]), mode="append"
                )
                break
            except deltalake.exceptions.CommitFailedError:
                time.sleep(random.random() / 20)


def _delete_many(path: str, numbers: list[int]) -> None:
    for number in numbers:
        while True:
            try:
                deltalake.DeltaTable(path).delete(f"id = {number}")
                break
            except deltalake.exceptions.CommitFailedError:
                time.sleep(random.random() / 20)


def _replace_many(path: str, run: str, count: int) -> None:
    for number in range(count):
        commit_copies(path, f"{run}-{number}")
        time.sleep(random.random() / 10)


def race(path: Path, appends: int, deletes: int, replacements: int) -> None:
    make_table(path, 3)
    numbers = list(range(0, 3 * deletes, 3))[:deletes]
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_append_many, args=(str(path), 10_000, appends)),
        context.Process(target=_append_many, args=(str(path), 20_000, appends)),
        context.Process(target=_delete_many, args=(str(path), numbers)),
        context.Process(target=_replace_many, args=(str(path), "p", replacements)),
        context.Process(target=_replace_many, args=(str(path), "q", replacements)),
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    expected = (
        set(range(30))
        | set(range(10_000, 10_000 + 10 * appends))
        | set(range(20_000, 20_000 + 10 * appends))
    )
    assert ids_of(path) == sorted(expected - set(numbers))
    operations = [entry["operation"] for entry in deltalake.DeltaTable(path).history()]
    assert "ADD BLOOM FILTERS" in operations
    for version in range(len(operations)):
        assert actions_of(path, version)


@pytest.mark.heavy(minutes=1)
def test_five_processes_at_once(tmp_path):
    race(tmp_path, 8, 5, 4)
