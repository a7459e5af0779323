"""Small files that are published together: killed or failing at any call, each of them is the old file or the new one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from faults.failing_system import AFTER, BEFORE, DIVISIBLE, HALF, Disturbance, Killer, fail_with
from faults.write_paths import ADD_TO_FOLDER, FILES, LAKE_PATHS, BeforeLake, contents, prepare_lake
from sbbf_tool.errors import RefusedError, WriteError
from support.tables import each

COMMAND = LAKE_PATHS[ADD_TO_FOLDER]


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> BeforeLake:
    return prepare_lake(tmp_path_factory.mktemp("lake") / "one")


def calls_of(lake: BeforeLake, folder: Path) -> list[str]:
    with Disturbance(None, lambda: None).in_force() as undisturbed:
        assert COMMAND.act(lake.lay_out(folder)) == 0
    assert lake.is_done(folder)
    return undisturbed.calls


def test_every_file_is_synced_before_any_is_renamed_and_the_folder_once(lake, tmp_path):
    calls = [call for call in calls_of(lake, tmp_path / "it") if call in ("fsync", "exchange")]
    assert calls[-len(FILES) - 1 :] == ["exchange"] * len(FILES) + ["fsync"]
    assert calls.count("fsync") == len(FILES) + 1


@pytest.mark.heavy
def test_killed_at_every_call_that_writes(lake, killer: Killer, tmp_path):
    calls = killer.calls(ADD_TO_FOLDER, lake.lay_out(tmp_path / "it"))
    assert lake.is_done(tmp_path / "it")
    moments = [(at, BEFORE) for at in range(len(calls))]
    moments += [(at, HALF) for at, call in enumerate(calls) if call in DIVISIBLE]
    moments += [(len(calls) - 1, AFTER)]
    for at, when in moments:
        folder = lake.lay_out(tmp_path / "it")
        assert killer.kill_at(ADD_TO_FOLDER, folder, at, when), f"{when} {calls[at]}, number {at}"
        assert lake.is_whole(folder)
        assert COMMAND.act(folder) == 0
        assert lake.is_done(folder), sorted(contents(folder))


@each("code, lasting", [(errno.EIO, False)], heavy=[(errno.ENOSPC, True)])
def test_any_call_that_fails(lake, tmp_path, code, lasting):
    calls = calls_of(lake, tmp_path / "it")
    for at, call in enumerate(calls):
        folder = lake.lay_out(tmp_path / "it")
        with Disturbance(at, fail_with(code), lasting=lasting).in_force():
            exit_code = COMMAND.act(folder)
        case = f"{call}, number {at}"
        assert exit_code in (0, RefusedError.exit_code, WriteError.exit_code), case
        assert lake.is_whole(folder), case
        if exit_code == 0:
            assert {name: data for name, data in contents(folder).items() if name in FILES} == dict.fromkeys(FILES, lake.new), case
        assert COMMAND.act(folder) == 0, case
        assert lake.is_done(folder), case


@each("change", ["replaced", "longer"])
def test_a_file_that_changes_before_it_is_renamed_is_worked_on_again(lake, tmp_path, change):
    """Its new content stays; the other files are published."""
    calls = calls_of(lake, tmp_path / "it")
    other_file = lake.old[:4] + lake.old

    def change_file() -> None:
        with disturbance.paused():
            if change == "replaced":
                (folder / "other").write_bytes(lake.old)
                os.rename(folder / "other", folder / FILES[1])
            else:
                (folder / FILES[1]).write_bytes(other_file)

    for at in range(calls.index("fsync"), calls.index("exchange") + 1):
        folder = lake.lay_out(tmp_path / "it")
        disturbance = Disturbance(at, change_file)
        with disturbance.in_force():
            COMMAND.act(folder)
        actual = contents(folder)
        assert actual.pop(FILES[1]) == lake.new if change == "replaced" else actual.pop(FILES[1]).startswith(other_file[:4])
        assert actual == dict.fromkeys((FILES[0], FILES[2]), lake.new)


def test_two_names_of_one_file_do_not_wait_for_each_other(lake, tmp_path):
    """A hard link keeps the old content until its turn comes; a path that is named twice is skipped the second time."""
    from sbbf_tool.cli import run

    folder = lake.lay_out(tmp_path / "it")
    os.link(folder / FILES[0], folder / "d.parquet")
    twice = str(folder / FILES[1])
    arguments = ["add-filter", str(folder), twice, twice, *COMMAND.arguments[2:]]
    assert run(arguments) == 0
    assert contents(folder) == dict.fromkeys((*FILES, "d.parquet"), lake.new)
