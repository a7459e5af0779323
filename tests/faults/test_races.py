"""Several processes at one file: one wins, the others are told, and no bytes of two commands are ever mixed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from write_paths import FILE, contents

ROUNDS = 8
NAMED = ("user_id", "session")


def run_together(folder, *commands: list[str]) -> list[int]:
    """The commands as processes that start at once; their exit codes."""
    program = [sys.executable, "-m", "sbbf_tool"]
    running = [
        subprocess.Popen([*program, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for arguments in commands
    ]
    for process in running:
        _, said = process.communicate()
        assert "internal error" not in said
        assert "Traceback" not in said
    return [process.returncode for process in running]


def add(column: str, *options: str) -> list[str]:
    return ["add-filter", FILE, "-c", column, "--jobs", "1", "--in-place", *options]


@pytest.mark.parametrize("options", [(), ("--append",)], ids=["copying", "appending"])
def test_two_that_add_to_one_file(befores, tmp_path, options):
    rounds_of(ROUNDS, befores["add"], tmp_path / "it", options)


@pytest.mark.heavy
@pytest.mark.parametrize("options", [(), ("--append",)], ids=["copying", "appending"])
def test_two_that_add_to_one_file_again_and_again(befores, tmp_path, options):
    rounds_of(100, befores["add"], tmp_path / "it", options)


def rounds_of(rounds: int, before, folder, options: tuple[str, ...]) -> None:
    for _ in range(rounds):
        before.lay_out(folder)
        codes = run_together(folder, *(add(column, *options) for column in NAMED))
        assert 0 in codes
        # The other one came later and found a whole file, or was refused, or met a file that was just being appended to.
        assert set(codes) <= {0, 3, 4}
        assert list(contents(folder)) == [FILE]
        assert (folder / FILE).read_bytes().startswith(before.old)
        for column, code in zip(NAMED, codes, strict=True):
            again = subprocess.run(
                [sys.executable, "-m", "sbbf_tool", *add(column, *options)], cwd=folder, capture_output=True, text=True, check=False
            )
            assert again.returncode == (4 if code == 0 else 0), again.stderr
        assert subprocess.run([sys.executable, "-m", "sbbf_tool", "verify", FILE], cwd=folder, stdout=subprocess.DEVNULL).returncode == 0
