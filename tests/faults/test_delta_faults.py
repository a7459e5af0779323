"""A commit to a Delta table, failing or killed at any call: the table is at its old version or its
new one, and whole."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import deltalake
import pytest

from faults.failing_system import CALLS, Disturbance, Killer, fail_with
from faults.write_paths import COMMIT, TABLE, TABLE_PATHS
from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.storage.leftovers import TEMPORARY_SUFFIX
from support.delta_logs import actions_of, copies_of, open_table
from support.delta_tables import ids_of, make_table
from support.tables import each

PATH = TABLE_PATHS[COMMIT]
OLD, NEW = 1, 2
LayOut = Callable[[str], Path]


@pytest.fixture
def lay_out(tmp_path: Path) -> LayOut:
    """A function that puts the old table and the copies of its files in a folder."""
    make_table(tmp_path / "original", 2)
    copies_of(open_table(tmp_path / "original"))

    def copy(name: str) -> Path:
        folder = tmp_path / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copytree(tmp_path / "original", folder / TABLE)
        return folder

    return copy


def version_of(table: Path) -> int:
    """The newest version, once it was seen that the table is whole: every row there once, every
    version readable."""
    newest = deltalake.DeltaTable(table).version()
    assert newest in (OLD, NEW)
    for version in range(newest + 1):
        assert actions_of(table, version)
    assert ids_of(table) == list(range(20))
    return newest


def assert_done_by_the_next_command(folder: Path) -> None:
    assert PATH.act(folder) == 0
    assert version_of(folder / TABLE) == NEW
    assert not [
        path for path in (folder / TABLE).rglob("*") if path.name.endswith(TEMPORARY_SUFFIX)
    ]


@each("number", [errno.EIO, errno.EPERM, errno.ENOSPC])
def test_any_call_that_fails(lay_out: LayOut, number: int) -> None:
    with Disturbance(None, lambda: None, only=CALLS).in_force() as undisturbed:
        assert PATH.act(lay_out("undisturbed")) == 0
    codes = set()
    for at, call in enumerate(undisturbed.calls):
        folder = lay_out(f"at {at}")
        with Disturbance(at, fail_with(number)).in_force():
            code = PATH.act(folder)
        assert code in (0, RefusedError.exit_code, WriteError.exit_code), call
        assert version_of(folder / TABLE) == (NEW if code == 0 else OLD), (call, at)
        codes.add(code)
        if code:
            assert_done_by_the_next_command(folder)
    assert codes == {0, RefusedError.exit_code if number == errno.EPERM else WriteError.exit_code}


def test_killed_at_every_call_that_writes(lay_out: LayOut, killer: Killer) -> None:
    calls = killer.calls(COMMIT, lay_out("undisturbed"))
    assert {"open", "write", "fsync", "link", "unlink"} == set(calls)
    states = set()
    for folder in killer.kill_everywhere(COMMIT, lambda: lay_out("killed"), calls):
        states.add(state := version_of(folder / TABLE))
        if state == OLD:
            assert_done_by_the_next_command(folder)
    assert states == {OLD, NEW}
