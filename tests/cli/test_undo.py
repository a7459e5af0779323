"""The line that says how to undo a change in place: the printed command restores the old bytes, or the line says that none does."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from support.lakes import small_files

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


@pytest.mark.parametrize(
    "arguments",
    [
        ["events.parquet", "-c", "user_id", "-c", "session"],
        ["events.parquet", "-c", "user_id", "--append"],
        ["-c", "user_id", "--", "-x.parquet"],
        ["lake", "-c", "id"],
        ["lake", "-c", "id", "--jobs", "2"],
        ["lake/*.parquet", "-c", "id", "-c", "name"],
        ["--files-from", "names.txt", "-c", "id"],
        ["lake/part-00000.parquet", "lake/part-00001.parquet", "-c", "x"],
        ["events.parquet", "--advise"],
    ],
    ids=" ".join,
)
def test_the_printed_command_restores_the_old_bytes(arguments, folder, capfd):
    Path("names.txt").write_text("".join(f"{path}\n" for path in sorted((folder / "lake").iterdir())))
    before = contents(folder)
    line = undo_of(["add-filter", "--in-place", *arguments], capfd)
    assert contents(folder) != before
    program, *words = shlex.split(line)
    assert program == "sbbf"
    assert undo_of(words, capfd) != line
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("first", "arguments", "reason"),
    [
        ([], ["add-filter", "pyarrow-filters.parquet", "-c", "id", "--rebuild", "all"], "no command restores the filters and footers that"),
        ([], ["remove-filter", "pyarrow-filters.parquet"], "no command restores the old filters"),
        ([], ["remove-filter", "pyarrow-filters.parquet", "--compact"], "no command restores the old filters"),
        (["add-filter", "events.parquet", "-c", "user_id", "--in-place"], ["remove-filter", "events.parquet"], "no command restores"),
        ([], ["resize", "pyarrow-filters.parquet", "--bytes", "64", "--force"], "no command restores the old filters"),
        (["add-filter", "lake/part-00000.parquet", "-c", "id", "--in-place"], ["add-filter", "lake", "-c", "id"],
         "run sbbf remove-filter on each changed file"),
    ],
)  # fmt: skip
def test_no_command_undoes_the_change(first, arguments, reason, folder, capfd):
    if first:
        assert run(first) == 0
    before = contents(folder)
    assert undo_of([*arguments, "--in-place"], capfd).startswith(reason)
    assert contents(folder) != before


@pytest.mark.parametrize(
    "arguments",
    [
        ["add-filter", "events.parquet", "-c", "user_id", "-n"],
        ["add-filter", "events.parquet", "-c", "user_id", "--plan-only"],
        ["add-filter", "events.parquet", "-c", "user_id", "-o", "new.parquet"],
        ["add-filter", "pyarrow-filters.parquet", "-c", "id", "--in-place"],
        ["remove-filter", "pyarrow-filters.parquet", "-n"],
        ["resize", "pyarrow-filters.parquet", "--bytes", "64", "-n"],
        ["repair", "pyarrow-filters.parquet", "--drop", "--in-place"],
        ["inspect", "pyarrow-filters.parquet"],
    ],
    ids=" ".join,
)
def test_no_line_if_nothing_was_changed_in_place(arguments, capfd):
    assert run(arguments) in (0, 1)
    assert "undo" not in capfd.readouterr().out


def test_the_document_has_the_command(folder, capfd):
    before = contents(folder)
    assert run(["add-filter", "events.parquet", "-c", "user_id", "--in-place", "--json"]) == 0
    undo = json.loads(capfd.readouterr().out)["undo"]
    assert run(undo["command"][1:]) == 0
    assert contents(folder) == before


def test_many_paths_are_not_repeated(folder, capfd):
    names = [str(path) for path in small_files(folder / "more", 9).iterdir()]
    line = undo_of(["add-filter", *names, "-c", "id", "--in-place"], capfd)
    assert line == "with the same PATHs: sbbf remove-filter -c id --in-place"
