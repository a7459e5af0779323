"""The line that says how to undo a change in place: the printed command restores the old bytes, or
the line says that none does."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from support.lakes import small_files
from support.tables import each

LINE = re.compile(r"^undo: (.*)$", re.MULTILINE)


@pytest.fixture(autouse=True)
def folder(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small_files(tmp_path / "lake", 3)
    for name in ("events", "pyarrow-filters"):
        shutil.copy(fixtures / f"{name}.parquet", f"{name}.parquet")
    shutil.copy("events.parquet", "-x.parquet")
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.parquet")}


def undo_of(arguments: list[str], capfd: pytest.CaptureFixture[str], code: int = 0) -> str:
    capfd.readouterr()
    assert run(arguments) == code
    lines = LINE.findall(capfd.readouterr().out)
    assert len(lines) <= 1
    return lines[0] if lines else ""


def test_a_path_that_is_given_twice_is_undone_once(capfd):
    command = undo_of(
        ["add-filter", "events.parquet", "events.parquet", "-c", "user_id", "--in-place"], capfd
    )
    assert command.count("events.parquet") == 1


@pytest.mark.slow
@each(
    "arguments",
    [
        ["events.parquet", "-c", "user_id", "-c", "session"],
        ["events.parquet", "-c", "user_id", "--append"],
        ["-c", "user_id", "--", "-x.parquet"],
        ["lake", "-c", "id"],
        ["./lake/*0.parquet", "lake", "lake/part-00000.parquet", "-c", "id"],
        ["lake", "-c", "id", "--jobs", "2"],
        ["lake/*.parquet", "-c", "id", "-c", "name"],
        ["--files-from", "names.txt", "-c", "id"],
        ["lake/part-00000.parquet", "lake/part-00001.parquet", "-c", "x"],
        ["events.parquet", "--advise"],
        ["pyarrow-filters.parquet", "-c", "id", "--rebuild", "all"],
        [
            "pyarrow-filters.parquet",
            "events.parquet",
            "-c",
            "id",
            "-c",
            "user_id",
            "--rebuild",
            "all",
        ],
        ["lake", "pyarrow-filters.parquet", "-c", "id", "--rebuild", "all"],
        ["resize", "pyarrow-filters.parquet", "--max-bytes", "64", "--allow", "weak-filters"],
        ["remove-filter", "pyarrow-filters.parquet"],
    ],
)
def test_the_printed_command_restores_the_old_bytes(arguments, folder, capfd):
    Path("names.txt").write_text(
        "".join(f"{path}\n" for path in sorted((folder / "lake").iterdir()))
    )
    command = [] if arguments[0] in ("resize", "remove-filter") else ["add-filter"]
    before = contents(folder)
    line = undo_of(
        [*command, *arguments, "--in-place"]
        if "--" not in arguments
        else [*command, "--in-place", *arguments],
        capfd,
    )
    assert contents(folder) != before
    program, *words = shlex.split(line)
    assert program == "sbbf"
    assert ("--ours" in words) == ("--rebuild" in arguments or not command)
    assert undo_of(words, capfd) != line
    assert contents(folder) == before


def test_links_and_files_without_the_column_do_not_make_the_command_longer(folder, capfd):
    Path("lake/link").symlink_to(folder)
    shutil.copy("events.parquet", "lake")
    before = contents(folder)
    line = undo_of(["add-filter", "lake", "-c", "name", "--in-place"], capfd)
    assert line == "sbbf remove-filter lake -c name --in-place"
    assert run(shlex.split(line)[1:]) == 0
    assert contents(folder) == before


def test_files_that_had_filters_before_are_not_named(folder, capfd):
    """With the PATHs of the command, their filters would go too."""
    before = contents(folder)
    assert run(["add-filter", "lake/part-00000.parquet", "-c", "id", "--in-place"]) == 0
    first = contents(folder)
    line = undo_of(["add-filter", "lake", "-c", "id", "--in-place"], capfd)
    assert (
        line
        == "sbbf remove-filter lake/part-00001.parquet lake/part-00002.parquet -c id --in-place"
    )
    assert run(shlex.split(line)[1:]) == 0
    assert contents(folder) == first
    assert run(["remove-filter", "lake", "events.parquet", "--ours", "-n"]) == 0
    assert contents(folder) == first
    capfd.readouterr()
    assert run(["remove-filter", "lake", "events.parquet", "--ours", "--in-place"]) == 0
    assert contents(folder) == before
    out = capfd.readouterr().out
    assert "Restored lake/part-00000.parquet: " in out
    assert "4 files: 1 done, 3 not changed by sbbf; 1 filter" in out
