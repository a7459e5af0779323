"""A commit to a Paimon table, failing or killed at any call: the table is at its old snapshot or
its new one, and whole.

What a killed commit had written before its snapshot stays, and nothing names it; Paimon calls such
files orphans, and removes them.
"""

from __future__ import annotations

import errno
from itertools import count
from pathlib import Path

import pytest

from faults.failing_system import CALLS, Disturbance, Killer, fail_with, moments_of
from faults.write_paths import ADD_INDEX, ORDERS, TABLE, TABLE_PATHS, orders
from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from sbbf_tool.storage.leftovers import TEMPORARY_SUFFIX
from support.samples import listing

PATH = TABLE_PATHS[ADD_INDEX]
OLD, NEW = 4, 5
HINT = "snapshot/LATEST"
FULL = ("open", "write", "fsync", "rename", "link")


ORIGINAL = listing(ORDERS)
DATA_FILES = {Path(name).name for name in ORIGINAL if name.endswith(".parquet")}


def lay_out(folder: Path) -> Path:
    """The old table alone in a new folder."""
    folder.mkdir()
    orders(folder / TABLE)
    return folder


def snapshot_of(table: Path) -> int:
    """The latest snapshot, once it was seen that the table is whole: every old file as it was,
    every data file there, no value lost."""
    actual = listing(table)
    assert {name: actual[name] for name in ORIGINAL if name != HINT} == {
        name: ORIGINAL[name] for name in ORIGINAL if name != HINT
    }
    assert actual[HINT] in (b"4", b"5")
    report = inspect_paimon(table)
    assert report.snapshot in (OLD, NEW)
    assert {file.data_file for file in report.files} == DATA_FILES
    assert not report.errors
    assert sum(file.place != "none" for file in report.files) == (
        2 if report.snapshot == OLD else 4
    )
    result = verify_paimon(table)
    assert not result.has_false_negatives
    assert not result.problems
    return report.snapshot


def assert_done_by_the_next_command(folder: Path) -> None:
    assert PATH.act(folder) == 0
    assert snapshot_of(folder / TABLE) == NEW
    touched = {name for name in listing(folder / TABLE) if name.endswith(TEMPORARY_SUFFIX)}
    assert not touched


def calls_of(folder: Path, only: tuple[str, ...]) -> list[str]:
    with Disturbance(None, lambda: None, only=only).in_force() as undisturbed:
        assert PATH.act(lay_out(folder)) == 0
    assert snapshot_of(folder / TABLE) == NEW
    return undisturbed.calls


@pytest.mark.parametrize("lasting", [True, pytest.param(False, marks=pytest.mark.heavy)])
def test_a_disk_that_is_full_at_any_call(tmp_path: Path, lasting: bool) -> None:
    calls = calls_of(tmp_path / "undisturbed", FULL)
    codes = set()
    for at, when in moments_of(calls):
        folder = lay_out(tmp_path / f"{at} {when}")
        with Disturbance(at, fail_with(errno.ENOSPC), when, FULL, lasting).in_force():
            code = PATH.act(folder)
        codes.add(code)
        assert code in (0, WriteError.exit_code), calls[at]
        assert snapshot_of(folder / TABLE) == (NEW if code == 0 else OLD), (calls[at], at)
        if code:
            assert listing(folder / TABLE) == ORIGINAL, (calls[at], at)
    assert codes == {0, WriteError.exit_code}


@pytest.mark.heavy
@pytest.mark.parametrize("number", [errno.EIO, pytest.param(errno.EPERM, marks=pytest.mark.heavy)])
def test_any_call_that_fails(tmp_path: Path, number: int) -> None:
    calls = calls_of(tmp_path / "undisturbed", CALLS)
    for at, call in enumerate(calls):
        folder = lay_out(tmp_path / str(at))
        with Disturbance(at, fail_with(number)).in_force():
            code = PATH.act(folder)
        assert code in (0, RefusedError.exit_code, WriteError.exit_code), call
        assert snapshot_of(folder / TABLE) == (NEW if code == 0 else OLD), (call, at)
        leftovers = {name for name in listing(folder / TABLE) if name not in ORIGINAL}
        assert code == 0 or not leftovers or call == "unlink", (call, at, leftovers)
        if code:
            assert_done_by_the_next_command(folder)


@pytest.mark.heavy
def test_killed_at_every_call_that_writes(tmp_path: Path, killer: Killer) -> None:
    calls = killer.calls(ADD_INDEX, lay_out(tmp_path / "undisturbed"))
    assert snapshot_of(tmp_path / "undisturbed" / TABLE) == NEW
    assert {"open", "write", "fsync", "link", "rename", "unlink"} == set(calls)
    states, numbers = set(), count()
    for folder in killer.kill_everywhere(
        ADD_INDEX, lambda: lay_out(tmp_path / str(next(numbers))), calls
    ):
        states.add(state := snapshot_of(folder / TABLE))
        if state == OLD:
            assert_done_by_the_next_command(folder)
    assert states == {OLD, NEW}


def test_concurrent_commits_are_serialized(tmp_path: Path) -> None:
    """Another of us commits right before our snapshot: ours is planned again, and has nothing to
    do."""
    folder = lay_out(tmp_path / "it")
    calls = calls_of(tmp_path / "undisturbed", ("link",))
    within, snapshots = Disturbance(len(calls) - 1, lambda: None, only=("link",)), []

    def commit_first() -> None:
        with within.paused():
            assert PATH.act(folder) == 0
        snapshots.append(snapshot_of(folder / TABLE))

    within.strike = commit_first
    with within.in_force():
        assert PATH.act(folder) == 0
    assert snapshots[:1] == [NEW], "another commit came first"
    assert snapshot_of(folder / TABLE) == NEW
    new_files = {name for name in listing(folder / TABLE) if name not in ORIGINAL}
    undisturbed = {
        name for name in listing(tmp_path / "undisturbed" / TABLE) if name not in ORIGINAL
    }
    assert len(new_files) == len(undisturbed)
