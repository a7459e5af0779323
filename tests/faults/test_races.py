"""Several processes at one file: one wins, the others report an error, and no bytes of two commands
are ever mixed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faults.write_paths import FILE, Before, contents
from sbbf_tool import verify
from sbbf_tool.cli import run
from sbbf_tool.storage import places

ADDED_COLUMNS = ("user_id", "session")
WAYS = pytest.mark.parametrize("options", [(), ("--append",)], ids=["copying", "appending"])


def add(path: Path, column: str, options: tuple[str, ...]) -> list[str]:
    return ["add-filter", str(path), "-c", column, "--jobs", "1", "--in-place", *options]


def run_together(*commands: list[str]) -> list[int]:
    """The commands as processes that start at once; their exit codes."""
    program = [sys.executable, "-m", "sbbf_tool"]
    running = [
        subprocess.Popen(
            [*program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for arguments in commands
    ]
    for process in running:
        _, output = process.communicate()
        assert "internal error" not in output
    return [process.returncode for process in running]


def race(rounds: int, before: Before, folder: Path, options: tuple[str, ...]) -> None:
    path = folder / FILE
    for _ in range(rounds):
        before.lay_out(folder)
        codes = run_together(*(add(path, column, options) for column in ADDED_COLUMNS))
        # Who came second found a whole file, or was refused, or met a file that was just being
        # appended to.
        assert 0 in codes
        assert set(codes) <= {0, 3, 4}
        assert list(contents(folder)) == [FILE]
        assert path.read_bytes().startswith(before.old)
        for column, code in zip(ADDED_COLUMNS, codes, strict=True):
            content = path.read_bytes()
            assert run(add(path, column, options)) == 0
            assert (path.read_bytes() == content) == (code == 0), (
                "what one of them reported as done is there"
            )
        report = verify(path)
        assert len(report.filters) == 6
        assert all(result.is_verified for result in report.filters)


@WAYS
def test_two_that_add_to_one_file(befores, tmp_path, options):
    race(2, befores["add"], tmp_path / "it", options)


@pytest.mark.heavy
@WAYS
def test_two_that_add_to_one_file_again_and_again(befores, tmp_path, options):
    race(100, befores["add"], tmp_path / "it", options)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("sweeps", [False, True])
def test_a_program_that_replaces_the_file_after_the_last_check(befores, tmp_path, sweeps):
    """The names are exchanged a second after the last check, behind which the checksum of the old
    bytes is removed; a second command sweeps before the first one knows that they are."""
    before, folder, log = befores["add"], tmp_path / "it", tmp_path / "log"
    path, checksum = before.lay_out(folder) / FILE, folder / f".{FILE}.crc"
    checksum.write_bytes(b"crc")
    command = [
        "strace",
        "-f",
        "-qq",
        "-o",
        log,
        "-e",
        "inject=renameat2:delay_enter=1s:delay_exit=2s:when=1",
        sys.executable,
        "-m",
        "sbbf_tool",
    ]
    with subprocess.Popen(
        [*command, *add(path, "user_id", ())], stdout=subprocess.DEVNULL
    ) as process:
        while checksum.exists() and process.poll() is None:
            time.sleep(0.01)
        if process.poll() is not None:
            pytest.skip("strace may not trace here")
        (folder / "other").write_bytes(before.new)
        os.rename(folder / "other", path)
        theirs = path.stat().st_ino
        while sweeps and path.stat().st_ino == theirs and process.poll() is None:
            time.sleep(0.01)
        if sweeps:
            places.sweep(str(path))
    # The command begins again with their file, which has the filter.
    assert process.returncode == 0
    assert log.read_text().count("RENAME_EXCHANGE") == 2
    assert contents(folder) == {FILE: before.new}
