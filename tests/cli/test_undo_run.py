"""`remove-filter --undo REPORT` and `undo`: one run is undone, byte for byte, and files that changed since stay as they are."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import ChangedError
from support.lakes import small_files

OTHER_NAME = os.fsdecode(b"lake/caf\xe9 [1].parquet")
"""A name that is no UTF-8, and a glob."""


@pytest.fixture(autouse=True)
def folder(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake of files without filters, with filters by another writer, without rows, and without the column."""
    monkeypatch.chdir(tmp_path)
    small_files(tmp_path / "lake", 3)
    for name in ("events", "pyarrow-filters", "spark-boolean"):
        shutil.copy(fixtures / f"{name}.parquet", f"lake/{name}.parquet")
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), "lake/without-rows.parquet")
    shutil.copy("lake/part-00002.parquet", OTHER_NAME)
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.parquet") if path.parent.name == "lake"}


def undo(*arguments: str) -> int:
    return run(["remove-filter", "--undo", *arguments])


@pytest.mark.parametrize("report", ["r.json", "r.ndjson", "r.jsonl", "r.parquet"])
def test_a_run_over_files_of_several_kinds_is_undone(report: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    run(["add-filter", "lake", "-c", "id", "--in-place", "--report", report])
    line = re.findall(r"^undo: (.*)$", capfd.readouterr().out, re.MULTILINE)
    assert line == [f"sbbf remove-filter --undo {report} --in-place"]
    after = contents(folder)
    files = sum(after[path] != before[path] for path in before)
    assert files >= 4
    assert undo(report, "-n") == 0
    assert contents(folder) == after
    assert undo(report, "--in-place") == 0
    assert contents(folder) == before
    capfd.readouterr()
    assert undo(report, "--in-place") == 0
    assert f"{files} files: {files} already as before" in capfd.readouterr().out


def test_removing_all_filters_restores_each_file_where_this_package_added_them(folder: Path) -> None:
    for name in ("pyarrow-filters", "spark-boolean"):
        Path(f"lake/{name}.parquet").unlink()
    before = contents(folder)
    run(["add-filter", "lake", "-c", "id", "--in-place", "-q"])
    run(["add-filter", "lake", "-c", "name", "--in-place", "-q"])
    assert contents(folder) != before
    assert run(["remove-filter", "lake", "--in-place", "-q"]) == 0
    assert contents(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["add-filter", "lake/pyarrow-filters.parquet", "-c", "id", "--rebuild", "all"],
        ["add-filter", "lake/part-00000.parquet", "-c", "id", "--append"],
        ["resize", "lake/pyarrow-filters.parquet", "-c", "id", "--bytes", "64"],
        ["remove-filter", "lake/pyarrow-filters.parquet", "-c", "id"],
    ],
    ids=lambda words: " ".join(words[:1] + words[-1:]),
)
def test_any_change_that_keeps_the_old_bytes_is_undone(arguments: list[str], folder: Path, capfd) -> None:
    before = contents(folder)
    assert run([*arguments, "--in-place", "--report", "r.json"]) == 0
    line = capfd.readouterr().out.splitlines()[-1]
    assert line == f"undo: sbbf remove-filter {'--undo r.json' if '--append' not in arguments else f'{arguments[1]} -c id'} --in-place"
    assert contents(folder) != before
    assert undo("r.json", "--in-place", "-q") == 0
    assert contents(folder) == before


@pytest.mark.parametrize("options", [[], ["--rebuild", "all"]], ids=["more", "replace"])
def test_a_change_that_replaced_filters_of_this_package_is_not_undone(options: list[str], folder: Path, capfd) -> None:
    path = Path("lake/part-00000.parquet")
    assert run(["add-filter", str(path), "-c", "name", "--in-place", "-q"]) == 0
    columns = ["-c", "name", "--fpp", "0.0001"] if options else ["-c", "name", "-c", "id"]
    capfd.readouterr()
    assert run(["add-filter", str(path), *columns, *options, "--in-place", "--report", "r.json"]) == 0
    assert "--undo" not in capfd.readouterr().out
    data = path.read_bytes()
    capfd.readouterr()
    assert undo("r.json", "--in-place") == 4
    assert "did not keep the end of the old file" in capfd.readouterr().err
    assert path.read_bytes() == data


def test_a_change_that_dropped_bytes_is_not_undone(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(["add-filter", "lake/part-00000.parquet", "-c", "id", "--in-place", "-q"])
    assert run(["remove-filter", "lake/part-00000.parquet", "--in-place", "--report", "r.json", "-q"]) == 0
    before = contents(folder)
    assert undo("r.json", "--in-place") == 4
    assert "did not keep the end of the old file" in capfd.readouterr().err
    assert contents(folder) == before


def test_files_that_changed_since_stay_as_they_are(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    run(["add-filter", "lake", "-c", "id", "--in-place", "--report", "r.parquet", "-q"])
    run(["add-filter", "lake/part-00000.parquet", "-c", "x", "--in-place", "-q"])
    Path("lake/part-00001.parquet").write_bytes(b"no longer Parquet")
    Path("lake/part-00002.parquet").unlink()
    later = contents(folder)
    capfd.readouterr()
    assert undo("r.parquet", "--in-place") == 4
    error = capfd.readouterr().err
    assert error.count("the file changed after the report was written; it is left as it is") == 2
    assert "part-00002.parquet: no such file" in error
    restored = {path for path, data in contents(folder).items() if data != later[path]}
    assert folder / OTHER_NAME in restored
    assert not {folder / f"lake/part-{number:05d}.parquet" for number in range(3)} & restored
    assert all(contents(folder)[path] == before[path] for path in restored)


def test_filters_of_another_column_with_the_same_length_are_not_undone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Length and last bytes of the file are those that the report states, although it has the filter of another run."""
    path = tmp_path / "pair.parquet"
    pq.write_table(pa.table({"a": range(1000), "b": range(5000, 6000)}), path, use_dictionary=False)
    assert run(["add-filter", str(path), "-c", "a", "--in-place", "--report", "r.json", "-q"]) == 0
    first = path.read_bytes()
    assert run(["remove-filter", str(path), "-c", "a", "--in-place", "-q"]) == 0
    assert run(["add-filter", str(path), "-c", "b", "--in-place", "-q"]) == 0
    second = path.read_bytes()
    assert (len(second), second[-64:]) == (len(first), first[-64:])
    capfd.readouterr()
    assert undo("r.json", "--in-place") == 4
    assert "the file changed after the report was written" in capfd.readouterr().err
    assert path.read_bytes() == second


def test_a_forged_report_cannot_truncate_a_file_to_other_data(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    inner = Path("lake/part-00000.parquet").read_bytes()
    path = Path("lake/nested.parquet")
    path.write_bytes(inner + Path("lake/part-00002.parquet").read_bytes())
    old = path.read_bytes()
    hashes = [sbbf_tool.add_filters(name, ["id"], dry_run=True).old_end_hash for name in ("lake/part-00000.parquet", path)]
    document = {"schema": "sbbf.add-filter", "file": str(path), "output": str(path), "dry_run": False, "old_bytes": len(inner)}
    ends = {"new_bytes": len(old), "old_end_hash": hashes[0], "new_end_hash": hashes[1]}
    Path("r.json").write_text(json.dumps({**document, **ends}))
    assert undo("r.json", "--in-place") == 4
    assert "do not end with a footer of the same data" in capfd.readouterr().err
    assert path.read_bytes() == old


def test_the_report_of_a_table_is_refused_and_names_its_own_means(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake("orders", pa.table({"id": range(100)}))
    for report in ("r.json", "r.parquet"):
        assert run(["add-filter", "orders", "-c", "id", "--rebuild", "all", "--in-place", "--report", report, "-q"]) == 0
        assert undo(report, "--in-place") == 4
        error = capfd.readouterr().err
        assert "RESTORE of Delta, rollback_to_snapshot of Iceberg" in error
        assert len(error.splitlines()) == 1 or "warning" in error


def test_the_report_of_a_copy_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    run(["add-filter", "lake/part-00000.parquet", "-c", "id", "-o", "copy.parquet", "--report", "r.json", "-q"])
    assert undo("r.json", "--in-place") == 4
    assert "remove copy.parquet" in capfd.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{}", b"[]x", b"[1]", b"null", b"[" * 100_000, b"PAR1", b"PAR1" * 100, b"\xff\xff\xff\xff", b"a,b\n1,2\n",
        b'{"schema": "sbbf.add-filter"}', b'{"schema": "sbbf.inspect", "file": "x"}',
        b'{"schema": "sbbf.add-filter", "file": 1, "output": 1, "dry_run": false, "old_bytes": 1, "new_bytes": 2, "old_end_hash": "", '
        b'"new_end_hash": ""}',
    ],
)  # fmt: skip
def test_a_file_that_is_no_report_is_one_line(text: bytes, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    Path("r.json").write_bytes(text)
    assert undo("r.json", "--in-place") == 2
    error = capfd.readouterr().err
    assert error.startswith("sbbf: r.json: the file is not the report of a change (")
    assert len(error.splitlines()) == 1
    assert contents(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [["lake"], ["-c", "id"], ["--compact"], ["-o", "x"], ["--where", "a = 1"], ["--files-from", "-"], []],
    ids=" ".join,
)
def test_options_that_choose_files_or_filters_are_refused(arguments: list[str], folder: Path) -> None:
    Path("r.json").write_text("{}")
    assert undo("r.json", *arguments, *(["--in-place"] if arguments and "-o" not in arguments else [])) == 2


def test_a_report_that_others_can_change_is_warned_of(capfd: pytest.CaptureFixture[str]) -> None:
    run(["add-filter", "lake/part-00000.parquet", "-c", "id", "--in-place", "--report", "r.json", "-q"])
    Path("r.json").chmod(0o666)
    assert undo("r.json", "--in-place") == 0
    assert "r.json: the report can be changed by every user, who can thus choose the files to restore" in capfd.readouterr().err


def test_in_python(folder: Path) -> None:
    before = contents(folder)
    run(["add-filter", "lake", "-c", "id", "--in-place", "--report", "r.json", "-q"])
    run(["add-filter", "lake/part-00000.parquet", "-c", "x", "--in-place", "-q"])
    with pytest.raises(sbbf_tool.UsageError):
        sbbf_tool.undo("r.json")
    results = list(sbbf_tool.undo("r.json", in_place=True))
    assert [type(result) for result in results if isinstance(result, sbbf_tool.SbbfError)] == [ChangedError]
    assert [path.name for path, data in contents(folder).items() if data != before[path]] == ["part-00000.parquet"]
