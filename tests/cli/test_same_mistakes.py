"""The same mistake has the same exit code in every command that takes files, for one file and for
several."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parts.commands import read_commands
from sbbf_tool import add_filters
from sbbf_tool.cli import run
from support.tables import each

COMMANDS: dict[str, Callable[[str, str], list[str]]] = {
    "inspect": lambda path, column: ["inspect", path, "-c", column],
    "probe": lambda path, column: ["probe", path, column, "5"],
    "explain": lambda path, column: ["explain", path, column, "5"],
    "verify": lambda path, column: ["verify", path, "-c", column],
    "check": lambda path, column: ["check", path, "--require", column],
    "add-filter": lambda path, column: ["add-filter", path, "-c", column, "--in-place"],
    "remove-filter": lambda path, column: ["remove-filter", path, "-c", column, "--in-place"],
    "resize": lambda path, column: ["resize", path, "-c", column, "--fpp", "0.3", "--in-place"],
    "repair": lambda path, column: ["repair", path, "-c", column, "--in-place"],
    "advise": lambda path, column: ["advise", path, "--query", f"{column} = 5"],
    "index": lambda path, column: ["index", path, "-c", column, "-o", "new.sbbfx"],
    "report": lambda path, column: [
        "report",
        path,
        "-o",
        "page.html",
        "--allow",
        "overwrite",
        "--query",
        f"{column} = 5",
    ],
}
"""A command line of each command, for a path and a column."""

NO_FILES = {"rule", "engines", "size", "paimon", "conformance", "schema", "help", "apply"}
"""Commands that take no Parquet files, or no columns: those of `apply` are declared."""

MISTAKES: dict[str, tuple[str, str, list[str], int]] = {
    "missing column": ("a.parquet", "nothing", [], 2),
    "missing column in all files": ("lake", "nothing", [], 2),
    "similar column in all files": ("lake", "idd", [], 2),
    "group": ("a.parquet", "point", [], 2),
    "missing file": ("missing.parquet", "id", [], 3),
    "no file matches": ("missing-*.parquet", "id", [], 3),
    "empty folder": ("empty", "id", [], 3),
    "no partition matches": ("lake", "id", ["--where", "day = '1999-01-01'"], 3),
    "bad predicate": ("lake", "id", ["--where", "day >"], 2),
    "not Parquet": ("text.parquet", "id", [], 3),
    "one of many is not Parquet": ("mixed", "id", [], 3),
    "torn file": ("torn.parquet", "id", [], 3),
    "unknown option": ("a.parquet", "id", ["--no-such-option"], 2),
    "bad value of an option": ("a.parquet", "id", ["--jobs", "many"], 2),
    "no file": ("a.parquet", "id", ["--files-from", "missing.txt"], 2),
    "missing keys": ("a.parquet", "id", ["--keys", "missing.json"], 2),
    "no folder for the report": ("lake", "id", ["--report", "nowhere/report.json"], 4),
    "a folder in place of the report": ("lake", "id", ["--report", "folder.json"], 4),
    "a report among the data": ("lake", "id", ["--report", "lake/report.parquet"], 2),
}
"""Path, column, more arguments, exit code."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = pa.table(
        {"id": range(1000), "point": pa.array([{"x": 1}] * 1000, pa.struct([("x", pa.int32())]))}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    add_filters(tmp_path / "a.parquet", "id", in_place=True)
    for day in ("2026-01-01", "2026-01-02"):
        (tmp_path / "lake" / f"day={day}").mkdir(parents=True)
        shutil.copy(tmp_path / "a.parquet", tmp_path / "lake" / f"day={day}")
    (tmp_path / "mixed").mkdir()
    shutil.copy(tmp_path / "a.parquet", tmp_path / "mixed")
    for name in ("text.parquet", "mixed/text.parquet"):
        (tmp_path / name).write_text("this is no Parquet file, but text")
    (tmp_path / "nothing.parquet").touch()
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-100])
    for name in ("empty", "folder.json"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_is_here():
    assert {name.split()[0] for name in read_commands()} == COMMANDS.keys() | NO_FILES


@pytest.mark.slow
@each("mistake", list(MISTAKES))
def test_the_same_mistake_has_the_same_code(folder, mistake, capsys):
    path, column, options, code = MISTAKES[mistake]
    codes = {}
    for name, command_of in COMMANDS.items():
        codes[name] = run([*command_of(path, column), *options])
        out, err = capsys.readouterr()
        assert err, name
        assert "Traceback" not in out + err
    assert codes == dict.fromkeys(COMMANDS, code)


@each("name", ["probe", "explain"])
@each("value", ["five", "1e400"])
def test_a_value_that_the_column_cannot_hold(folder, name, value):
    assert {run([name, path, "id", value]) for path in ("a.parquet", "lake")} == {2}
