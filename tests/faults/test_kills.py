"""Killed at any moment, a command leaves the old file or the new one, and the next command leaves
no trace of it.

A kill takes nothing from the disk that was written before; for a loss of power, which may, see
`test_power_loss`.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faults.failing_system import Killer
from faults.write_paths import WRITE_PATHS, Before, assert_whole, contents

SHORT = ("add", "append")
"""The ways to write, copying and appending; the other write paths have their parts in common."""


@pytest.mark.parametrize(
    "path",
    [
        name if name in SHORT else pytest.param(name, marks=pytest.mark.heavy)
        for name in WRITE_PATHS
    ],
)
def test_killed_at_every_call_that_writes(path, befores, killer: Killer, tmp_path):
    before = befores[path]
    calls = killer.calls(path, before.lay_out(tmp_path / "it"))
    assert contents(tmp_path / "it") == before.expected(tmp_path / "it", done=True)
    assert {"open", "fsync", "unlink"} <= set(calls)
    for folder in killer.kill_everywhere(path, lambda: before.lay_out(tmp_path / "it"), calls):
        assert_whole(before, folder)


@pytest.mark.parametrize(
    "count",
    [
        5,
        pytest.param(100, marks=pytest.mark.heavy),
        pytest.param(300, marks=pytest.mark.nightly(3)),
    ],
)
def test_killed_at_random_moments(before, killer, tmp_path, count):
    folder, killed = tmp_path / "it", 0
    usual = min(killer.seconds(before.name, before.lay_out(folder)) for _ in range(3))
    moments = random.Random(f"{before.name} {count}")
    for _ in range(count):
        before.lay_out(folder)
        killed += killer.kill_after(before.name, folder, moments.uniform(0, usual))
        assert_whole(before, folder)
    assert killed


WRITING = (
    "write,writev,pwrite64,pwritev,copy_file_range,sendfile,fsync,fdatasync,ftruncate,truncate,fallocate,rename,renameat,renameat2,"
    "link,linkat,unlink,unlinkat,fchmod,chmod,fchown,fchownat,fsetxattr,setxattr"
)


def strace(inject: str, log: Path, before: Before, folder: Path) -> int:
    """The command under strace, which writes what it saw to `log`; answers with its exit code."""
    options = [
        "-f",
        "-qq",
        "-o",
        str(log),
        "-e",
        f"trace={WRITING}",
        *(["-e", inject] if inject else []),
    ]
    command = ["strace", *options, sys.executable, "-B", "-m", "sbbf_tool", *before.path.arguments]
    return subprocess.run(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(name, marks=getattr(pytest.mark, "heavy" if name in SHORT else "nightly")(2))
        for name in WRITE_PATHS
    ],
)
def test_killed_at_every_system_call_that_writes(path, befores, tmp_path):
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    before, folder, log = befores[path], tmp_path / "it", tmp_path / "log"
    if strace("", log, before, before.lay_out(folder)) != 0:
        pytest.skip("strace may not trace here")
    # strace counts the calls of each thread and of each name for themselves, so every name has its
    # own row of kills.
    calls = re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE)
    kills = 0
    for name in sorted(set(calls)):
        for number in range(1, calls.count(name) + 1):
            before.lay_out(folder)
            killed = strace(f"inject={name}:signal=KILL:when={number}", log, before, folder) != 0
            kills += killed
            assert_whole(before, folder)
    assert kills >= 8
