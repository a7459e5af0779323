"""Conditions on several columns: the rows are those that DuckDB finds, and no row group with such a row is excluded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import Probe, UsageError, add_filters, probe, run
from sbbf_tool.cli import main
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
@each("row_group_size", [50, 700, 5000])
def test_rows_are_those_of_duckdb(tmp_path: Path, filtered: tuple[str, ...], row_group_size: int) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(rows_of(3000), path, row_group_size=row_group_size, use_dictionary=RANDOM.random() < 0.5)
    if filtered:
        add_filters(path, filtered, in_place=True)
    connection = duckdb.connect()
    # Not queried in the file, of which DuckDB skips row groups that have NaN.
    connection.execute(f"create table rows as select * from read_parquet('{path}', file_row_number = true)")
    for _ in range(12):
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


@each(
    "text, names",
    [
        ("user = 1 and device = 'b'", "0"),
        ("user = 1 AND device = 'a'", ""),
        ("user in (1, 13) and day = 1", "1"),
        ("day = 1 and user in (1, 2)", ""),
        ("day = 0 and device is null", "0"),
        ("device is null", "01"),
        ("user = 13 and device is null", "1"),
        ("user = 13 and device = 'a'", ""),
    ],
)
def test_columns_that_some_files_lack(lake: None, capfd: pytest.CaptureFixture[str], text: str, names: str) -> None:
    assert main(["probe", "lake", text, "--confirm", "--names"]) == (0 if names else 1)
    assert capfd.readouterr().out == "".join(f"lake/day={day}/a.parquet\n" for day in names)


def test_rows_of_a_partition_are_certain(lake: None, capfd: pytest.CaptureFixture[str]) -> None:
    lines = ["file,row_group,row,value", *(f"lake/day=1/a.parquet,0,{row},13" for row in (1, 2))]
    for text in ("day = 1 and user = 13", "user = 13 and day = 1"):
        assert main(["probe", "lake", text, "--rows", "--format", "csv"]) == 0
        assert capfd.readouterr().out.splitlines() == lines
    assert main(["probe", "lake", "user = 13 and day = '1.0'", "--confirm"]) == 0
    assert "cannot say: column day: the folder states day=1" in capfd.readouterr().out
    rows = run(Probe("user", [13], confirm=True, also={"day": 1}), "lake")
    assert [[hit.count for hit in row.report.hits] for row in rows if row.report] == [[], [2]]


@each(
    "text, message",
    [
        ("user = 1 and colour = 'x'", "no file has the column"),
        ("user = 1 and device = 'x' or day = 1", "at 'or'"),
        ("user > 1", "at '>'"),
        ("user = 1 and device is not null", "at 'not'"),
        ("user = 'x' and day = 0", "is not a value of INT64"),
        ("user = null", "no value equals NULL"),
    ],
)
def test_wrong_conditions(lake: None, capfd: pytest.CaptureFixture[str], text: str, message: str) -> None:
    assert main(["probe", "lake", text]) == 2
    assert message in capfd.readouterr().err


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
