"""Any call that writes may fail: the command then ends with one line and its exit code, and the
file is the old one or the new one."""

from __future__ import annotations

import errno
import os

from faults.failing_system import CALLS, Disturbance, fail_with, module_of, moments_of
from faults.write_paths import FILE, Before, contents
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UnreadableError, WriteError
from sbbf_tool.file import interrupted
from support.tables import each

SAYS_NO = (RefusedError.exit_code, WriteError.exit_code)
OS_CALLS = tuple(name for name in CALLS if hasattr(module_of(name), name))
ALLOCATING = ("open", "write", "copy_file_range", "fsync", "rename", "exchange", "link")
"""Calls that a full disk may refuse. It refuses them again until there is room."""


def calls_of(before: Before, folder, only: tuple[str, ...]) -> list[str]:
    with Disturbance(None, lambda: None, only=only).in_force() as undisturbed:
        assert before.path.act(before.lay_out(folder)) == 0
    return undisturbed.calls


def assert_told_and_whole(before: Before, folder, code: int, case: str) -> None:
    """Nothing is left beside the file, unless removing it is what failed; the next command removes
    that."""
    done = code == 0
    assert done or code in SAYS_NO, case
    expected, actual = before.expected(folder, done=done), contents(folder)
    if actual != expected and before.path.appends:
        # What could not be undone then is undone now.
        interrupted.undo(str(folder / FILE), str(folder / FILE), None)
        actual = contents(folder)
    assert {name: data for name, data in actual.items() if not name.startswith(".")} == expected, (
        case
    )
    if actual != expected:
        run(["repair", str(folder / before.path.target), "--in-place", "--quick"])
        assert not [name for name in contents(folder) if name.startswith(".")], case


@each("lasting", [False, True])
def test_a_disk_that_is_full_at_any_call(before, tmp_path, lasting):
    calls = calls_of(before, tmp_path / "it", ALLOCATING)
    for at, when in moments_of(calls):
        folder = before.lay_out(tmp_path / "it")
        full = Disturbance(at, fail_with(errno.ENOSPC), when, ALLOCATING, lasting)
        with full.in_force():
            code = before.path.act(folder)
        case = f"{calls[at]}, number {at}, {when}"
        assert_told_and_whole(before, folder, code, case)
        # Only what comes after the new file has its name may fail and be no failure.
        assert code != 0 or at > calls.index("fsync"), case


def test_any_call_that_fails(before, tmp_path):
    calls = calls_of(before, tmp_path / "it", OS_CALLS)
    for at, call in enumerate(calls):
        for code in (errno.EIO, errno.EPERM):
            folder = before.lay_out(tmp_path / "it")
            with Disturbance(at, fail_with(code)).in_force():
                answer = before.path.act(folder)
            assert_told_and_whole(
                before, folder, answer, f"{call}, number {at}, {errno.errorcode[code]}"
            )


# The source, meanwhile


@each("change", ["replaced"], heavy=["truncated", "removed", "longer"])
def test_a_source_that_changes_meanwhile(before, tmp_path, change):
    """A change by another program at any call: its bytes are not lost, and no wrong file is
    published."""
    replacement = b"somebody else's bytes"

    def replace_bytes() -> None:
        with open_undisturbed():
            if change == "replaced":
                (folder / "other").write_bytes(replacement)
                os.rename(folder / "other", folder / FILE)
            elif change == "truncated":
                os.truncate(folder / FILE, len(before.old) // 2)
            elif change == "removed":
                (folder / FILE).unlink()
            else:
                with open(folder / FILE, "ab") as stream:
                    stream.write(replacement)

    calls = calls_of(before, tmp_path / "it", OS_CALLS)
    last = (
        calls.index("exchange")
        if "exchange" in calls
        else len(calls) - 1 - calls[::-1].index("rename" if before.path.appends else "link")
    )
    for at in range(last + 1):
        folder = before.lay_out(tmp_path / "it")
        disturbance = Disturbance(at, replace_bytes)
        open_undisturbed = disturbance.paused
        with disturbance.in_force():
            code = before.path.act(folder)
        assert code in (0, UnreadableError.exit_code, *SAYS_NO), calls[at]
        actual = {name: data for name, data in contents(folder).items() if not name.startswith(".")}
        if change == "replaced":
            assert replacement in actual.values() or code == 0
        if before.path.target != FILE:
            assert before.path.target not in actual or actual[before.path.target] == before.new
