"""Commands over many files, on this machine: a line per file that matters, then sums; errors one by
one; the highest exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool import UsageError
from sbbf_tool.verbs import AddFilter
from support.calls import call
from support.lakes import MIXED, digests, mixed, small_files
from support.tables import each


@pytest.fixture
def lake(tmp_path):
    return small_files(tmp_path / "lake", 3)


def documents(out: str) -> tuple[list[dict], dict]:
    """Those of the files, and the summary."""
    *files, summary = map(json.loads, out.splitlines())
    assert summary["schema"] == "sbbf.summary"
    assert {document["version"] for document in (*files, summary)} == {0}
    return files, summary


def last_line(out: str) -> str:
    """Return the last line but for the one that says how to undo the change."""
    return next(line for line in reversed(out.splitlines()) if not line.startswith("undo: "))


def test_a_warning_names_its_file(tmp_path, capsys):
    for number, rows in enumerate((900, 900, 10)):
        pq.write_table(
            pa.table({"id": pa.array(range(rows), pa.int64())}), tmp_path / f"{number}.parquet"
        )
    code, _, err = call(
        capsys,
        "add-filter",
        tmp_path,
        "-c",
        "id",
        "--in-place",
        "--max-bytes",
        "512",
        "--jobs",
        "1",
    )
    text = "column id: the false-positive rate is"
    first, again = err.splitlines()
    assert code == 0
    assert first.startswith(f"sbbf: warning: {tmp_path}/0.parquet: {text}")
    assert again.startswith(f"sbbf: 1 more file: {text}")


def test_a_table_that_records_sizes_is_warned_of_once(tmp_path, capsys):
    (tmp_path / "_delta_log").mkdir()
    for number in range(3):
        pq.write_table(pa.table({"id": [number, 7]}), tmp_path / f"{number}.parquet")
    code, _, err = call(
        capsys,
        "add-filter",
        tmp_path,
        "-c",
        "id",
        "--in-place",
        "--as-files",
        "--allow",
        "table-files",
    )
    assert code == 0
    assert err.count("warning") == 1
    assert f"the Delta table {tmp_path} records the size of each file" in err
    assert "commit a remove and an add action of the file with its new size" in err


def test_a_report_of_a_mixed_lake(tmp_path, capsys):
    lake, report = mixed(tmp_path / "lake"), tmp_path / "report.parquet"
    add = ("add-filter", lake, "-c", "id", "--in-place")
    code, out, err = call(capsys, *add, "-c", "name", "--report", report)
    assert code == 4
    assert last_line(out).startswith(
        "11 files: 3 done, 2 had every filter, 1 not applicable, 2 refused, 3 failed; "
    )
    differences = [
        "sbbf: column id: INT64 in 5 files, missing in 1 file",
        "sbbf: column name: BYTE_ARRAY STRING in 5 files, missing in 1 file",
    ]
    assert [line for line in err.splitlines() if line.startswith("sbbf: column ")] == differences
    file_lines = [line for line in err.splitlines() if line not in differences]
    reported_names = {
        line.split(": ")[1].removeprefix(f"{lake}/").removesuffix(".parquet") for line in file_lines
    }
    assert reported_names == {
        name for name, status in MIXED.items() if status in ("refused", "failed")
    }
    rows = pq.read_table(report).to_pylist()
    assert {
        row["path"].removeprefix(f"{lake}/").removesuffix(".parquet"): row["status"] for row in rows
    } == MIXED
    assert sorted(row["exit_code"] for row in rows if row["status"] == "failed") == [3, 3, 3]
    assert call(capsys, *add, "--report", report)[0] == 4
    assert [row["status"] for row in pq.read_table(report).to_pylist()].count("skipped") == 6
    assert call(capsys, *add, "--report", tmp_path / "no" / "such.parquet")[0] == 4


@each(
    "command",
    [
        ["remove-filter"],
        ["resize", "--fpp", "0.2"],
        ["repair"],
        ["explain", "-c", "id", "--value", "7"],
    ],
)
def test_every_command_takes_many_files(tmp_path, capsys, command):
    lake = mixed(tmp_path / "lake")
    unreadable = {"broken", "empty", "encrypted"}
    changes = ["--in-place"] if command[0] != "explain" else []
    code, out, err = call(capsys, command[0], lake, *command[1:], *changes, "--format", "json")
    files, summary = documents(out)
    assert code == summary["exit_code"] == 4
    assert summary["files"] == len(files) == len(MIXED)
    names = [
        str(document["file"]).removeprefix(f"{lake}/").removesuffix(".parquet")
        for document in files
    ]
    assert names == sorted(MIXED)
    failed = {
        name
        for name, document in zip(names, files, strict=True)
        if document["schema"] == "sbbf.file" and document["exit_code"]
    }
    assert failed >= unreadable
    assert all(f"{lake}/{name}.parquet: " in err for name in failed)
    done = next(document for name, document in zip(names, files, strict=True) if name == "filtered")
    assert done["schema"] == f"sbbf.{command[0]}"


def test_new_files_in_another_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["lake/day=1/a.parquet", "lake/day=2/a.parquet", "b.parquet"]
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2]}), name)
    before = digests(tmp_path)
    add = ["add-filter", "lake", "b.parquet", "-c", "id", "-o"]
    assert call(capsys, *add, "out/", "-n")[0] == 0
    assert digests(tmp_path) == before
    assert call(capsys, *add, "out/")[0] == 0
    written = {"out/day=1/a.parquet", "out/day=2/a.parquet", "out/b.parquet"}
    assert {str(path) for path in Path("out").rglob("*.parquet")} == written
    assert call(capsys, "remove-filter", "out/day=*", "-o", "again/")[0] == 0
    assert Path("again/day=1/a.parquet").read_bytes() == Path(names[0]).read_bytes()
    code, _, err = call(capsys, *add, "out/")
    assert (code, err.count("the target exists")) == (4, 3)
    for output, message in (
        ("out", "out is a folder: write out/"),
        ("new", "give a folder for many, new/"),
        ("/proc/x/", "no such file"),
    ):
        code, _, err = call(capsys, *add, output)
        assert code in (2, 4)
        assert message in err
    sbbf_tool.run(AddFilter("id"), "lake", edit=sbbf_tool.Edit("python/"))
    assert Path("python/day=2/a.parquet").exists()


@each(
    "names, output",
    [
        ("lake", "lake/sub/"),
        ("b.parquet lake/", "lake/x/y/"),
        ("lake/**/*.parquet", "lake/sub/"),
        ("lake/*", "lake/sub/"),
        ("lake-link", "lake/sub/"),
    ],
)
def test_new_files_are_not_among_those_that_are_read(tmp_path, monkeypatch, capsys, names, output):
    monkeypatch.chdir(tmp_path)
    for name in ("lake/day=1/a.parquet", "b.parquet"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2]}), name)
    Path("lake-link").symlink_to("lake")
    code, _, err = call(capsys, "add-filter", *names.split(), "-c", "id", "-o", output)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{output}: the result would be among the files of lake" in err
    with pytest.raises(UsageError, match="name a folder outside it"):
        sbbf_tool.run(AddFilter("id"), names.split(), edit=sbbf_tool.Edit(output))
    assert not Path(output).exists()
    assert call(capsys, "add-filter", "*.parquet", "-c", "id", "-o", "out/")[0] == 0
