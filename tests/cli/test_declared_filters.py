"""`check --declared` and `--declared-by`: the filters that settings promise against those of the files, in a line and an exit code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sbbf_tool import add_filters
from sbbf_tool.cli import run
from support.ducklakes import SmallLake


@pytest.fixture
def lake(fixtures: Path, tmp_path: Path) -> Path:
    """Two files, of which `b.parquet` has a filter on user_id."""
    folder = tmp_path / "lake"
    folder.mkdir()
    shutil.copy(fixtures / "events.parquet", folder / "a.parquet")
    add_filters(folder / "a.parquet", columns="user_id", output=folder / "b.parquet")
    return folder


@pytest.fixture
def declare(tmp_path: Path):
    """Write a file that declares filters on these columns, as Iceberg does."""

    def write(*columns: str) -> str:
        path = tmp_path / "table.properties"
        path.write_text("".join(f"write.parquet.bloom-filter-enabled.column.{column}=true\n" for column in columns))
        return str(path)

    return write


def test_filters_that_are_missing(lake, declare, capfd):
    assert run(["check", str(lake), "--declared-by", declare("user_id")]) == 1
    assert capfd.readouterr().out.splitlines()[-1] == "table.properties: declared but missing in 1 of 2 files: user_id in 1"


def test_filters_that_exist(lake, declare, capfd):
    assert run(["check", str(lake / "b.parquet"), "--declared-by", declare("user_id")]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "table.properties: all declared filters exist: user_id in 1 file"


def test_a_column_that_no_file_has(lake, declare, capfd):
    assert run(["check", str(lake), "--declared-by", declare("user_id", "uid")]) == 2
    out, err = capfd.readouterr()
    assert out.splitlines()[-1] == "table.properties: declared but missing in 1 of 2 files: user_id in 1"
    assert err == "sbbf: no file has the column: there is no column 'uid'; did you mean user_id?\n"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("write.parquet.bloom-filter-fpp.column.user_id=0.01", 0),
        ("write.parquet.bloom-filter-fpp.column.user_id=0.00001", 1),
        ("write.parquet.bloom-filter-fpp.column.user_id=0.00001\nwrite.parquet.bloom-filter-max-bytes=64", 0),
        ("write.parquet.bloom-filter-fpp.column.user_id=0.00001\nwrite.parquet.bloom-filter-ndv.column.user_id=10", 0),
        ("parquet.bloom.filter.fpp=0.00001", 1),
        ("parquet.bloom.filter.fpp#user_id=0.00001\nparquet.bloom.filter.fpp=0.5", 1),
        ("parquet.bloom.filter.fpp=0.00001\nparquet.bloom.filter.expected.ndv#user_id=10", 0),
        ("parquet.bloom.filter.fpp=high", 2),
        ("write.parquet.bloom-filter-max-bytes=1MB", 2),
    ],
)
def test_filters_that_are_weaker_than_declared(lake, declare, capfd, settings, code):
    path = declare("user_id")
    Path(path).write_text(Path(path).read_text() + settings)
    assert run(["check", str(lake / "b.parquet"), "--declared-by", path]) == code
    captured = capfd.readouterr()
    if code == 1:
        assert captured.out.splitlines()[-1].endswith("user_id in 1 file; weaker than declared in 1 of 1 file")
        assert "the settings declare 0.001 %" in captured.out


def test_the_summary_has_the_counts(lake, declare, capfd):
    run(["check", str(lake), "--declared-by", declare("user_id"), "--format", "json"])
    *reports, summary = map(json.loads, capfd.readouterr().out.splitlines())
    assert summary["totals"]["declared"] == {
        "columns": ["user_id"], "files": 2, "files_without": 1, "files_weaker": 0, "files_without_by_column": {"user_id": 1},
    }  # fmt: skip
    outcomes = {rule["rule"]: rule["outcome"] for report in reports for rule in report["rules"]}
    assert {rule for rule, outcome in outcomes.items() if outcome != "not run"} == {"missing-filter"}


def test_other_requirements_apply_too(lake, declare, capfd):
    """A column of --require must exist; --select adds other rules, of which one has a finding."""
    declaration = ["--declared-by", declare("user_id")]
    assert run(["check", str(lake), *declaration, "--require", "nope"]) == 2
    assert run(["check", str(lake / "b.parquet"), *declaration, "--require", "session_id"]) == 2
    assert run(["check", str(lake / "b.parquet"), *declaration, "--max-fpp", "0.0001"]) == 1
    assert "fpp-above-limit" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format-version=2", "declare no filter; expected write.parquet.bloom-filter-enabled.column.COLUMN"),
        ("parquet.bloom.filter.enabled=true", "for all columns, which is not checked; name the columns that must have a filter"),
        ("file-index.bloom-filter.columns=a,b", "(a, b) applies to Paimon's own file index"),
        ("parquet.bloom.filter.enabled=maybe", "must be true or false"),
        ("\udcff", "not UTF-8 text"),
    ],
)
def test_files_that_declare_nothing_to_check(text, message, lake, tmp_path, capfd):
    path = tmp_path / "x.properties"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert run(["check", str(lake), "--declared-by", str(path)]) == 2
    err = capfd.readouterr().err
    assert message in err
    assert str(path) in err


def test_a_file_that_does_not_exist(lake, capfd):
    assert run(["check", str(lake), "--declared-by", "none.json"]) == 2
    assert "none.json" in capfd.readouterr().err


def test_the_properties_of_a_table(tmp_path, capfd):
    """DuckLake has no such properties of its own, but keeps any."""
    lake = SmallLake(tmp_path, "sqlite")
    lake.add_file()
    assert run(["check", lake.events, "--declared"]) == 2
    assert "the settings declare no filter" in capfd.readouterr().err
    key = "write.parquet.bloom-filter-enabled.column.user_id"
    lake.insert("metadata", key=key, value="true", scope="table", scope_id=1)
    assert run(["check", lake.events, "--declared"]) == 1
    assert capfd.readouterr().out.splitlines()[-1].endswith("#events: declared but missing in 1 of 1 file: user_id in 1")
    assert run(["add-filter", lake.events, "-c", "user_id", "--in-place"]) == 0
    assert run(["check", lake.events, "--declared"]) == 0


def test_properties_need_a_table(lake, declare, capfd):
    assert run(["check", str(lake), "--declared"]) == 2
    assert "takes one table" in capfd.readouterr().err
    assert run(["check", str(lake), "--declared", "--declared-by", declare("user_id")]) == 2
