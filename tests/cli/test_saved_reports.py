"""Options that every command which changes files has: a report that is saved, and a destination
that is checked before files are read."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from sbbf_tool.cli import run
from support.calls import call
from support.lakes import digests
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
    assert [row["report"] and row["report"]["file"] for row in rows] == [
        "d/a.parquet",
        None,
        "d/c.parquet",
    ]
    assert "error" not in rows[0]


NAMES = ['a\nb, "c"', "\u202ereversed", "a\\x0a", "tab\t", "::error::x", "x\n##[error]x"]


@each("command", ["inspect", "advise"])
@each("saved", [False, True])
def test_names_in_csv_are_read_back(command, saved, tmp_path, capfd):
    path, report = tmp_path / "odd\nname.parquet", tmp_path / "report.csv"
    pq.write_table(pa.table({name: range(5) for name in NAMES}), path)
    add_filters(path, [f"`{name}`" for name in NAMES], in_place=True)
    assert (
        run(
            [
                command,
                str(path),
                *(["--report", str(report), "-q"] if saved else ["--format", "csv"]),
            ]
        )
        == 0
    )
    rows = list(
        csv.DictReader(
            io.StringIO(
                report.read_bytes().decode() if saved else capfd.readouterr().out, newline=""
            )
        )
    )
    # A runner of CI would execute the last two.
    assert {row["column"] for row in rows} == {*NAMES[:4], "\\x3a:error::x", "x\\n\\x23#[error]x"}


def test_a_report_replaces_nothing_that_the_command_uses(tmp_path, monkeypatch, capsys):
    """Neither the new file, nor the state or the keys, nor JSON that is no report, such as the log
    of a table."""
    file = tmp_path / "d" / "a.parquet"
    keys = tmp_path / "keys.json"
    keys.write_text('{"footer_key": "MDEyMzQ1Njc4OTAxMjM0NQ=="}')
    keys.chmod(0o600)
    Path("log.json").write_text('{"commitInfo": {}}\n')
    before = digests(tmp_path)
    for words in (
        ("add-filter", file, "-c", "session", "-o", "new.parquet", "--report", "./new.parquet"),
        ("verify", file, "--state", "state.json", "--report", "state.json"),
        ("verify", file, "--keys", keys, "--report", keys),
        ("inspect", file, "--report", "log.json"),
        ("report", file, "-o", "page.json", "--report", "page.json"),
    ):
        code, _, err = call(capsys, *words)
        assert code in (2, 4), words
        assert "the report would replace" in err or "is not a report" in err, err
    monkeypatch.setenv("SBBF_KEYS_FILE", str(keys))
    assert call(capsys, "verify", file, "--report", keys)[0] == 2
    assert digests(tmp_path) == before
    monkeypatch.delenv("SBBF_KEYS_FILE")
    assert call(capsys, "inspect", file, "--report", "old.json")[0] == 0
    assert call(capsys, "verify", file, "--report", "old.json")[0] == 0
