"""Windows, as far as a system without its missing modules and calls can show it: reading works, and
changes are refused in one sentence."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli import on_windows
from support.every_command import COLUMN, DATA_FILE, DECLARATION, FILE, TABLE, WORKING
from support.tables import each

# These start programs, or write a folder of their own.
NOT_RUN = {"conformance make", "conformance run"}
CHANGING = {
    "apply",
    "add-filter",
    "remove-filter",
    "repair",
    "resize",
    "paimon build",
    "paimon add-index",
}
MORE = {
    "read two files": ["inspect", FILE, DATA_FILE, "--jobs", "2", "--format", "json"],
    "save a report": ["check", FILE, "--report", "report.xml"],
    "keep a state": ["check", FILE, "--state", "state.json"],
    "keep it again": ["check", FILE, "--state", "state.json"],
    "read a configuration": ["check", FILE, "--config", "sbbf.toml"],
    "estimate a change": ["add-filter", FILE, "-c", COLUMN, "--rebuild", "all", "--dry-run"],
    "write a copy": ["add-filter", FILE, "-c", COLUMN, "--rebuild", "all", "-o", "copy.parquet"],
    "append": ["add-filter", FILE, "-c", COLUMN, "--rebuild", "all", "--in-place", "--append"],
    "apply": ["apply", DATA_FILE, "--config", DECLARATION, "--in-place"],
    "write an index": ["paimon", "build", DATA_FILE, "-c", COLUMN, "-o", "table.index"],
}
CASES = {
    name: [*name.split(), *words] for name, words in WORKING.items() if name not in NOT_RUN
} | MORE
REFUSED = sorted(CHANGING | {"write a copy", "append", "write an index"})
READING = [name for name in CASES if name not in REFUSED]
SENTENCE = (
    "sbbf does not change files on Windows, which has no file locks of the kind that it needs"
)

pytestmark = pytest.mark.slow

Answer = tuple[int, str, str]


def fill(folder: Path, fixtures: Path) -> None:
    folder.mkdir()
    shutil.copy(fixtures / "pyarrow-filters.parquet", folder / "file.parquet")
    shutil.copy(fixtures / "pyarrow-plain.parquet", folder / "data.parquet")
    shutil.copytree(fixtures / "paimon" / "orders", folder / "orders")
    (folder / "sbbf.toml").write_text("[check]\nmax-fpp = 0.5\n")


def run_all(folder: Path, names: list[str], program: list[str]) -> dict[str, Answer]:
    words = {FILE: "file.parquet", DATA_FILE: "data.parquet", TABLE: "orders", COLUMN: "id"}
    lines = [
        [re.sub("<[A-Z_]+>", lambda match: words[match[0]], word) for word in CASES[name]]
        for name in names
    ]
    done = subprocess.run(
        program, input=json.dumps(lines), cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(names, map(tuple, json.loads(done.stdout)), strict=True))


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Path:
    folder = tmp_path_factory.mktemp("windows") / "folder"
    fill(folder, fixtures)
    return folder


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, Answer]:
    return run_all(folder, list(CASES), [sys.executable, on_windows.__file__])


@pytest.fixture(scope="module")
def answers_here(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> dict[str, Answer]:
    """The answers of this system, to the commands that only read."""
    folder = tmp_path_factory.mktemp("here") / "folder"
    fill(folder, fixtures)
    program = (
        "import sys; sys.argv = ['']; "
        f"exec(open({on_windows.__file__!r}).read().replace('    become_windows()\\n', "
        "''))"
    )
    return run_all(folder, READING, [sys.executable, "-c", program])


@each("name", READING)
def test_a_command_that_reads_answers_as_elsewhere(
    name: str, answers: dict[str, Answer], answers_here: dict[str, Answer]
) -> None:
    assert answers[name] == answers_here[name]
    assert answers[name][0] in (0, 1)


@each("name", REFUSED)
def test_a_command_that_changes_files_is_refused_in_one_sentence(
    name: str, answers: dict[str, Answer]
) -> None:
    code, _, errors = answers[name]
    assert (code, errors.count("\n"), SENTENCE in errors) == (4, 1, True), errors


def test_no_file_was_changed(
    folder: Path, answers: dict[str, Answer], fixtures: Path, tmp_path: Path
) -> None:
    assert answers
    fill(tmp_path / "before", fixtures)
    before, after = files_of(tmp_path / "before"), files_of(folder)
    assert {name: data for name, data in after.items() if name in before} == before
    assert after.keys() - before.keys() == {"page.html", "report.xml", "state.json"}
