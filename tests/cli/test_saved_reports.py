"""Options that every command which changes files has: a report that is saved, and a destination that is checked before files are read."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from sbbf_tool.cli import run
from support.tables import each

CHANGES = {
    "add-filter": ["add-filter", "-c", "session"],
    "remove-filter": ["remove-filter"],
    "resize": ["resize", "--max-bytes", "512"],
    "repair": ["repair"],
}


@pytest.fixture(autouse=True)
def folder(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files with filters, and one that is broken."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for name in ("a", "c"):
        shutil.copy(fixtures / "events.parquet", f"d/{name}.parquet")
        add_filters(f"d/{name}.parquet", ["user_id"], in_place=True)
    Path("d/b.parquet").write_text("PAR1, it says")
    return tmp_path


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path("d").iterdir()}


@pytest.mark.slow
@each("mode", ["--in-place", "-n"])
@each("command", CHANGES)
def test_each_file_in_both_formats(command, mode, capfd):
    before = contents()
    assert run([*command, "d", mode, "--report", "r.json"]) == 3
    first, unreadable, last, summary = map(json.loads, Path("r.json").read_text().splitlines())
    assert [document["schema"] for document in (first, unreadable, last, summary)] == [
        *(f"sbbf.{command[0]}", "sbbf.file", f"sbbf.{command[0]}", "sbbf.summary")
    ]
    assert (summary["files"], summary["failed"], summary["exit_code"]) == (3, 1, 3)
    assert (contents() == before) == (mode == "-n" or command == ["repair"])
    for path, content in before.items():
        Path(path).write_bytes(content)
    assert run([*command, "d", mode, "--report", "r.parquet"]) == 3
    rows = pq.read_table("r.parquet").to_pylist()
    assert [row["path"] for row in rows] == ["d/a.parquet", "d/b.parquet", "d/c.parquet"]
    assert [row["status"] for row in rows] == ["ok", "failed", "ok"]
    assert [row["exit_code"] for row in rows] == [0, 3, 0]
    assert [row["report"] and row["report"]["file"] for row in rows] == ["d/a.parquet", None, "d/c.parquet"]
    assert "error" not in rows[0]


@each(
    "name, code, message",
    [
        ("r.txt", 2, "must end with one of .json, .csv"),
        ("", 2, "must end with one of .json, .csv"),
        ("d/a.parquet", 4, "the file holds data and is not a report"),
        ("d/new.parquet", 2, "the report would be one of the files of d: name it elsewhere, or without .parquet"),
        ("no/such/r.parquet", 4, "no/such/r.parquet: its folder does not exist; create it first"),
    ],
)
@each("command", CHANGES)
def test_a_report_that_cannot_be_saved_changes_no_file(command, name, code, message, capfd):
    before = contents()
    assert run([*command, "d", "--in-place", "--report", name]) == code
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert contents() == before


WHERE = (
    "no target is given for the result; choose to only try it (--dry-run), name another file (-o), or change the file in place (--in-place)"
)
BOTH = "two targets are given for the result; either name another file (-o), or change the file in place (--in-place)"


@each(
    "arguments, message",
    [
        (["d"], WHERE),
        (["d/a.parquet", "d/c.parquet"], WHERE),
        (["d/a.parquet", "--in-place", "-o", "x"], BOTH),
        (["d/a.parquet", "d/c.parquet", "-o", "x"], "--output names one file"),
        (["d", "-o", "x"], "--output names one file"),
        (["d/a.parquet", "--where", "p = 1", "-o", "x"], "--output names one file"),
        (["d", "-n", "-o", "x"], "--output names one file"),
        (["d", "-n", "--in-place", "-o", "x"], BOTH),
    ],
)
@each("command", CHANGES)
def test_wrong_destinations_are_reported_before_a_file_is_read(command, arguments, message, capfd, monkeypatch):
    def fail(*args: object, **options: object) -> None:
        raise AssertionError("a file was read")

    before = contents()
    monkeypatch.setattr("sbbf_tool.storage.places.open_source", fail)
    monkeypatch.setattr("sbbf_tool.storage.places.entries", fail)
    assert run([*command, *arguments, "--report", "r.json"]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert contents() == before
    assert sorted(os.listdir()) == ["d"]


@each(
    "arguments, message",
    [
        (["check", "d/a.parquet", "--config", ""], "no such file"),
        (["advise", "d/a.parquet", "--query", "@"], "queries file : no such file"),
        (["engines", "--type", ""], "unknown type ''"),
        (["explain", "d/a.parquet", "user_id", "1", "--engines", ""], "unknown engine ''"),
        (["inspect", "d/a.parquet", "--keys", ""], "no such file"),
        (["inspect", "d/a.parquet", "--where", ""], "cannot parse"),
        (["inspect", "d/a.parquet", "--on", ""], "--on takes local"),
        (["check", "d/a.parquet", "--select", ""], "unknown rule"),
        (["check", "d/a.parquet", "--fail-on", ""], "choose from error, warning, info"),
        (["check", "d/a.parquet", "--require", ""], "no column ''"),
        (["advise", "d/a.parquet", "--query", ""], ""),
    ],
)
def test_an_empty_text_is_not_an_option_that_was_left_out(arguments, message, capfd):
    assert run(arguments) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


@each(
    "command",
    [
        ["inspect", "--files-from", "x.csv", "--report", "x.csv"],
        ["probe", "d/a.parquet", "user_id", "--values-file", "x.csv", "--report", "x.csv"],
        ["advise", "d/a.parquet", "--query", "@x.csv", "--report", "./x.csv"],
        ["check", "d/a.parquet", "--baseline", "x.csv", "--report", "x.csv"],
    ],
)
def test_a_report_does_not_replace_an_input(command, capfd):
    Path("x.csv").write_text("d/a.parquet\n")
    assert run(command) == 2
    assert "the report would replace a file that the command line names too" in capfd.readouterr().err
    assert Path("x.csv").read_text() == "d/a.parquet\n"


NAMES = ['a\nb, "c"', "\u202ereversed", "a\\x0a", "tab\t", "::error::x", "x\n##[error]x"]


@each("command", ["inspect", "advise"])
@each("saved", [False, True])
def test_names_in_csv_are_read_back(command, saved, tmp_path, capfd):
    path, report = tmp_path / "odd\nname.parquet", tmp_path / "report.csv"
    pq.write_table(pa.table({name: range(5) for name in NAMES}), path)
    add_filters(path, [f"`{name}`" for name in NAMES], in_place=True)
    assert run([command, str(path), *(["--report", str(report), "-q"] if saved else ["--format", "csv"])]) == 0
    rows = list(csv.DictReader(io.StringIO(report.read_bytes().decode() if saved else capfd.readouterr().out, newline="")))
    # A runner of CI would execute the last two.
    assert {row["column"] for row in rows} == {*NAMES[:4], "\\x3a:error::x", "x\\n\\x23#[error]x"}
