"""An index answers as its lake does: exit code, lines and names, also without a listing, and also
of files about which it knows nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from extensions.tables.iceberg.iceberg_tables import sql_catalog
from sbbf_tool.cli import run as sbbf
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.extensions.index.build import build_index, update_index
from sbbf_tool.extensions.index.lake_index import prune_index
from support.ducklakes import SmallLake
from support.tables import each

WAYS = ((), ("--format", "names"), ("--confirm",))


def outcome(capsys: pytest.CaptureFixture[Any], *words: str) -> tuple[int, list[str]]:
    """Return the exit code of a command and its lines, without the sum of `probe`."""
    capsys.readouterr()
    code = sbbf(list(words))
    text = capsys.readouterr().out
    lines = (os.fsdecode(text) if isinstance(text, bytes) else text).splitlines()
    return code, [line for line in lines if not line.startswith("Queried ")]


def ensure_same(lake: str, index: str, value: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Compare the answers of a lake, of its index, and of its index without a listing; return the
    exit code."""
    for way in WAYS:
        expected = outcome(capsys, "probe", lake, "v", *way, "--", value)
        for options in ((), ("--quick",)):
            answer = outcome(capsys, "probe", index, "v", *way, *options, "--", value)
            if expected[0] == 1:  # files of which no value is in question are excluded
                answer = (answer[0], [])
            assert answer == expected, (value, way, options)
    return expected[0]


BIG, NUMBERS, TEXTS = (
    pa.array([1, 3_500_000_000]),
    pa.array([1, 2], pa.int32()),
    pa.array(["1.5", "y"]),
)


@each(
    "columns, answers",
    [
        ((NUMBERS, BIG), {"3500000000": 0, "3500000001": 1, "1": 0, "7": 1, "x": 2, "1e400": 2}),
        ((BIG, NUMBERS), {"3500000000": 0, "3500000001": 1, "1": 0, "7": 1, "x": 2}),
        ((NUMBERS, NUMBERS), {"3500000000": 2, "x": 2, "9": 1}),
        ((NUMBERS, TEXTS), {"1.5": 0, "2.5": 1, "x": 0, "y": 0, "3500000000": 1}),
        ((TEXTS, BIG, NUMBERS), {"1.5": 0, "2.5": 1, "x": 0, "y": 0, "3500000000": 0}),
        ((pa.array([0.5]), NUMBERS), {"0.5": 0, "0.25": 1, "7": 1}),
        ((None, NUMBERS), {"3500000000": 2, "7": 1}),
    ],
)
def test_values_that_only_some_files_can_hold(columns, answers, tmp_path, capsys):
    lake, index = tmp_path / "lake", str(tmp_path / "lake.sbbfx")
    lake.mkdir()
    for number, values in enumerate(columns):
        table = {"other": [5]} if values is None else {"v": values}
        pq.write_table(pa.table(table), lake / f"{number}.parquet", bloom_filter_options={})
    build_index(lake, "v", index)
    found = {value: sbbf(["probe", str(lake), "v", value]) for value in answers}
    for value in answers:
        assert ensure_same(str(lake), index, value, capsys) == answers[value], (value, found)
    shutil.rmtree(lake)
    shutil.rmtree(index)


@each(
    "name, folder",
    [
        ("lake", "."),
        ("lake/", "."),
        ("./lake", "."),
        ("lake/*.parquet", "."),
        ("lake/**/*.parquet", "."),
        ("../lake", "elsewhere"),
        (".", "lake"),
        ("*.parquet", "lake"),
        ("lake/a.parquet", "."),
    ],
)
def test_names_are_printed_as_the_lake_prints_them(
    name, folder, tmp_path, monkeypatch, capsysbinary
):
    capsys = capsysbinary
    lake, index = tmp_path / "lake", str(tmp_path / "lake.sbbfx")
    lake.mkdir()
    (tmp_path / "elsewhere").mkdir()
    pq.write_table(pa.table({"v": [1, 2]}), lake / "a.parquet")
    pq.write_table(pa.table({"v": [7, 1]}), lake / "b.parquet")
    os.rename(lake / "b.parquet", os.path.join(os.fsencode(lake), b"b\xff.parquet"))
    monkeypatch.chdir(tmp_path / folder)
    assert sbbf(["index", name, "-c", "v", "-o", index]) == 0
    names = ("--format", "names0")
    for value in "127":
        expected = outcome(capsys, "probe", name, "v", value, *names)
        assert outcome(capsys, "probe", index, "v", value, *names) == expected
        if expected[0] == 0:
            assert outcome(capsys, "probe", index, "v", value, *names, "--quick") == expected
    # From another folder, the names are absolute.
    monkeypatch.chdir("/")
    _, (line,) = outcome(capsys, "probe", index, "v", "1", *names)
    paths = line.rstrip("\0").split("\0")
    assert [Path(path).parent for path in paths] == [lake] * len(paths)
    for listing in (True, False):
        assert prune_index(index, {"v": [1]}, listing=listing) == paths
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(lake)
    shutil.rmtree(index)
    shutil.rmtree("elsewhere")


def test_a_relative_name_of_a_table_in_a_catalog(tmp_path, monkeypatch, capsys):
    lake = SmallLake(tmp_path / "l", "sqlite")
    lake.add_file()
    lake.add_file()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "l")
    index, name = str(tmp_path / "t.sbbfx"), "ducklake:sqlite:metadata.sqlite#events"
    assert sbbf(["index", name, "-c", "user_id", "-o", index]) == 0
    for folder in (".", "../elsewhere"):
        monkeypatch.chdir(folder)
        for value, code in (("150", 0), ("1", 1)):
            expected = outcome(capsys, "probe", lake.events, "user_id", value)
            assert expected[0] == code
            for options in ((), ("--quick",)):
                answer = outcome(capsys, "probe", index, "user_id", value, *options)
                assert answer == (expected if code == 0 else (1, []))
    assert outcome(capsys, "index", index)[0] == 0


def test_rows_that_are_in_no_file(tmp_path):
    lake, index = SmallLake(tmp_path / "l", "sqlite"), str(tmp_path / "t.sbbfx")
    lake.add_file()
    lake.run(
        "create table ducklake_inlined_data_tables(table_id bigint, table_name varchar, "
        "schema_version bigint)"
    )
    lake.run(
        "create table ducklake_inlined_data_1_1(row_id bigint, begin_snapshot bigint, "
        "end_snapshot bigint, user_id bigint)"
    )
    lake.insert(
        "inlined_data_tables", table_id=1, table_name="ducklake_inlined_data_1_1", schema_version=1
    )
    lake.insert("inlined_data_1_1", row_id=100, begin_snapshot=4, user_id=5000)
    build_index(lake.events, "user_id", index)
    for listing in (True, False):
        assert len(prune_index(index, {"user_id": [150]}, listing=listing)) == 1
        with pytest.raises(RefusedError, match="flush them into a file"):
            prune_index(index, {"user_id": [5000]}, listing=listing)


def test_a_file_with_a_mapping_of_its_own_is_opened_without_a_listing(tmp_path, capsys):
    lake, index = SmallLake(tmp_path / "l", "sqlite"), str(tmp_path / "t.sbbfx")
    mapped = lake.add_file(mapping_id=9)
    lake.add_file()
    lake.insert("column_mapping", mapping_id=9, table_id=1, type="map_by_name")
    lake.insert("name_mapping", mapping_id=9, column_id=0, source_name="user_id", target_field_id=1)
    for report in (build_index(lake.events, "user_id", index), update_index(index)):
        assert (report.files, report.files_without_filter, report.segments) == (2, 1, 1)
    assert prune_index(index, {"user_id": [7]}, listing=False) == [mapped]
    for options in ((), ("--quick",)):
        code, lines = outcome(capsys, "probe", index, "user_id", "150", *options)
        assert (code, len(lines)) == (0, 1)


@each("change", ["rename", "swap"])
def test_columns_that_a_table_has_renamed(change, tmp_path, capsys):
    (tmp_path / change).mkdir()
    catalog = sql_catalog(tmp_path / change)
    table = catalog.create_table("n.t", schema=pa.schema([("v", pa.int64()), ("w", pa.int64())]))
    for start in (0, 100):
        rows = {"v": range(start, start + 100), "w": range(start + 1000, start + 1100)}
        table.append(pa.table(rows))
    root, index = table.location().removeprefix("file://"), str(tmp_path / change / "t.sbbfx")
    build_index(root, "v", index)
    assert len(prune_index(index, {"v": [5]}, listing=False)) == 1
    steps = [("v", "old"), ("w", "v"), ("old", "w")] if change == "swap" else [("v", "old")]
    for old, new in steps:
        with table.update_schema() as update:
            update.rename_column(old, new)
    with pytest.raises(UsageError, match="the index is of column v; list the files, or update"):
        prune_index(index, {"v": [1005]}, listing=False)
    assert len(prune_index(index, {"v": [1005]})) == 2
    catalog.close()


@each(
    "condition, code",
    [("v = 5", 0), ("v IN (5, 6)", 0), ("v = DATE '2020-01-01'", 0), ("v = '5'", 1)],
)
def test_constants_to_which_engines_convert_text(condition, code, tmp_path, capsys):
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(pa.table({"v": ["05", "2020-1-1"]}), lake / "a.parquet")
    index = tmp_path / "lake.sbbfx"
    build_index(lake, "v", index)
    for place in (lake, index):
        assert sbbf(["probe", str(place), condition, "--confirm"]) == code
    assert sbbf(["probe", str(index), condition, "--quick"]) == code


def test_files_that_a_run_skips_are_listed(tmp_path, capsys):
    lake, index = tmp_path / "lake", str(tmp_path / "lake.sbbfx")
    (tmp_path / "other").mkdir()
    lake.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"v": [number]}), lake / f"{number}.parquet")
    pq.write_table(pa.table({"v": [77]}), tmp_path / "other" / "a.parquet")
    (lake / "link").symlink_to(tmp_path / "other")
    (lake / ".f_20240101.log.1_0-1-0").write_bytes(b"rows")
    (lake / "cut.parquet.tmp").write_bytes((lake / "0.parquet").read_bytes()[:-2])
    build_index(lake, "v", index)
    skipped = {str(lake / name) for name in os.listdir(lake)}
    skipped -= {str(lake / f"{number}.parquet") for number in range(3)}
    assert len(skipped) == 3
    for listing in (True, False):
        assert set(prune_index(index, {"v": [77]}, listing=listing)) == skipped
        paths = prune_index(index, {"v": [1]}, listing=listing)
        assert set(paths) == {*skipped, str(lake / "1.parquet")}
    for value in ("1", "77"):
        lines: list[Any] = []
        for options in ((), ("--quick",)):
            capsys.readouterr()
            code = sbbf(["probe", index, "v", value, *options])
            lines.append((code, sorted(capsys.readouterr().err.splitlines())))
        capsys.readouterr()
        code = sbbf(["probe", str(lake), "v", value])
        assert lines == [(code, sorted(capsys.readouterr().err.splitlines()))] * 2
    for path in skipped:
        os.unlink(path)
    report = update_index(index)
    assert (report.files, report.vanished_files) == (3, 0)
    assert prune_index(index, {"v": [77]}, listing=False) == []


def test_a_file_that_could_not_be_read_is_opened(tmp_path, capsys):
    lake, index = tmp_path / "lake", str(tmp_path / "lake.sbbfx")
    lake.mkdir()
    pq.write_table(pa.table({"v": [1]}), lake / "0.parquet")
    pq.write_table(pa.table({"v": [2]}), lake / "1.parquet")
    data = (lake / "1.parquet").read_bytes()
    (lake / "1.parquet").write_bytes(data[:-3])
    assert sbbf(["index", str(lake), "-c", "v", "-o", index]) == 3
    assert [ensure_same(str(lake), index, value, capsys) for value in "12"] == [3, 3]
    (lake / "1.parquet").write_bytes(data)
    for numbers in ((1, 0), (0, 0)):
        report = update_index(index)
        assert (report.new_files, report.failed_files) == numbers
        assert [ensure_same(str(lake), index, value, capsys) for value in "12"] == [0, 0]


def test_what_a_killed_command_left_is_removed(tmp_path):
    lake, index = tmp_path / "lake", tmp_path / "lake.sbbfx"
    lake.mkdir()
    for number in range(4):
        pq.write_table(pa.table({"v": [number]}), lake / f"{number}.parquet")
    program = (
        "import os, signal, sys\n"
        "from sbbf_tool.extensions.index.target import IndexTarget\n"
        "from sbbf_tool.cli import run\n"
        "IndexTarget.publish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "run(sys.argv[1:])\n"
    )

    def kill(*words: str) -> set[str]:
        before = set(os.listdir(index)) if index.exists() else set()
        done = subprocess.run([sys.executable, "-c", program, "index", *words], check=False)
        assert done.returncode == -signal.SIGKILL
        # As a command that is killed while it writes.
        (index / f".current.json.{'a' * 12}.sbbf-tmp").touch()
        return set(os.listdir(index)) - before

    build = (str(lake), "-c", "v", "-o", str(index))
    assert len(kill(*build)) == 3
    assert sbbf(["index", *build]) == 0
    assert len(os.listdir(index)) == 3
    pq.write_table(pa.table({"v": [9]}), lake / "9.parquet")
    left = kill(str(index))
    former = set(os.listdir(index)) - left
    assert sbbf(["index", str(index)]) == 0
    assert not left & set(os.listdir(index))
    # A reader may have the former segments open for an hour.
    assert sbbf(["index", str(index), "--compact"]) == 0
    assert former < set(os.listdir(index))
    assert len(os.listdir(index)) == 7
    for path in index.iterdir():
        if path.name != "current.json":
            os.utime(path, (1, 1))
    assert sbbf(["index", str(index)]) == 0
    assert len(os.listdir(index)) == 3
    assert ds.dataset(prune_index(index, {"v": [9]})).count_rows() == 1
