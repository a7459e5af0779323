"""An index leaves out files that certainly have none of the values, and nothing else changes:
`probe` is the judge."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from extensions.index.lakes_of_all_kinds import (
    TYPES,
    change_lake,
    values_of,
    write_file,
    write_lake,
)
from sbbf_tool import Edit, probe, prune, run
from sbbf_tool.bloom.filter import BloomFilter, check_block
from sbbf_tool.cli import run as sbbf
from sbbf_tool.errors import ChangedError, RefusedError, UsageError
from sbbf_tool.extensions.index import contents, hits, new_segment, segment
from sbbf_tool.extensions.index.build import build_index, update_index
from sbbf_tool.extensions.index.contents import SegmentEntry
from sbbf_tool.extensions.index.lake_index import LakeIndex, fingerprint_of, identify, prune_index
from sbbf_tool.extensions.index.segment import build_page_header, find_units
from sbbf_tool.extensions.index.target import IndexTarget
from sbbf_tool.extensions.index.units import FileUnit, FileUnits
from sbbf_tool.parquet.logical import AS_STORED
from sbbf_tool.parquet.pages import read_page
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.running.discover import discover
from sbbf_tool.verbs import Probe, RemoveFilter, Verify
from support.damage import places_of, with_value
from support.lakes import mixed
from support.places import needs_root
from support.tables import each


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "lake.sbbfx"


def build(lake: Path, index: Path, *options: str, column: str = "v", code: int = 0) -> None:
    assert sbbf(["index", str(lake), "-c", column, "-o", str(index), *options]) == code


def ensure_same_answers(
    lake: Path, index: Path, values: list[Any], column: str = "v", **options: Any
) -> int:
    """Compare an index with `probe` of all files, for each value; return how many answers it gave
    without opening a file."""
    reports = {
        row.path: row.report for row in run(Probe(column, values, confirm=True, **options), lake)
    }
    plain = {row.path: row for row in run(Probe(column, values, **options), lake)}
    listed = {file.path: fingerprint_of(identify(file)) for file in discover((str(lake),))}
    excluded = 0
    for position, value in enumerate(values):
        known = LakeIndex(str(index)).find_excluded([value])
        for path in (path for path, fingerprint in listed.items() if fingerprint in known):
            report = reports[path]
            assert report is not None, path
            assert position not in {hit.position for hit in report.hits}, (path, value)
            assert not report.inconclusive, (path, report.inconclusive)
            excluded += 1
    narrowed = {row.path: row for row in run(Probe(column, values, **options), index)}
    assert narrowed
    for path, row in narrowed.items():
        assert (row.report, row.status, row.reason) == (
            plain[path].report,
            plain[path].status,
            plain[path].reason,
        )
    for path in plain.keys() - narrowed.keys():
        assert (reports[path] or plain[path].report).is_absent
    return excluded


@pytest.mark.slow
@each("name", list(TYPES), every=6)
@each("options", [(), ("--false-files", "0.1")])
def test_the_answers_are_those_of_probe(name, options, tmp_path, index):
    lake = write_lake(tmp_path / "lake", name, 14)
    build(lake, index, *options)
    values = values_of(lake, 30)
    others = values_of(write_lake(tmp_path / "others", name, 2, seed=1), 10)
    assert ensure_same_answers(lake, index, [*values, *others]) > 300
    # One file of the lake is of today, and others are gone: the index judges none of them.
    change_lake(lake, name, 7)
    values = [*values_of(lake, 30), *values[:10]]
    ensure_same_answers(lake, index, values)
    assert sbbf(["index", str(index)]) == 0
    assert ensure_same_answers(lake, index, values) > 300
    assert sbbf(["index", str(index), "--compact"]) == 0
    assert ensure_same_answers(lake, index, values) > 300
    assert len(list(index.glob("*.parquet"))) >= 2


@each("values", [[255, 256], [-1, -256, 5], ["b", "aa"], [-0.5, -8.0, 2.0]])
def test_the_bounds_of_a_file_are_those_of_its_row_groups(values, tmp_path, index):
    """As the values are ordered, not their bytes."""
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(pa.table({"v": values}), lake / "a.parquet", row_group_size=1)
    build(lake, index)
    assert ensure_same_answers(lake, index, values) == 0


def test_special_values_are_those_of_probe(tmp_path, index):
    lake = write_lake(tmp_path / "lake", "double", 8)
    build(lake, index)
    for values in ([None], [0.0], [float("nan")], ["abc"], ["1e400"], [1, None], ["0.25", "x"], []):
        ensure_same_answers(lake, index, values)


def ensure_no_row_is_lost(lake: Path, index: Path, *values: str | None) -> None:
    """Compare the rows of files by an index with those of all files, which tell of a file that is
    left out that it has no such value."""
    for value in values:
        lake_rows = {row.path: row for row in run(Probe("id", [value]), lake)}
        index_rows = {row.path: row for row in run(Probe("id", [value]), index)}
        for path, row in index_rows.items():
            assert (row.report, row.reason) == (lake_rows[path].report, lake_rows[path].reason)
        confirmed = {row.path: row.report for row in run(Probe("id", [value], confirm=True), lake)}
        for path in lake_rows.keys() - index_rows.keys():
            report = confirmed[path]
            assert report is not None
            assert report.is_absent, (path, value)


def test_files_of_other_types_and_broken_ones_are_judged_by_themselves(tmp_path, index):
    lake = mixed(tmp_path / "lake")
    write_file(lake / "other.parquet", "int32", np.random.default_rng(0), 0)
    for number, kind in enumerate(
        (pa.int32(), pa.int64(), pa.string(), pa.bool_(), pa.float64(), pa.decimal128(12, 0))
    ):
        pq.write_table(
            pa.table({"id": pa.array([number, 10 + number]).cast(pa.int32()).cast(kind)}),
            lake / f"type-{number}.parquet",
        )
    (lake / "id=3").mkdir()
    pq.write_table(pa.table({"id": [100, 200]}), lake / "id=3" / "partition.parquet")
    assert sbbf(["index", str(lake), "-c", "id", "-o", str(index)]) == 4
    ensure_no_row_is_lost(
        lake, index, "1", "3", "13", "100", "abc", "1.5", "true", None, str(1 << 40)
    )
    assert len(list(run(Verify(), index))) == len(list(run(Verify(), lake)))


def test_a_file_that_hides_its_values_is_always_opened(tmp_path, index, fixtures, capsys):
    lake = tmp_path / "lake"
    shutil.copytree(fixtures, lake, ignore=shutil.ignore_patterns("*.py", "*.md"))
    sbbf(["index", str(lake), "-c", "id", "-o", str(index)])
    assert "the footer is encrypted" in capsys.readouterr().err
    ensure_no_row_is_lost(lake, index, "1", "5", "77", "1000000")


def test_the_command(tmp_path, index, capsys):
    lake = tmp_path / "lake"
    lake.mkdir()
    for number in range(10):
        pq.write_table(
            pa.table({"v": range(number * 100, number * 100 + 100)}),
            lake / f"{number}.parquet",
            bloom_filter_options={"v": True},
        )
    build(lake, index, "--dry-run")
    assert "would be" in capsys.readouterr().out
    assert not index.exists()
    build(lake, index)
    assert "10 files indexed by v; 10 new" in capsys.readouterr().out
    assert sbbf(["index", str(index)]) == 0
    assert "10 files indexed by v; 0 new" in capsys.readouterr().out
    assert sbbf(["probe", str(index), "v", "123"]) == 0
    assert capsys.readouterr().out == (
        f"{lake}/1.parquet: 123: row group 0\n"
        "Queried 1 value in 1 file: 1 file may hold 1 of the values; the index excludes 9 other "
        "files\n"
    )
    assert sbbf(["probe", str(index), "v", "123", "--confirm", "--format", "names"]) == 0
    assert capsys.readouterr().out == f"{lake}/1.parquet\n"
    assert sbbf(["probe", str(index), "v", "5000", "--format", "json"]) == 1
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (summary["files"], summary["totals"]["files_excluded"]) == (1, 9)
    assert sbbf(["probe", str(index), "v = 123 AND v IN (5, 123)", "--rows"]) == 0
    assert "row 23" in capsys.readouterr().out


def test_only_some_partitions_are_indexed(tmp_path, index):
    lake = tmp_path / "lake"
    for number in range(4):
        write_lake(lake / f"day={number}", "int64", 2, seed=number)
    build(lake, index, "--where", "day >= '2'")
    assert {Path(path).parent.name for path in LakeIndex(str(index)).find_paths([None])} == {
        "day=2",
        "day=3",
    }
    values = values_of(lake, 20)
    assert ensure_same_answers(lake, index, values) > 40
    write_lake(lake / "day=5", "int64", 1, seed=5)
    report = update_index(str(index))
    assert (report.files, report.new_files, report.vanished_files) == (5, 1, 0)


def test_pruned_files_for_python(tmp_path, index):
    lake = write_lake(tmp_path / "lake", "int64", 12)
    report = build_index(lake, "v", str(index), false_files=0.01)
    assert (report.files, report.new_files, report.failed_files, report.segments) == (12, 12, 0, 1)
    assert report.false_files < 0.02
    values = values_of(lake, 4)
    paths = prune_index(index, {"v": values})
    assert prune_index(index, {"v": values}, listing=False) == paths
    with_values = {
        str(path)
        for path in lake.iterdir()
        if set(pq.read_table(path).column("v").to_pylist()) & set(values)
    }
    assert with_values <= set(paths)
    assert len(paths) <= len(with_values) + 1
    assert ds.dataset(paths).to_table(filter=ds.field("v").isin(values)).num_rows >= len(values)
    assert prune_index(index, {"v": [-7]}) == []
    write_file(lake / "new.parquet", "int64", np.random.default_rng(5), 0)
    (Path(paths[0])).unlink()
    assert set(prune_index(index, {"v": values})) == {*paths[1:], str(lake / "new.parquet")}
    assert prune_index(index, {"v": values}, listing=False) == paths
    with pytest.raises(UsageError, match="the index is of column v, not of n"):
        prune_index(index, {"n": [1]})


def test_many_keys_are_tested_like_few(tmp_path, index, monkeypatch):
    lake = write_lake(tmp_path / "lake", "int64", 20)
    build_index(lake, "v", str(index), false_files=0.1)
    values = [*values_of(lake, 40), *range(-200, 0)]
    few = [prune_index(index, {"v": [value]}) for value in values]
    many = LakeIndex(str(index)).find_excluded(values)
    one_by_one = set.intersection(
        *(LakeIndex(str(index)).find_excluded([value]) for value in values)
    )
    assert many == one_by_one
    monkeypatch.setattr(hits, "_FEW", 0)
    assert [prune_index(index, {"v": [value]}) for value in values] == few
    assert LakeIndex(str(index)).find_excluded(values) == many


def test_values_of_a_file_are_queried_like_one_by_one(tmp_path, index, capsys):
    lake = write_lake(tmp_path / "lake", "int64", 20)
    build(lake, index, "--false-files", "0.5")
    keys = tmp_path / "keys.txt"
    keys.write_text("".join(f"{value}\n" for value in [*values_of(lake, 30), *range(-3000, 0)]))
    answers = []
    for path in (lake, index):
        capsys.readouterr()
        assert (
            sbbf(
                [
                    "probe",
                    str(path),
                    "-c",
                    "v",
                    "--values-file",
                    str(keys),
                    "--confirm",
                    "--format",
                    "names",
                ]
            )
            == 0
        )
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1] != ""


def test_segments_are_no_data_of_a_lake_around_them(tmp_path, index):
    lake = write_lake(tmp_path / "lake", "int64", 3)
    build(lake, index)
    assert {row.path for row in run(Verify(), tmp_path)} == {str(path) for path in lake.iterdir()}


def test_a_quick_query_lists_no_files(tmp_path, index, capsys):
    lake = write_lake(tmp_path / "lake", "int64", 8)
    build(lake, index)
    (value,) = values_of(lake, 1)
    capsys.readouterr()

    def names(*options: str) -> list[str]:
        assert sbbf(["probe", str(index), "v", str(value), "--format", "names", *options]) == 0
        return sorted(capsys.readouterr().out.splitlines())

    assert names("--quick") == names()
    shutil.copy(names()[0], lake / "new.parquet")
    assert names("--quick") == [path for path in names() if path != f"{lake}/new.parquet"]
    assert sbbf(["probe", str(index), "v", "--quick", "--", "-3"]) == 1
    assert capsys.readouterr().out.endswith("the index excludes 7 other files\n")
    (lake / "000.parquet").unlink()
    update_index(str(index))
    assert sbbf(["probe", str(index), "v", "--quick", "--", "-3"]) == 1
    assert capsys.readouterr().out.endswith("the index excludes 7 other files\n")


@each("name, code", [("n", 1), ("V", 0)])  # a reader may take V for v
@each("options", [(), ("--confirm",), ("--format", "names"), ("--value", "-4"), ("--quick",)])
def test_files_without_the_column_hold_no_value(name, code, options, tmp_path, index, capsys):
    lake = write_lake(tmp_path / "lake", "int64", 3)
    pq.write_table(pa.table({name: [-3]}), lake / "old.parquet")
    build(lake, index)
    for path in (lake, index):
        more = options if path is index else ("--confirm",)  # the files have no filters
        assert sbbf(["probe", str(path), "-c", "v", "--value", "-5", *more]) == code
        assert "there is no column" not in capsys.readouterr().err
    opened = {
        Path(row.path).name
        for value in (-5, None, "null")
        for row in run(Probe("v", [value]), index)
    }
    assert {row.path.rpartition("/")[2] for row in run(Probe("v", [-5]), index)} == {
        "000.parquet" if code else "old.parquet"
    }
    assert opened == {path.name for path in lake.iterdir()}
    assert (
        sbbf(["probe", str(index), f"v = -5 AND {name} = -3"]) == code
    )  # excluded files may have the second column
    for old in lake.glob("0*.parquet"):
        old.unlink()
    assert sbbf(["probe", str(index), "v", "--", "-5"]) == 2
    assert "there is no column" in capsys.readouterr().err


def test_files_stay_in_the_index_when_a_folder_cannot_be_listed(
    tmp_path, index, monkeypatch, capsys
):
    for number in range(3):
        write_lake(tmp_path / "lake" / f"day={number}", "int64", 2, seed=number)
    lake = tmp_path / "lake"
    build(lake, index)
    before = (index / "current.json").read_bytes()
    lake.rename(tmp_path / "away")
    assert sbbf(["index", str(index), "--compact"]) == 3
    (tmp_path / "away").rename(lake)
    assert (index / "current.json").read_bytes() == before

    def scandir(path: str) -> Any:
        if str(path).endswith("day=1"):
            raise PermissionError(13, "Permission denied", path)
        return os_scandir(path)

    os_scandir = os.scandir
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        assert sbbf(["index", str(index)]) == 3
    assert (index / "current.json").read_bytes() == before
    assert "day=1" in capsys.readouterr().err
    # The listing is complete, although a file of it cannot be read.
    (lake / "day=0" / "broken.parquet").write_bytes(b"PAR1")
    (lake / "day=1" / "000.parquet").unlink()
    report = update_index(index)
    assert (report.failed_files, report.vanished_files) == (1, 1)


def test_an_index_is_only_read(tmp_path, index):
    lake = write_lake(tmp_path / "lake", "int64", 2)
    build(lake, index)
    with pytest.raises(RefusedError, match="an index is only read"):
        run(RemoveFilter(), index, edit=Edit(in_place=True))
    for paths in ([str(index), str(lake)], [str(lake), str(index)]):
        with pytest.raises(UsageError, match="give it as the only path"):
            list(run(Probe("v", [1]), paths))
        with pytest.raises(UsageError, match="give it as the only path"):
            build_index(paths, "v", tmp_path / "new.sbbfx")
    for function in (prune, probe):
        with pytest.raises(UsageError, match="it is an index") as error:
            function(index, "v", [1])
        assert "run(Probe(...), path)" in str(error.value)
        assert "prune_index" in str(error.value)


def test_engines_read_the_segments(tmp_path, index):
    lake = write_lake(tmp_path / "lake", "string", 14)
    build(lake, index)
    (units,) = index.glob("*.units.parquet")
    (blocks,) = index.glob("*.blocks.parquet")
    table = pq.read_table(units, page_checksum_verification=True)
    assert set(table.column("path").to_pylist()) == {str(path) for path in lake.iterdir()}
    classes = [row for row in table.to_pylist() if row["number"] >= 0]
    stored = pq.read_table(blocks, page_checksum_verification=True).column("block").to_pylist()
    assert len(stored) == sum(row["blocks"] for row in classes)
    assert duckdb.sql(f"SELECT path, row_group, file_bytes, version FROM '{units}'").fetchall() == [
        tuple(row[name] for name in ("path", "row_group", "file_bytes", "version"))
        for row in table.to_pylist()
    ]
    assert [each for (each,) in duckdb.sql(f"SELECT block FROM '{blocks}'").fetchall()] == stored
    # Polars reads no page header that has a field of an unknown number.
    assert pl.read_parquet(units).rows(named=True) == table.to_pylist()
    assert pl.read_parquet(blocks).height == len(stored)
    # Block b of the unit at a position of a class with n units is row b * n + position of its row
    # group.
    with pq.ParquetFile(blocks) as file:
        for number in range(file.num_row_groups):
            of_class = [row for row in classes if row["number"] == number]
            assert file.metadata.row_group(number).num_rows == len(of_class) * of_class[0]["blocks"]


@each("count", [1, 2, 3, 1000, 65_536, 65_537, 150_000])
def test_a_run_is_tested_like_its_blocks(count):
    random = np.random.default_rng(count)
    run_of_blocks = np.bitwise_or(
        random.integers(0, 256, 32 * count, np.uint8), random.integers(0, 256, 32 * count, np.uint8)
    )
    data = memoryview(
        np.bitwise_or(run_of_blocks, random.integers(0, 256, 32 * count, np.uint8)).tobytes()
    )
    h = int(random.integers(0, 1 << 63)) * 2 + 1
    flags = b"".join(find_units(data, h))
    step = max(1, count // 500)
    assert [bool(flags[at]) for at in range(0, count, step)] == [
        check_block(data[32 * at : 32 * at + 32], h) for at in range(0, count, step)
    ]
    assert len(flags) == count


@each("checksum", [0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF])
def test_page_headers_have_one_length(checksum):
    header = build_page_header(3200, 100, checksum)
    page = read_page(lambda offset, length: header[offset : offset + length], 0, len(header))
    assert (page.header_bytes, page.stored, page.values, page.header.crc & 0xFFFF_FFFF) == (
        len(header),
        3200,
        100,
        checksum,
    )
    assert len(header) == len(build_page_header(3200, 100, 0))


def test_a_damaged_index_is_an_error_and_no_answer(tmp_path, index, capsys):
    lake = write_lake(tmp_path / "lake", "int64", 6)
    build(lake, index)
    values = [str(each) for each in values_of(lake, 1)]
    random = np.random.default_rng(0)
    files = sorted(index.iterdir())
    capsys.readouterr()

    def answer() -> tuple[int, list[str]]:
        code = sbbf(
            [
                "probe",
                str(index),
                "-c",
                "v",
                *(part for value in values for part in ("--value", value)),
                "--format",
                "names",
            ]
        )
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert code in (0, 1) or (code, err.count("\n")) == (3, 1), err
        return code, sorted(out.splitlines())

    def update_damaged() -> None:
        for options in ([], ["--compact"], ["--dry-run"]):
            assert sbbf(["index", str(index), *options]) == 3
            out, err = capsys.readouterr()
            assert (out, err.count("\n")) == ("", 1)
            assert "the index is damaged: " in err
            assert f"; remove the folder {index}, then build it again" in err

    right = answer()
    for path in files:
        data = path.read_bytes()
        for at in random.integers(0, len(data), 120):
            damaged = bytearray(data)
            damaged[at] ^= 1 << int(random.integers(0, 8))
            path.write_bytes(damaged)
            # Not all bytes matter for this value: then the answer is the right one.
            assert answer() in (right, (3, []))
        path.write_bytes(data[: len(data) // 2])
        assert answer() == (3, [])
        update_damaged()
        path.unlink()
        assert answer() == (3, [])
        if path.suffix == ".parquet":
            update_damaged()
        path.write_bytes(data)
    assert answer() == right


def test_a_hostile_index_is_an_error(tmp_path, index, capsys):
    """Contents whose checksum is right, but that no index has."""
    lake = write_lake(tmp_path / "lake", "int64", 6)
    build(lake, index)
    current = index / "current.json"
    before = json.loads(current.read_bytes())["index"]
    random = Random(1)
    odd = [
        None,
        -1,
        0,
        1,
        1 << 62,
        1.5,
        "",
        "x",
        "../../etc/passwd",
        [],
        {},
        [1],
        True,
        "BOOLEAN",
        "INT96",
        "e" * 99,
    ]
    places = [*places_of(before)]
    capsys.readouterr()
    for number in range(400):
        place = random.choice(places)
        document = with_value(before, place, random.choice(odd))
        checksum = contents._checksum(document)
        current.write_text(
            json.dumps(
                {"format": "sbbf-index", "version": 1, "checksum": checksum, "index": document}
            )
        )
        for arguments in (
            ["probe", str(index), "v", "1", *(["--quick"] if number % 2 else [])],
            ["index", str(index), "--dry-run"],
        ):
            code = sbbf(arguments)
            err = capsys.readouterr().err
            assert code in (0, 1, 2, 3, 4), (place, err)
            assert code in (0, 1) or err.count("\n") >= 1
            assert "Traceback" not in err


@each("units", [4 * 10**9, 10**12])
def test_stated_units_take_no_memory(units, tmp_path, index, capsys):
    """Ten bytes can state that billions of units are dead."""
    build(write_lake(tmp_path / "lake", "int64", 2), index)
    stated = contents.read(str(index))
    dead = b64encode(zlib.compress(b"\1")).decode()
    segments = tuple(
        replace(each, units=units, units_bytes=units, dead=dead) for each in stated.segments
    )
    (index / "current.json").write_bytes(contents.build(replace(stated, segments=segments)))
    for arguments in (
        ["probe", str(index), "v", "1"],
        ["probe", str(index), "v", "1", "--quick"],
        ["index", str(index)],
    ):
        capsys.readouterr()
        assert sbbf(arguments) == 3
        assert f"and not {units:,}; remove the folder" in capsys.readouterr().err


@each("limit, message", [("UNITS_PER_ROW_GROUP", "units"), ("_MOST_VALUE", "a page is too large")])
def test_row_groups_and_pages_have_a_largest_size(
    limit, message, tmp_path, index, monkeypatch, capsys
):
    """A sparse file of a terabyte can state a row group, or a page, of all its bytes."""
    build(write_lake(tmp_path / "lake", "int64", 20), index)
    monkeypatch.setattr(segment, limit, 1)
    assert sbbf(["index", str(index)]) == 3
    assert message in capsys.readouterr().err


def test_an_index_that_others_can_change(tmp_path, index, capsys):
    build(write_lake(tmp_path / "lake", "int64", 2), index)
    index.chmod(0o777)
    sbbf(["probe", str(index), "v", "1"])
    warning = (
        f"{index}: the index can be changed by every user, who can thus choose the "
        "files that are opened"
    )
    assert warning in capsys.readouterr().err


@needs_root
def test_no_index_is_written_through_a_link_of_another_user(tmp_path, index):
    (tmp_path / "private").mkdir()
    index.symlink_to("private")
    os.chown(index, 12345, 12345, follow_symlinks=False)
    build(write_lake(tmp_path / "lake", "int64", 2), index, code=4)
    assert os.listdir(tmp_path / "private") == []


def test_a_link_in_place_of_a_segment_is_not_followed(tmp_path, index):
    """What an update leaves behind gets another time, but not what a link leads to."""
    lake = write_lake(tmp_path / "lake", "int64", 8)
    build(lake, index)
    for path in index.glob("_segment-*"):
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
        os.utime(tmp_path / path.name, (1, 1))
    change_lake(lake, "int64", 1)
    update_index(str(index), compact=True)
    assert {path.stat().st_mtime for path in tmp_path.glob("_segment-*")} == {1.0}


def test_one_process_updates_an_index(tmp_path, index):
    build(write_lake(tmp_path / "lake", "int64", 2), index)
    with IndexTarget(str(index)) as first, IndexTarget(str(index)) as second:
        first.begin()
        with pytest.raises(ChangedError, match="another process is updating"):
            second.begin()
    with IndexTarget(str(index)) as late:
        late.begin()
        current = index / "current.json"
        data = current.read_bytes()
        current.unlink()
        current.write_bytes(data)
        with pytest.raises(ChangedError, match="another process has updated the index"):
            late.publish(late.before)


@pytest.mark.heavy(minutes=1)
def test_a_segment_of_many_units(tmp_path):
    """More units than a row group of the file of units has, and than are tested at once."""
    random = np.random.default_rng(2)
    column = {"physical": "INT64", "length": 0, "logical": None, "reading": AS_STORED._asdict()}
    values = random.permutation(1 << 18)[:150_000]
    collected, stored = new_segment.Collected(str(tmp_path)), {}
    for number in range(75_000):
        bloom = BloomFilter.empty(64 if number % 15 else 128)
        own = values[2 * number : 2 * number + 2]
        for value in own:
            bloom.insert(int(value).to_bytes(8, "little"))
        bounds = [int(value).to_bytes(8, "little") for value in (own.min(), own.max())]
        unit = FileUnit(
            -1, 2, *(bounds if number % 2 else (None, None)), bytes(bloom.bitset), bloom.fpp
        )
        path = f"/lake/{number}"
        collected.add(
            ListedFile(path, 100, etag="e"),
            FileUnits(path, json.dumps(column, sort_keys=True), 2, (unit,)),
        )
        stored[path] = set(own.tolist())
    entry = new_segment.write_segment(
        str(tmp_path), collected.classes(), collected.files, collected.false_files
    )
    asked = [*values[:100:9].tolist(), *values[-40::7].tolist(), -1]
    index = tmp_path / "lake.sbbfx"
    index.mkdir()
    for path in tmp_path.glob("_segment-*"):
        path.rename(index / path.name)

    def found(current: SegmentEntry, *keys: int) -> set[str]:
        (index / "current.json").write_bytes(
            contents.build(contents.Contents(("/lake",), "v", segments=(current,)))
        )
        return set(LakeIndex(str(index)).find_paths(list(keys)))

    for key in asked:
        paths = found(entry, key)
        assert {path for path, own in stored.items() if key in own} <= paths
        assert len(paths) <= 40
    many = values[:2000].tolist()
    assert found(entry, *many) == set.union(
        *(found(entry, *many[at : at + 50]) for at in range(0, 2000, 50))
    )
    dead = bytes(unit % 3 == 0 for unit in range(entry.units))
    live = found(entry.with_dead(dead), *asked)
    assert found(entry.with_dead(dead), *many) < found(entry, *many)
    merged = new_segment.merge_segments(str(index), [entry.with_dead(dead)])
    assert (merged.units, merged.dead) == (50_000, "")
    assert found(merged, *asked) == live
    assert {kind.blocks: kind.units for kind in merged.classes}.keys() == {2, 4}
