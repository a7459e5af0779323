"""Several processes at one file: one wins, the others report an error, and no bytes of two commands are ever mixed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from faults.write_paths import FILE, Before, contents
from sbbf_tool import verify
from sbbf_tool.cli import run

ADDED_COLUMNS = ("user_id", "session")
WAYS = pytest.mark.parametrize("options", [(), ("--append",)], ids=["copying", "appending"])


def add(path: Path, column: str, options: tuple[str, ...]) -> list[str]:
    return ["add-filter", str(path), "-c", column, "--jobs", "1", "--in-place", *options]


def run_together(*commands: list[str]) -> list[int]:
    """The commands as processes that start at once; their exit codes."""
    program = [sys.executable, "-m", "sbbf_tool"]
    running = [
        subprocess.Popen([*program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for arguments in commands
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
        # Who came second found a whole file, or was refused, or met a file that was just being appended to.
        assert 0 in codes
        assert set(codes) <= {0, 3, 4}
        assert list(contents(folder)) == [FILE]
        assert path.read_bytes().startswith(before.old)
        for column, code in zip(ADDED_COLUMNS, codes, strict=True):
            content = path.read_bytes()
            assert run(add(path, column, options)) == 0
            assert (path.read_bytes() == content) == (code == 0), "what one of them reported as done is there"
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
