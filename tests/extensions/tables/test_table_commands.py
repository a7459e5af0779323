"""The commands on a table: what its name means, the cost before the start, the commits at the end,
and what does not apply."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import time
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.extensions.tables.table_run import TableRun
from support.calls import call
from support.samples import places
from support.tables import each

RUN = "0123456789abcdef"


@pytest.fixture
def table(tmp_path) -> Path:
    folder = tmp_path / "orders"
    for part in range(3):
        rows = pa.table({"id": range(part * 100, part * 100 + 100), "day": [f"d{part % 2}"] * 100})
        deltalake.write_deltalake(folder, rows, mode="append", partition_by=["day"])
    return folder


def documents(capsys, *words: object) -> list[dict]:
    code, out, err = call(capsys, *words, "--format", "json")
    assert code in (0, 1), err
    return [json.loads(line) for line in out.splitlines()]


def test_filters_are_added_in_one_commit(table, capsys, monkeypatch):
    before = sorted(table.rglob("*"))
    assert call(capsys, "add-filter", table, "-c", "id", "-n")[0] == 0
    assert sorted(table.rglob("*")) == before
    code, out, err = call(capsys, "add-filter", table, "-c", "id", "--in-place")
    assert code == 0
    assert f"{table}: Delta, version 2: 3 files, " in err
    assert "old files stay until VACUUM deletes them" in err
    assert out.splitlines()[-4].startswith("3 files: 3 done; 3 filters added, ")
    assert out.splitlines()[-3] == "committed 3 files as version 3; no row changed"
    assert out.splitlines()[-1] == f"undo: RESTORE TABLE delta.`{table}` TO VERSION AS OF 2"
    fresh = deltalake.DeltaTable(table)
    assert fresh.version() == 3
    assert pa.table(fresh.to_pyarrow_table()).num_rows == 300
    assert documents(capsys, "verify", table)[-1]["done"] == 3
    *_, summary = documents(capsys, "add-filter", table, "-c", "id", "--in-place")
    assert (summary["skipped"], summary["totals"]["commits"]) == (3, [])
    monkeypatch.setenv("SBBF_REMOVE_FILTER_FILES_PER_COMMIT", "2")
    *rows, summary = documents(capsys, "remove-filter", table, "-c", "id", "--in-place")
    commits = [(commit["files"], commit["version"]) for commit in summary["totals"]["commits"]]
    assert commits == [(2, "version 4"), (1, "version 5")]
    assert all(row["output"] != row["file"] for row in rows)


def test_commands_that_read_take_only_live_files(table, capsys):
    call(capsys, "add-filter", table, "-c", "id", "--in-place")
    assert len(documents(capsys, "inspect", table)) == 4
    assert len(documents(capsys, "inspect", table, "--quick")) == 4
    assert len(documents(capsys, "inspect", table, "--as-files")) == 7
    assert len(documents(capsys, "inspect", table, "--where", "day = 'd1'")) == 2
    assert call(capsys, "probe", table, "id", "250")[0] == 0
    assert call(capsys, "probe", table, "id", "250000")[0] == 1
    assert call(capsys, "explain", table, "id", "250")[0] == 0
    assert call(capsys, "check", table, "--require", "id")[0] == 0
    code, out, _ = call(capsys, "advise", table)
    assert (code, out.splitlines()[0].startswith("3 files")) == (0, True)


def test_a_file_of_a_table_is_refused_and_the_table_is_named(table, capsys):
    file = next(iter(table.rglob("*.parquet")))
    code, _, err = call(capsys, "add-filter", file, "-c", "id", "--in-place")
    assert code == 4
    assert (
        f"name the table itself, {table}, to change its files in one commit, or allow changes to "
        "files of tables (--allow table-files)" in err
    )
    assert (
        call(capsys, "add-filter", file, "-c", "id", "--in-place", "--allow", "table-files")[0] == 0
    )
    words = ("add-filter", table, "-c", "id", "--in-place", "--allow", "table-files")
    code, out, err = call(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert (
        "do not allow changes to files of tables (--allow table-files), or take the files below it "
        "as files (--as-files)" in err
    )
    code, out, _ = call(capsys, *words, "--as-files")
    assert (code, "committed" in out, deltalake.DeltaTable(table).version()) == (0, False, 2)


def test_skipped_files_are_listed_with_the_reason(table, capsys):
    version = table / "_delta_log" / f"{1:020d}.json"
    version.write_text(version.read_text().replace('"path":"day', f'"path":"{table}/day'))
    code, out, err = call(capsys, "add-filter", table, "-c", "id", "--in-place")
    assert code == 0
    assert ": skipped: its path is absolute" in err
    assert "committed 2 files as version 3; no row changed" in out


def test_filters_that_exclude_hardly_any_value_are_not_committed(table, capsys):
    words = ("add-filter", table, "-c", "id", "--max-bytes", 64, "--in-place")
    deltalake.write_deltalake(
        table, pa.table({"id": range(5000), "day": ["d7"] * 5000}), mode="append"
    )
    code, out, err = call(capsys, *words)
    assert (code, "committed 3 files" in out) == (4, True), out
    assert err.count("column id: 1 filter left out, whose false-positive rate would be") == 1
    assert call(capsys, *words, "--allow", "weak-filters")[0] == 0


def test_abandoned_copies_are_listed_and_deleted(table, capsys):
    call(capsys, "add-filter", table, "-c", "id", "--in-place")
    abandoned = table / "day=d0" / f"sbbf-{RUN}-00000000-part.parquet"
    abandoned.write_bytes(b"copy")
    os.utime(abandoned, (time.time() - 7200,) * 2)
    (document,) = documents(capsys, "repair", table, "--abandoned", "24h")
    assert (document["copies"], document["younger"]) == ([], 1)
    (document,) = documents(capsys, "repair", table, "--abandoned", "1h")
    assert ([copy["path"] for copy in document["copies"]], document["deleted"]) == (
        [str(abandoned)],
        False,
    )
    code, out, _ = call(capsys, "repair", table, "--abandoned", "90m", "--in-place")
    assert (code, out.splitlines()[-1]) == (0, f"{table}: 1 copy deleted")
    assert not abandoned.exists()
    assert call(capsys, "verify", table)[0] == 0


def test_copies_that_a_clean_up_deletes_before_the_commit(table, capsys, monkeypatch):
    commit = TableRun._commit

    def delete_first(self):
        next(table.rglob("sbbf-*.parquet")).unlink()
        commit(self)

    monkeypatch.setattr(TableRun, "_commit", delete_first)
    before = sorted(deltalake.DeltaTable(table).to_pyarrow_table()["id"].to_pylist())
    code, out, _ = call(capsys, "add-filter", table, "-c", "id", "--in-place")
    assert code == 4
    assert "3 files: 2 done, 1 vanished; 2 filters added" in out
    assert "the copies of 1 file were deleted meanwhile; run the command again: " in out
    assert sorted(deltalake.DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == before


def test_files_that_another_commit_removes_are_no_failure(table, capsys, monkeypatch):
    commit = TableRun._commit

    def remove_first(self):
        deltalake.DeltaTable(table).delete("day = 'd0'")
        commit(self)

    monkeypatch.setattr(TableRun, "_commit", remove_first)
    code, out, _ = call(capsys, "add-filter", table, "-c", "id", "--in-place")
    assert (code, "another commit replaced or removed 2 files" in out) == (0, True), out


def test_a_log_that_is_not_there_makes_no_folder_of_files(table, capsys):
    shutil.rmtree(table / "_delta_log")
    (table / "_delta_log").symlink_to(table / "unmounted")
    assert call(capsys, "add-filter", table, "-c", "id", "--in-place")[0] == 3
    assert call(capsys, "add-filter", table / "day=d0", "-c", "id", "--in-place")[0] == 4


def test_a_table_without_files(tmp_path, capsys):
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": pa.array([], pa.int64())}))
    assert call(capsys, "probe", tmp_path / "t", "id", "5")[0] == 1
    assert call(capsys, "explain", tmp_path / "t", "id", "5")[0] == 1
    assert call(capsys, "advise", tmp_path / "t")[0] == 0


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A folder with a declared table, one of whose two files is of an old version, and a declared
    folder of files."""
    monkeypatch.chdir(tmp_path)
    for part in "ab":
        rows = pa.table({"id": range(100), "p": [part] * 100})
        deltalake.write_deltalake("lake/orders", rows, partition_by=["p"], mode="overwrite")
    os.mkdir("lake/plain")
    pq.write_table(pa.table({"id": range(10)}), "lake/plain/a.parquet")
    Path("sbbf.toml").write_text(
        "".join(
            f'[[filters]]\npaths = ["lake/{name}"]\ncolumns = ["id"]\n'
            for name in ("orders", "plain")
        )
    )
    return tmp_path / "lake"


@each("names", [["lake"], ["lake/*"], ["lake/plain", "lake"]])
def test_a_folder_above_a_declared_table_means_its_live_files(lake, capsys, names):
    for command, code in (
        (["apply"], 1),
        (["check", "--fail-on", "error"], 1),
        (["apply", "--in-place"], 0),
        (["check"], 0),
    ):
        assert call(capsys, *command, *names)[0] == code, command
    assert deltalake.DeltaTable("lake/orders").version() == 2
    (old,) = (path for path in (lake / "orders" / "p=a").iterdir())
    assert call(capsys, "check", old)[0] == 1, "a file that is named is checked"


def test_partition_columns_need_no_filter(lake, capsys):
    shutil.copytree("lake/plain", "files/k=1")
    code, _, err = call(capsys, "explain", "files", "k", "1", "--run", "duckdb")
    assert (code, "partition column" in err, "no filter is needed" in err) == (2, True, True)


def test_the_fix_of_check_names_the_table_and_resolves_the_finding(
    table, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, _ = call(capsys, "check", table, "--require", "id")
    (fix,) = re.findall(r"fix: sbbf (.*)", out)
    assert (code, shlex.split(fix)) == (1, ["add-filter", str(table), "-c", "id", "--in-place"])
    Path("sbbf.toml").write_text(f'[[filters]]\npaths = "{table}"\ncolumns = ["id"]\n')
    code, out, _ = call(capsys, "check", table, "--select", "declared")
    assert (code, f"fix: sbbf {fix}" in out) == (1, True), out
    assert call(capsys, *shlex.split(fix))[0] == 0
    assert call(capsys, "check", table, "--require", "id")[0] == 0
    assert call(capsys, "check", table, "--select", "declared")[0] == 0


def test_a_commit_says_what_was_done(table, capsys, tmp_path):
    """Filters that `repair` drops, and that `apply` removes, are removed; names of files are
    relative to the root of the table."""
    call(capsys, "add-filter", table, "-c", "id", "--in-place")
    for live in deltalake.DeltaTable(table).file_uris():
        (place,) = places(live).values()
        with open(live, "r+b") as stream:
            stream.seek(place.offset)
            stream.write(bytes(place.length))
    code, out, err = call(capsys, "repair", table, "--rebuild", "none", "--in-place")
    assert code == 0, err
    assert str(table) not in out.split("undo: ")[0]
    code, out, err = call(capsys, "add-filter", table, "-c", "id", "--in-place")
    config = tmp_path / "sbbf.toml"
    config.write_text(f'[[filters]]\npaths = "{table}"\ncolumns = ["none"]\n')
    call(capsys, "apply", table, "--config", config, "--remove-undeclared", "--in-place")
    operations = [entry["operation"] for entry in reversed(deltalake.DeltaTable(table).history())]
    assert operations[3:] == ["ADD BLOOM FILTERS", "REMOVE BLOOM FILTERS"] * 2
    # What needs nothing is not listed file by file.
    code, out, err = call(capsys, "remove-filter", table, "-c", "id", "--in-place")
    assert (code, "skipped" in err, "3 had no filter to remove" in out) == (0, False, True)
