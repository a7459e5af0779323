"""`sbbf apply`: the filters that the configuration declares, over files and tables, and its exit
codes."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.storage import places as places_of_files
from support.lakes import partitioned, small_files
from support.samples import listing, places
from support.tables import each


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with six files in partitions, one file beside them, and a configuration."""
    partitioned(tmp_path / "events")
    small_files(tmp_path / "other", 1)
    (tmp_path / "sbbf.toml").write_text(
        '[[filters]]\npaths = "events/**"\ncolumns = ["id", "name"]\n\n'
        "[[filters]]\npaths = 'events'\ncolumns = 'id'\nfpp = 0.001\nwhere = \"region = 'eu'\"\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[dict], str]:
    code = run([*map(str, words), "--format", "json"])
    output = capsys.readouterr()
    return code, [json.loads(line) for line in output.out.splitlines()], output.err


def test_the_state_is_shown_made_so_and_then_holds(lake: Path, capsys):
    before = listing(lake)
    code, rows, _ = call(capsys, "apply")
    assert (
        code,
        len(rows),
        rows[-1]["totals"]["missing"],
        rows[-1]["totals"]["files_not_as_declared"],
    ) == (1, 7, 12, 6)
    assert rows[-1]["totals"]["estimated_seconds"] > 0
    assert {row["schema"] for row in rows} == {"sbbf.apply", "sbbf.summary"}
    assert listing(lake) == before
    assert call(capsys, "apply", "--in-place", "-n")[0] == 1
    assert listing(lake) == before
    code, rows, _ = call(capsys, "apply", "--in-place")
    assert (code, rows[-1]["done"], rows[-1]["totals"]["filters"]) == (0, 6, 12)
    assert {
        row["filters"][0]["fpp"] < 0.001 for row in rows[:-1] if "region=eu" in row["file"]
    } == {True}
    after = listing(lake)
    for options in ((), ("--in-place",)):
        code, rows, _ = call(capsys, "apply", *options)
        assert (code, rows[-1]["skipped"], rows[-1]["totals"]["filters"]) == (0, 6, 0)
    assert listing(lake) == after
    assert not places(lake / "other" / "part-00000.parquet")


def test_a_dry_run_adds_at_least_what_the_run_adds(lake: Path, capsys):
    planned = call(capsys, "apply")[1][-1]["totals"]
    before = sum(path.stat().st_size for path in lake.rglob("*.parquet"))
    done = call(capsys, "apply", "--in-place")[1][-1]["totals"]
    after = sum(path.stat().st_size for path in lake.rglob("*.parquet"))
    assert done["bytes_added"] == after - before
    assert 0 < done["bytes_added"] <= planned["bytes_added"] <= done["bytes_added"] + 12 * 128
    assert planned["estimated_bytes"] < planned["bytes_added"]


def test_the_table_shows_what_was_done(lake: Path, capsys):
    nulls = pa.table(
        {
            "id": pa.array([1, None], pa.int64()),
            "name": ["a", None],
            "tags": pa.array([["x"], None]),
        }
    )
    path = next((lake / "events").rglob("*.parquet")).with_name("nulls.parquet")
    pq.write_table(nulls, path, row_group_size=1)
    sbbf_tool.add_filters(path, "tags.list.element", in_place=True)
    run(["apply", "--in-place", "--remove-undeclared"])
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["column", "satisfied", "built", "removed", "filters"] in rows, out
    assert [row[:2] for row in rows if row[0] in ("id", "name")] == [["id", "7"], ["name", "7"]], (
        out
    )
    assert "2 column chunks without values need no filter" in out
    assert "undo: no command restores what sbbf had added before" in out
    # Nothing of a file is removed for a name that is misspelt.
    (lake / "sbbf.toml").write_text('[[filters]]\npaths = "events"\ncolumns = ["idd"]\n')
    before = listing(lake)
    assert run(["apply", "--in-place", "--remove-undeclared"]) == 2
    assert listing(lake) == before


def test_types_that_no_engine_uses_are_named_once(lake: Path, capsys):
    pq.write_table(pa.table({"tags": [["x"]]}), lake / "other/tags.parquet")
    (lake / "sbbf.toml").write_text(
        'engines = ["duckdb"]\n[[filters]]\npaths = "other"\ncolumns = "tags.list.element"\n'
    )
    code, _, error = call(capsys, "apply", "--in-place")
    assert (code, error.count("DuckDB does not use filters on values inside lists and maps")) == (
        0,
        1,
    ), error
    run(["check", "other"])
    assert "info: unused-by-engines: 1 finding" in capsys.readouterr().out


def test_a_column_of_no_file_is_an_error(lake: Path, capsys):
    (lake / "sbbf.toml").write_text('[[filters]]\npaths = "events"\ncolumns = ["id", "nam"]\n')
    code, _, error = call(capsys, "apply", "--in-place")
    assert (code, error) == (
        2,
        "sbbf: no file has the column: there is no column 'nam'; did you mean name?\n",
    )
    assert {
        column for path in (lake / "events").rglob("*.parquet") for _, column in places(path)
    } == {"id"}


def test_a_file_outside_the_partitions_fails_alone(lake: Path, capsys):
    small_files(lake / "events", 1)
    (lake / "sbbf.toml").write_text(
        "[[filters]]\npaths = 'events'\ncolumns = 'id'\nwhere = \"region = 'eu'\"\n"
    )
    code, rows, error = call(capsys, "apply", "--in-place")
    assert (code, rows[-1]["done"], rows[-1]["failed"]) == (2, 3, 1)
    assert (
        error == "sbbf: events/part-00000.parquet: no partition column 'region'; the path has no "
        "column=value folder\n"
    )


def test_declared_paths_without_files(lake: Path, capsys):
    (lake / "empty").mkdir()
    (lake / "sbbf.toml").write_text(
        '[[filters]]\npaths = ["events", "evnts/**", "empty"]\ncolumns = "id"\n'
    )
    code, rows, error = call(capsys, "apply", "--in-place")
    assert (code, rows[-1]["done"]) == (0, 6)
    assert error.splitlines() == [
        "sbbf: no file matches the declared path 'evnts/**'",
        "sbbf: no file matches the declared path 'empty'",
    ]
    assert call(capsys, "apply", "events", "nothere")[::2] == (3, "sbbf: nothere: no such file\n")


@each("paths", ['["events/**", "nothere/**"]', '"*"'])
def test_the_undo_names_the_files_that_were_changed(lake: Path, capsys, paths: str):
    (lake / "sbbf.toml").write_text(f"[[filters]]\npaths = {paths}\ncolumns = 'id'\n")
    before = listing(lake)
    assert run(["apply", "--in-place"]) == 0
    (line,) = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith("undo: sbbf ")
    )
    assert run(shlex.split(line)[2:]) == 0
    assert listing(lake) == before


def test_the_undo_leaves_files_below_the_path_that_are_not_declared(lake: Path, capsys):
    assert run(["add-filter", "other", "-c", "id", "--in-place"]) == 0
    before = listing(lake)
    capsys.readouterr()
    assert run(["apply", ".", "--in-place"]) == 0
    (line,) = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith("undo: sbbf ")
    )
    assert run(shlex.split(line)[2:]) == 0
    assert listing(lake) == before


def test_a_configuration_that_was_found_does_not_lead_outside_by_a_link(
    lake: Path, tmp_path_factory, capsys
):
    outside = small_files(tmp_path_factory.mktemp("outside"), 1)
    (lake / "events/day").symlink_to(outside)
    before = listing(outside)
    (lake / "sbbf.toml").write_text('[[filters]]\npaths = "events/day/**"\ncolumns = "id"\n')
    code, _, error = call(capsys, "apply", "--in-place")
    assert (code, "paths must lie below" in error) == (2, True)
    assert listing(outside) == before


def test_an_interrupted_run_is_undone(lake: Path, capfd, monkeypatch):
    before = listing(lake / "events")
    replace, changes = places_of_files.replace_file, []

    def interrupt(*words, **options):
        if len(changes) == 3:
            raise KeyboardInterrupt
        changes.append(words)
        return replace(*words, **options)

    with monkeypatch.context() as patch:
        patch.setattr(places_of_files, "replace_file", interrupt)
        assert run(["apply", "--in-place", "--jobs", "1", "--report", "r.json"]) == 130
    assert (
        "the report has the files so far; name another for the next run" in capfd.readouterr().err
    )
    assert sum(listing(lake / "events")[name] != data for name, data in before.items()) == 3
    assert run(["remove-filter", "events", "--ours", "--in-place"]) == 0
    assert listing(lake / "events") == before


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "orders"
    for part in range(3):
        rows = pa.table({"id": range(part * 100, part * 100 + 100), "day": [f"d{part % 2}"] * 100})
        deltalake.write_deltalake(folder, rows, mode="append", partition_by=["day"])
    monkeypatch.chdir(tmp_path)
    return folder


class TestTables:
    def test_one_commit_and_then_nothing(self, table: Path, tmp_path: Path, capsys):
        small_files(tmp_path / "files", 2)
        (tmp_path / "sbbf.toml").write_text(
            '[[filters]]\npaths = ["orders", "files"]\ncolumns = "id"\n'
        )
        assert call(capsys, "apply")[0] == 1
        assert deltalake.DeltaTable(table).version() == 2
        code, rows, error = call(capsys, "apply", "--in-place")
        assert (code, rows[-1]["files"], rows[-1]["totals"]["filters"]) == (0, 5, 5)
        assert [commit["files"] for commit in rows[-1]["totals"]["commits"]] == [3]
        assert "Delta, version 2: 3 files" in error
        assert deltalake.DeltaTable(table).version() == 3
        code, rows, _ = call(capsys, "apply", "--in-place")
        assert (code, rows[-1]["skipped"], rows[-1]["totals"]["commits"]) == (0, 5, [])
        assert deltalake.DeltaTable(table).version() == 3

    def test_each_of_several_tables_is_named(self, table: Path, tmp_path: Path, capsys):
        shutil.copytree(table, tmp_path / "returns")
        (tmp_path / "sbbf.toml").write_text(
            '[[filters]]\npaths = ["orders", "returns"]\ncolumns = "id"\n'
        )
        assert run(["add-filter", "orders", "-c", "id", "--in-place"]) == 0
        capsys.readouterr()
        (tmp_path / "returns/_delta_log/00000000000000000003.json").write_text(
            '{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": '
            '["unknown"]}}\n'
        )
        assert run(["apply", "--in-place"]) == 4
        error = capsys.readouterr().err.splitlines()[-1]
        assert "returns: the table requires the writer feature" in error
        assert error.endswith("; no other declared file was changed")
        (tmp_path / "returns/_delta_log/00000000000000000003.json").unlink()
        assert run(["apply", "--in-place"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert "orders: nothing was committed" in lines
        assert "returns: committed 3 files as version 3; no row changed" in lines

    def test_where_selects_partitions_of_the_table(self, table: Path, tmp_path: Path, capsys):
        (tmp_path / "sbbf.toml").write_text(
            '[[filters]]\npaths = "orders"\ncolumns = "id"\nwhere = "day = \'d0\'"\n'
        )
        code, rows, _ = call(capsys, "apply", "orders", "--in-place")
        assert (code, rows[-1]["totals"]["filters"]) == (0, 2)
        assert call(capsys, "apply")[0] == 0
        assert call(capsys, "check", "orders", "--select", "deviating-filter")[0] == 0


def test_a_configuration_that_others_may_write_is_refused(lake: Path, capsys):
    (lake / "sbbf.toml").chmod(0o666)
    code, _, error = call(capsys, "apply")
    assert (code, "the configuration file was not named" in error) == (2, True)
    shutil.rmtree(lake / "other")
    assert call(capsys, "apply", "--config", "sbbf.toml", "--in-place")[0] == 0
