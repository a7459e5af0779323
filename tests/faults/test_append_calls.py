"""Any system call by which a file is appended to, an append is undone, or a journal is read may
fail: by strace, at the calls themselves.

Whatever fails, the command ends in its own words, and the next one makes the file whole and removes
what is beside it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from faults.failing_system import BEFORE, Killer
from faults.write_paths import FILE, Before, contents
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UnreadableError, WriteError
from sbbf_tool.storage.append import journal_of

WRITING = ("write", "fsync", "ftruncate", "rename", "unlink", "flock", "fchown")
"""Calls that are ours wherever they are: the temporary file of a journal has a random name."""
LOOKING = ("openat", "newfstatat", "pread64", "lseek", "getdents64", "close")
"""Calls that are ours where they are about the file, its journal or its folder; the interpreter
makes thousands of others."""
SAYS_NO = (UnreadableError.exit_code, RefusedError.exit_code, WriteError.exit_code)
ERRORS = {"write": ("EIO", "ENOSPC"), "flock": ("EIO", "ENOLCK", "EINTR"), "fchown": ("EPERM",)}

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]


class Case(NamedTuple):
    torn: bool
    """Whether the file begins with an append that was killed."""
    arguments: tuple[str, ...]
    changes: bool = True


CASES = {
    "append": Case(
        False,
        (
            "add-filter",
            FILE,
            "-c",
            "user_id",
            "-c",
            "session",
            "--jobs",
            "1",
            "--in-place",
            "--append",
        ),
    ),
    "undo": Case(True, ("repair", FILE, "--quick", "--in-place")),
    "read to copy": Case(True, ("remove-filter", FILE, "-o", "out.parquet"), changes=False),
}


def strace(folder: Path, case: Case, options: list[str], log: Path) -> tuple[int, str]:
    """Trace the command; return its exit code and output."""
    words = [
        str(folder / word) if word in (FILE, "out.parquet") else word for word in case.arguments
    ]
    command = [
        "strace",
        "-f",
        "-qq",
        "-o",
        str(log),
        *options,
        sys.executable,
        "-B",
        "-m",
        "sbbf_tool",
        *words,
    ]
    # The interpreter looks for modules in the working folder, which is none of ours.
    done = subprocess.run(command, cwd=log.parent, capture_output=True, text=True, errors="replace")
    return done.returncode, done.stdout + done.stderr


def about(folder: Path) -> list[str]:
    """Options by which only calls about the file, its journal and its folder are seen."""
    return [
        word
        for path in (folder / FILE, journal_of(str(folder / FILE)), folder)
        for word in ("-P", str(path))
    ]


def calls(
    folder: Path, case: Case, files: dict[str, bytes], log: Path
) -> Iterator[tuple[list[str], str, int]]:
    """Each call of the main thread: the options by which it is seen, its name and its number, from
    1, among those of that name."""
    for options, names in (([], WRITING), (about(folder), LOOKING)):
        prepare(folder, files)
        code, output = strace(folder, case, [*options, "-e", f"trace={','.join(names)}"], log)
        if code and "ptrace" in output:
            pytest.skip("strace may not trace here")
        lines = log.read_text(errors="replace").splitlines()
        main = lines[0].split()[0]
        numbers = dict.fromkeys(names, 0)
        for line in lines:
            match = re.match(rf"{main} +(\w+)\((\d*)", line)
            if match and match[1] in numbers:
                numbers[match[1]] += 1
                if not (match[1] == "write" and match[2] in ("1", "2")):
                    yield options, match[1], numbers[match[1]]


def prepare(folder: Path, files: dict[str, bytes]) -> None:
    """A folder with these files and no others."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)


@pytest.fixture(scope="module")
def before(befores) -> Before:
    return befores["append"]


@pytest.fixture
def torn(before, killer: Killer, tmp_path) -> dict[str, bytes]:
    """The file with all bytes of an append that was killed before it was accepted, and the
    journal."""
    folder = tmp_path / "torn"
    system_calls = killer.calls("append", before.lay_out(folder))
    # The journal is the last that is removed.
    assert killer.kill_at(
        "append",
        before.lay_out(folder),
        len(system_calls) - 1 - system_calls[::-1].index("unlink"),
        BEFORE,
    )
    files = contents(folder)
    assert set(files) == {FILE, Path(journal_of(FILE)).name}
    return files


@pytest.mark.parametrize("name", CASES)
def test_any_system_call_that_fails(before, torn, tmp_path, name):
    case, log, folder = CASES[name], tmp_path / "log", tmp_path / "it"
    files = torn if case.torn else {FILE: before.old}
    failures, problems = 0, []
    for options, call, number in list(calls(folder, case, files, log)):
        for error in ERRORS.get(call, ("EIO",)):
            prepare(folder, files)
            inject = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}"]
            code, output = strace(folder, case, [*options, *inject], log)
            failures += code != 0
            if problem := problem_of(before, folder, case, files, code, output):
                problems.append(
                    f"{call}, number {number}{' about the file' if options else ''}, {error}: "
                    f"{problem}: {output[-300:]}"
                )
    assert not problems, "\n".join(problems)
    assert failures >= 3


def problem_of(
    before: Before, folder: Path, case: Case, files: dict[str, bytes], code: int, output: str
) -> str | None:
    """What is wrong with how a command ended, and with what it left; None where nothing is. Runs
    the next command."""
    if "Traceback" in output or "internal error" in output or code not in (0, *SAYS_NO):
        return f"ended with {code}"
    if not case.changes:
        (folder / "out.parquet").unlink(missing_ok=True)
        return None if contents(folder) == files else "a command that reads changed something"
    is_appended = code == 0 and "--append" in case.arguments
    if is_appended and (folder / FILE).read_bytes() != before.new:
        return "reported as done"
    if (again := run(["repair", str(folder / FILE), "--quick", "--in-place"])) != 0:
        return f"the next command ended with {again}"
    if contents(folder) not in (
        [{FILE: before.new}] if is_appended else [{FILE: before.old}, {FILE: before.new}]
    ):
        return f"the next command left {sorted(contents(folder))}"
    return None
