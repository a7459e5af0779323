"""`probe --confirm`: what is present is there, row by row, as DuckDB and pyarrow read it; what may be there without it is never less."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, probe
from sbbf_tool.cli import main
from support.tables import each

RANDOM = random.Random(40)
ROWS = 3000
NEW_YEAR = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DRAWS: dict[str, tuple[pa.DataType, Any]] = {
    "int8": (pa.int8(), lambda: RANDOM.randint(-128, 127)),
    "uint32": (pa.uint32(), lambda: RANDOM.randint(0, 4000) * 1_000_003),
    "int64": (pa.int64(), lambda: RANDOM.randint(-(1 << 40), 1 << 40) if RANDOM.random() < 0.5 else RANDOM.randint(0, 99)),
    "float": (pa.float32(), lambda: RANDOM.choice([0.0, -0.0, float("nan"), 0.1, 1e30, RANDOM.random()])),
    "double": (pa.float64(), lambda: RANDOM.choice([0.0, -0.0, float("nan"), 0.1, -1e300, RANDOM.random()])),
    "decimal": (pa.decimal128(20, 2), lambda: Decimal(RANDOM.randint(-5000, 5000)).scaleb(-2)),
    "text": (pa.string(), lambda: RANDOM.choice(["", "null", "a", "ß", f"user-{RANDOM.randint(0, 4000):05}"])),
    "bytes": (pa.binary(), lambda: RANDOM.randbytes(RANDOM.randint(0, 2))),
    "fixed": (pa.binary(3), lambda: RANDOM.randbytes(1) + b"ab"),
    "date": (pa.date32(), lambda: dt.date(2026, 1, 1) + dt.timedelta(days=RANDOM.randint(-900, 900))),
    "time": (pa.time64("us"), lambda: dt.time(RANDOM.randint(0, 23), RANDOM.randint(0, 59))),
    "instant": (
        pa.timestamp("us", "UTC"),
        lambda: NEW_YEAR + dt.timedelta(minutes=RANDOM.randint(0, 5000)),
    ),
    "bool": (pa.bool_(), lambda: RANDOM.random() < 0.5),
    "list": (pa.list_(pa.int32()), lambda: [RANDOM.randint(0, 3000) for _ in range(RANDOM.randint(0, 3))]),
}
WRITERS: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False, "data_page_size": 2000, "data_page_version": "2.0"},
    "delta": {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"},
    "no statistics": {"write_statistics": False, "compression": "zstd"},
}


def write(path: Path, name: str, values: list[Any], options: dict[str, Any]) -> str:
    kind = DRAWS[name][0]
    if "column_encoding" in options and not (pa.types.is_integer(kind) and kind.bit_width >= 32):
        options = {"use_dictionary": False}
    pq.write_table(pa.table({"x": pa.array(values, kind)}), path, row_group_size=1100, **options)
    return "x.list.element" if pa.types.is_nested(kind) else "x"


def same(first: Any, second: Any) -> bool:
    return first == second or (first != first and second != second)


def expected_rows(values: list[Any], asked: Any) -> list[int]:
    return [at for at, value in enumerate(values) if any(same(each, asked) for each in (value if isinstance(value, list) else [value]))]


@each("name", list(DRAWS))
@each("writer", list(WRITERS))
@each("filtered", [False, True])
def test_rows_are_those_of_a_search_through_all_values(tmp_path: Path, name: str, writer: str, filtered: bool) -> None:
    draw = DRAWS[name][1]
    # In the precision of the column: to ask for 0.1 in a FLOAT is to ask for its nearest FLOAT.
    values = pa.array([None if RANDOM.random() < 0.05 else draw() for _ in range(ROWS)], DRAWS[name][0]).to_pylist()
    path = tmp_path / "a.parquet"
    column = write(path, name, values, WRITERS[writer])
    if filtered and name != "bool":
        add_filters(path, [column], in_place=True)
    stored = [item for value in values[:60] for item in (value if isinstance(value, list) else [value]) if item is not None]
    absent = pa.array([draw() for _ in range(20)], DRAWS[name][0]).to_pylist()
    asked = [*dict.fromkeys(value for value in [*stored[:20], *absent] if not isinstance(value, list) and value == value)]
    if name in ("float", "double"):
        asked.append(float("nan"))
    if name != "list":
        asked.append(None)
    report = probe(path, column, asked, rows=True)
    assert report.inconclusive == ()
    rows = {at: expected_rows(values, value) for at, value in enumerate(asked)}
    assert Counter(row.row for row in report.rows) == Counter(row for found in rows.values() for row in found)
    assert {hit.position: hit.count for hit in report.hits} == {at: len(found) for at, found in rows.items() if found}
    may_be = probe(path, column, asked)
    groups = {hit.position: hit.row_groups for hit in report.hits}
    for position, answer in enumerate(may_be.values):
        assert {each.row_group for each in answer.row_groups if not each.is_absent} >= set(groups.get(position, ()))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of two writers, some with filters: ids that repeat, and statistics that exclude half of them."""
    folder = tmp_path_factory.mktemp("confirm") / "lake"
    folder.mkdir()
    connection = duckdb.connect()
    for number in range(8):
        ids = [RANDOM.randint(0, 20_000) + number * 10_000 for _ in range(2000)]
        rows = pa.table({"user_id": ids, "device": [f"d{each % 7}" for each in ids]})
        path = folder / f"{number}.parquet"
        if number % 2:
            pq.write_table(rows, path, row_group_size=700)
        else:
            connection.execute(f"copy (select * from rows) to '{path}' (format parquet, row_group_size 2048)")
        if number % 3:
            add_filters(path, ["user_id"], in_place=True)
    return folder


def test_names_rows_and_answers_are_those_of_duckdb(lake: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{RANDOM.randint(-5000, 120_000)}\n" for _ in range(5000)))
    files, sought = f"read_parquet('{lake}/*.parquet', filename = true, file_row_number = true)", f"read_csv('{keys}', header = false)"
    sql = f"select filename, file_row_number, user_id from {files} where user_id in (select column0 from {sought}) order by all"
    expected = duckdb.sql(sql).fetchall()
    command = ["probe", str(lake), "-c", "user_id", "--values-file", str(keys)]
    assert main([*command, "--confirm", "--names"]) == 0
    assert capfdbinary.readouterr().out.decode().splitlines() == sorted({name for name, *_ in expected})
    assert main([*command, "--names", "-0"]) == 0
    names = capfdbinary.readouterr().out.decode().split("\0")
    assert {*names} >= {name for name, *_ in expected} | {""}
    out = tmp_path / "rows.parquet"
    assert main([*command, "--rows", "--report", str(out), "-q"]) == 0
    rows = duckdb.sql(f"select distinct file, row, value::bigint from '{out}' order by all").fetchall()
    assert rows == expected
    assert main([*command[:4], "--value", "-1", "--value", "999999", "--confirm"]) == 1
    assert b"none of them" in capfdbinary.readouterr().out


def test_a_name_with_a_line_break_is_printed_only_with_nul(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "a\nb.parquet"
    pq.write_table(pa.table({"x": [1, 2]}), path)
    assert main(["probe", str(path), "x", "1", "--names"]) == 2
    captured = capfdbinary.readouterr()
    assert (captured.out, b"line break" in captured.err) == (b"", True)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "c.parquet")
    assert main(["probe", str(tmp_path), "x", "1", "--names"]) == 2
    assert capfdbinary.readouterr().out == bytes(tmp_path / "c.parquet") + b"\n"
    assert main(["probe", str(path), "x", "1", "--names", "-0"]) == 0
    assert capfdbinary.readouterr().out == bytes(path) + b"\0"


@each("option", ["--rows", "--format=json"])
def test_names_are_the_whole_output(lake: Path, capfd: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["probe", str(lake), "user_id", "1", "--names", option]) == 2
    assert "--names" in capfd.readouterr().err


def test_explain_takes_a_condition(lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each means is asked for the values that the means before it leave."""
    path = str(lake / "1.parquet")
    stored = pq.read_table(path, columns=["user_id"])["user_id"].to_pylist()
    absent = next(value for value in range(min(stored) + 1, max(stored)) if probe(path, "user_id", value).is_absent)
    for values, code in (([-1, 10**9], 1), ([absent, 10**9], 1), ([absent, stored[0]], 0)):
        condition = f"user_id in ({values[0]}, {values[1]})"
        assert main(["explain", path, condition]) == code
        by_condition = capfd.readouterr().out
        assert main(["explain", path, "-c", "user_id", f"--value={values[0]}", f"--value={values[1]}"]) == code
        assert capfd.readouterr().out == by_condition
    assert "dictionary" in by_condition


def test_what_reading_does_not_show_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Instants of an unknown writer may be stored in other forms, and a null in a list is no row."""
    path = tmp_path / "a.parquet"
    rows = pa.table({"t": pa.array([NEW_YEAR.replace(tzinfo=None)], pa.timestamp("us")), "l": [[1, None, 1]]})
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    for column, value in (("t", "2021-01-01"), ("l.list.element", "null")):
        assert main(["probe", str(path), column, value, "--confirm"]) == 0
        out = capfd.readouterr().out
        assert "cannot say" in out
        assert "1 file may hold some of them, which reading does not show" in out
        assert main(["probe", str(path), column, value, "--rows"]) == 0
        assert "cannot say" in capfd.readouterr().out
        assert main(["probe", str(tmp_path), column, value, "--confirm", "--names"]) == 0
        captured = capfd.readouterr()
        assert (captured.out, "reading does not show" in captured.err) == (f"{path}\n", True)
        assert main(["probe", str(tmp_path), column, value, "--confirm"]) == 0
        assert "1 file may hold some of them, which reading does not show" in capfd.readouterr().out
    assert [(row.row, row.value) for row in probe(path, "l.list.element", 1, rows=True).rows] == [(0, "1")]
