"""Queries of several columns: the rows are those that DuckDB finds, and no row group with such a row is excluded."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UsageError, add_filters, probe, run
from sbbf_tool.cli import main
from sbbf_tool.verbs import Probe
from support.http_site import running
from support.tables import each

RANDOM = random.Random(41)
LIST = "l.list.element"
VALUES: dict[str, Any] = {
    "id": lambda: RANDOM.choice([None, RANDOM.sample(range(60), RANDOM.randint(1, 3))]),
    "device": lambda: RANDOM.choice([None, RANDOM.sample(["a", "b", "null", "zz", "d1"], 2)]),
    "x": lambda: RANDOM.choice([None, [0.0], [float("nan")], [1.5, 2.0]]),
    LIST: lambda: RANDOM.sample(range(11), RANDOM.randint(1, 2)),
    "flag": lambda: [RANDOM.random() < 0.5],
}
"""Values of a part of a condition, by column; None is IS NULL."""


def rows_of(count: int) -> pa.Table:
    def draw(*choices: Any) -> list[Any]:
        return [(each := RANDOM.choice(choices)) and each() for _ in range(count)]

    return pa.table(
        {
            "id": draw(None, lambda: RANDOM.randint(0, 50)),
            "device": draw(None, lambda: "a", lambda: "null", lambda: f"d{RANDOM.randint(0, 40)}"),
            "x": pa.array(draw(None, lambda: 0.0, lambda: -0.0, lambda: float("nan"), lambda: RANDOM.randint(0, 9) / 2), pa.float64()),
            "l": pa.array(draw(None, list, lambda: [RANDOM.randint(0, 9), None, RANDOM.randint(0, 9)]), pa.list_(pa.int32())),
            "flag": draw(lambda: True, lambda: False),
        }
    )


def literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) or value != value else str(value)


def condition(column: str, values: list[Any] | None, *, is_sql: bool = False) -> str:
    if values is None:
        return f"{column} IS NULL"
    if is_sql and column == LIST:
        return f"list_has_any(l, {values})"
    return f"{column} IN ({', '.join(map(literal, values))})"


@each("filtered", [(), ("id", "device"), ("x", LIST)])
@each("row_group_size", [50, 5000])
def test_rows_are_those_of_duckdb(tmp_path: Path, filtered: tuple[str, ...], row_group_size: int) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(rows_of(3000), path, row_group_size=row_group_size, use_dictionary=RANDOM.random() < 0.5)
    if filtered:
        add_filters(path, filtered, in_place=True)
    connection = duckdb.connect()
    # Not queried in the file, of which DuckDB skips row groups that have NaN.
    connection.execute(f"create table rows as select * from read_parquet('{path}', file_row_number = true)")
    for _ in range(8):
        parts = [(column, VALUES[column]()) for column in RANDOM.choices([*VALUES], k=RANDOM.randint(2, 3))]
        where = " and ".join(condition(*part, is_sql=True) for part in parts)
        expected = [row for (row,) in connection.execute(f"select file_row_number from rows where {where} order by all").fetchall()]
        (column, values), *also = [(column, [None] if values is None else values) for column, values in parts]
        report = probe(path, column, values, rows=True, also=also)
        assert sorted({row.row for row in report.rows}) == expected, where
        assert (report.inconclusive, report.is_absent) == ((), not expected)
        may_be = probe(path, column, values, also=" AND ".join(condition(*part) for part in parts[1:]))
        groups = {number for hits in (may_be.hits, may_be.inconclusive) for hit in hits for number in hit.row_groups}
        assert groups >= {row.row_group for row in report.rows}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two days; users 3 and 13 are there on the second alone, and its file has no devices."""
    monkeypatch.chdir(tmp_path)
    for day, table in enumerate([{"user": range(3), "device": ["a", "b", None]}, {"user": [3, 13, 13]}]):
        Path(f"lake/day={day}").mkdir(parents=True)
        pq.write_table(pa.table(table), f"lake/day={day}/a.parquet")


def test_rows_of_a_partition_are_certain(lake: None, capfd: pytest.CaptureFixture[str]) -> None:
    lines = ["file,row_group,row,value,column", *(f"lake/day=1/a.parquet,0,{row},13,user" for row in (1, 2))]
    for text in ("day = 1 and user = 13", "user = 13 and day = 1"):
        assert main(["probe", "lake", text, "--rows", "--format", "csv"]) == 0
        assert capfd.readouterr().out.splitlines() == lines
    assert main(["probe", "lake", "user = 13 and day = '1.0'", "--confirm"]) == 0
    assert "cannot say: column day: the folder states day=1" in capfd.readouterr().out
    rows = run(Probe("user", [13], confirm=True, also={"day": 1}), "lake")
    assert [[hit.count for hit in row.report.hits] for row in rows if row.report] == [[], [2]]


def test_python_takes_a_condition_or_values_by_column(lake: None) -> None:
    path = "lake/day=0/a.parquet"
    by_text, by_column = (probe(path, "user", [0, 1], confirm=True, also=also) for also in ("device = 'b'", {"device": "b"}))
    assert by_text == by_column
    assert [(hit.value, hit.count) for hit in by_text.hits] == [("1", 1)]
    assert {each.name for each in by_text.named_columns} == {"user", "device"}
    verb = Probe("user", 1, also="device = 'b' and device = 'c'")
    assert (verb == Probe("user", 1, also=verb.also), verb(path).is_absent) == (True, True)
    for wrong in (5, "device", [("a", "b", "c")], {5: 1}):
        with pytest.raises(UsageError):
            Probe("user", 1, also=wrong)


KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "int": (pa.int64(), lambda: RANDOM.randint(0, 30)),
    "short": (pa.int8(), lambda: RANDOM.randint(0, 30)),
    "float": (pa.float64(), lambda: RANDOM.randint(0, 60) / 2),
    "decimal": (pa.decimal128(9, 2), lambda: Decimal(RANDOM.randint(0, 30))),
    "text": (pa.string(), lambda: str(RANDOM.randint(0, 40))),
    "bytes": (pa.binary(), lambda: str(RANDOM.randint(0, 40)).encode()),
    "day": (pa.date32(), lambda: dt.date(2026, 1, RANDOM.randint(1, 31))),
    "flag": (pa.bool_(), lambda: RANDOM.random() < 0.5),
    "list": (pa.list_(pa.int32()), lambda: [RANDOM.randint(0, 30) for _ in range(RANDOM.randint(0, 3))]),
}


def is_same(stored: Any, key: str) -> bool:
    if isinstance(stored, list):
        return any(is_same(each, key) for each in stored)
    if isinstance(stored, bytes | str):
        return key == (stored if isinstance(stored, str) else stored.decode())
    if isinstance(stored, bool | dt.date):
        return str(stored).lower() == key
    return stored is not None and key.replace(".", "").isdigit() and stored == Decimal(key)


@each("filtered", [(), ("int", "text"), ("list.list.element", "decimal", "day")])
@each("statistics", [True, False])
def test_every_column_that_can_hold_the_key(tmp_path: Path, filtered: tuple[str, ...], statistics: bool) -> None:
    path = tmp_path / "a.parquet"
    stored = {name: [None if RANDOM.random() < 0.1 else draw() for _ in range(300)] for name, (_, draw) in KINDS.items()}
    table = pa.table({name: pa.array(stored[name], kind) for name, (kind, _) in KINDS.items()})
    pq.write_table(table, path, row_group_size=70, write_statistics=statistics)
    if filtered:
        add_filters(path, filtered, in_place=True)
    for key in ("7", "30", "12.5", "200", "2026-01-09", "true", "nothing"):
        report = probe(path, None, key, rows=True)
        expected = {(name, row) for name, values in stored.items() for row, value in enumerate(values) if is_same(value, key)}
        assert {(row.column.split(".")[0], row.row) for row in report.rows} == expected
        assert (report.inconclusive, report.unfit, report.is_absent) == ((), (), not expected)
        may_be = probe(path, None, key)
        groups = {(each.column, number) for hits in (may_be.hits, may_be.inconclusive) for each in hits for number in each.row_groups}
        assert groups >= {(hit.column, number) for hit in report.hits for number in hit.row_groups}


def test_every_column_of_a_lake(lake: None, capfd: pytest.CaptureFixture[str]) -> None:
    def call(*words: str) -> tuple[int, list[str], str]:
        code = main(["probe", "lake", *words])
        out, err = capfd.readouterr()
        return code, out.splitlines(), err

    assert call("*", "1", "--confirm") == (
        0,
        [
            "lake/day=0/a.parquet: user: 1: row group 0 (1 row)",
            "lake/day=1/a.parquet: day: 1: row group 0 (maybe: the folder states day=1)",
            "Queried 1 value in 2 files: 1 file holds 1 of the values; 1 file may hold some of them, which reading does not show",
        ],
        "",
    )
    assert call("*", "b", "--format", "names")[:2] == (0, ["lake/day=0/a.parquet"])
    code, lines, _ = call("-c", "*", "--value", "13", "--rows", "--format", "csv")
    assert (code, lines[1:]) == (0, ["lake/day=1/a.parquet,0,1,13,user", "lake/day=1/a.parquet,0,2,13,user"])
    assert call("*", "--filters-only", "b")[1][0] == "any of the values: 1 file has no filter for some columns"
    code, _, err = call("*", "b", "--where", "day = 1")
    assert (code, "no column can hold the value" in err) == (1, False), "the folder's column may be text"
    for words in (["*"], ["-c", "*"]):
        assert call(*words)[0] == 2


def test_a_key_that_no_column_can_hold(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"x": [1], "flag": [True]}), tmp_path / "a.parquet")
    assert main(["probe", str(tmp_path), "*", "key"]) == 2
    assert "no column can hold the value" in capfd.readouterr().err
    with pytest.raises(UsageError):
        Probe(None, range(1001))


def test_filters_of_all_columns_are_fetched_concurrently(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({f"c{at}": [RANDOM.randint(0, 10**9) for _ in range(4000)] for at in range(20)}), path, row_group_size=1000)
    add_filters(path, [f"c{at}" for at in range(20)], in_place=True)
    with running() as site:
        report = probe(site.put("a.parquet", path.read_bytes()), None, "123456789")
        assert (report.requests, len(report.hits)) == (len(site.requests), 0)
        assert report.requests < 8
