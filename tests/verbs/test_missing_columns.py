"""A file of many that lacks the column of a request: answered for where that is certain, and
otherwise left out, not an error.

Queries of several columns: the rows are those that DuckDB finds, and no row group with such a row
is excluded.
"""

from __future__ import annotations

import datetime
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
from sbbf_tool.errors import NoColumnError
from sbbf_tool.verbs import Probe
from sbbf_tool.verbs.explain import explain
from support.http_site import running
from support.tables import each

ABSENT, MAYBE, CANNOT_SAY = "absent", "maybe", "cannot say"


def write(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"id": range(100)}), path, row_group_size=50)
    return path


def answers(path: object, column: str, values: list[object]) -> list[str]:
    """Return the answers of `probe`, after comparing them with those of `explain`."""
    report = probe(path, column, values, strict=False)
    answer_sets = [{answer.answer for answer in value.row_groups} for value in report.values]
    assert all(len(each) == 1 for each in answer_sets)
    for value, (answer,) in zip(values, answer_sets, strict=True):
        explanation = explain(path, column, value, strict=False)
        assert explanation.absent == (answer == ABSENT)
    return [answer for (answer,) in answer_sets]


class TestAnswers:
    def test_a_column_that_the_file_lacks_is_absent(self, tmp_path: Path):
        path = write(tmp_path / "a.parquet")
        assert answers(path, "user_id", ["5", 5, b"x", 1.5]) == [ABSENT] * 4
        (column,) = probe(path, "user_id", ["5"], strict=False).named_columns
        assert (column.name, column.type) == ("user_id", None)
        for verb in (probe, explain):
            with pytest.raises(NoColumnError, match="there is no column 'user_id'"):
                verb(path, "user_id", "5")

    def test_null_may_be_there(self, tmp_path: Path):
        assert answers(write(tmp_path / "a.parquet"), "user_id", [None, "null", "5"]) == [
            MAYBE,
            MAYBE,
            ABSENT,
        ]

    @each("name", ["user_id", "USER_ID", "`User_Id`"])
    def test_a_column_that_differs_by_case_may_hold_the_value(self, tmp_path: Path, name: str):
        assert answers(
            write(tmp_path / "a.parquet", User_ID=range(100)),
            name.replace("`User_Id`", "`User_id`"),
            ["500"],
        ) == [CANNOT_SAY]

    @each(
        "name, answer",
        {
            "tags.list.element": ABSENT,
            "tags.bag.array_element": ABSENT,
            "tags.array": ABSENT,
            "tags.element": CANNOT_SAY,
            "TAGS.list.element": CANNOT_SAY,
        }.items(),
    )
    def test_another_form_of_the_same_list_may_hold_the_value(
        self, tmp_path: Path, name: str, answer: str
    ):
        tags = pa.array([["a", "b"]] * 100, pa.list_(pa.field("item", pa.string())))
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"tags": tags}), path, use_compliant_nested_type=False)
        assert answers(path, name, ["z"]) == [answer]
        assert answers(path, name, ["a"]) != [ABSENT]

    def test_a_table_may_give_a_value(self, tmp_path: Path):
        (tmp_path / "orders" / "_delta_log").mkdir(parents=True)
        (tmp_path / "orders" / "_delta_log" / f"{0:020}.json").write_text("{}\n")
        path = write(tmp_path / "orders" / "part" / "a.parquet")
        assert answers(path, "user_id", ["5"]) == [CANNOT_SAY]


class TestPartitions:
    @each(
        "partition, value, answer",
        [
            ("2026-01-31", "2026-01-31", MAYBE),
            ("2026-01-31", datetime.date(2026, 1, 31), MAYBE),
            ("2026-01-31", "2026-02-01", ABSENT),
            ("2026-01-31", "2026-01-31 00:00:00", MAYBE),
            ("7", 7, MAYBE),
            ("07", "7", MAYBE),
            ("7.0", Decimal(7), MAYBE),
            ("7", 8, ABSENT),
            ("7", None, ABSENT),
            ("", None, MAYBE),
            ("eu", "eu", MAYBE),
            ("eu", "us", ABSENT),
            ("eu", "EU", MAYBE),
            ("true", True, MAYBE),
            ("true", False, ABSENT),
            ("0.1", "0.10000000149", MAYBE),
            ("0.1", Decimal("0.2"), ABSENT),
            ("nan", float("inf"), MAYBE),
            ("5", "1e9999999", MAYBE),
            ("2026-01-01 00:00:00", "2026-01-01T01:00:00+01:00", MAYBE),
            ("a%2Fb", "a/b", MAYBE),
            ("eu", b"eu", MAYBE),
            ("__HIVE_DEFAULT_PARTITION__", None, MAYBE),
            ("__HIVE_DEFAULT_PARTITION__", "null", MAYBE),
            ("__HIVE_DEFAULT_PARTITION__", "eu", ABSENT),
        ],
    )
    def test_the_value_of_the_partition_answers(
        self, tmp_path: Path, partition: str, value: object, answer: str
    ):
        path = write(tmp_path / f"part={partition}" / "a.parquet")
        assert answers(path, "part", [value]) == [answer]
        assert probe(path, "part", [value], strict=False).named_columns[0].type == "partition"

    def test_the_column_of_the_file_comes_first(self, tmp_path: Path):
        path = write(tmp_path / "id=5" / "a.parquet")
        add_filters(path, "id", in_place=True)
        assert answers(path, "id", [6000]) == [ABSENT]


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
            "x": pa.array(
                draw(
                    None,
                    lambda: 0.0,
                    lambda: -0.0,
                    lambda: float("nan"),
                    lambda: RANDOM.randint(0, 9) / 2,
                ),
                pa.float64(),
            ),
            "l": pa.array(
                draw(None, list, lambda: [RANDOM.randint(0, 9), None, RANDOM.randint(0, 9)]),
                pa.list_(pa.int32()),
            ),
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
@each("row_group_size", [50], heavy=[5000])
def test_rows_are_those_of_duckdb(
    tmp_path: Path, filtered: tuple[str, ...], row_group_size: int
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        rows_of(3000), path, row_group_size=row_group_size, use_dictionary=RANDOM.random() < 0.5
    )
    if filtered:
        add_filters(path, filtered, in_place=True)
    connection = duckdb.connect()
    # Not queried in the file, of which DuckDB skips row groups that have NaN.
    connection.execute(
        f"create table rows as select * from read_parquet('{path}', file_row_number = true)"
    )
    for _ in range(8):
        parts = [
            (column, VALUES[column]())
            for column in RANDOM.choices([*VALUES], k=RANDOM.randint(2, 3))
        ]
        where = " and ".join(condition(*part, is_sql=True) for part in parts)
        expected = [
            row
            for (row,) in connection.execute(
                f"select file_row_number from rows where {where} order by all"
            ).fetchall()
        ]
        (column, values), *also = [
            (column, [None] if values is None else values) for column, values in parts
        ]
        report = probe(path, column, values, rows=True, also=also)
        assert sorted({row.row for row in report.rows}) == expected, where
        assert (report.inconclusive, report.is_absent) == ((), not expected)
        may_be = probe(
            path, column, values, also=" AND ".join(condition(*part) for part in parts[1:])
        )
        groups = {
            number
            for hits in (may_be.hits, may_be.inconclusive)
            for hit in hits
            for number in hit.row_groups
        }
        assert groups >= {row.row_group for row in report.rows}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two days; users 3 and 13 are there on the second alone, and its file has no devices."""
    monkeypatch.chdir(tmp_path)
    for day, table in enumerate(
        [{"user": range(3), "device": ["a", "b", None]}, {"user": [3, 13, 13]}]
    ):
        Path(f"lake/day={day}").mkdir(parents=True)
        pq.write_table(pa.table(table), f"lake/day={day}/a.parquet")


def test_rows_of_a_partition_are_certain(lake: None, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [
        "file,row_group,row,value,column",
        *(f"lake/day=1/a.parquet,0,{row},13,user" for row in (1, 2)),
    ]
    for text in ("day = 1 and user = 13", "user = 13 and day = 1"):
        assert main(["probe", "lake", text, "--rows", "--format", "csv"]) == 0
        assert capfd.readouterr().out.splitlines() == lines
    assert main(["probe", "lake", "user = 13 and day = '1.0'", "--confirm"]) == 0
    assert "cannot say: column day: the folder states day=1" in capfd.readouterr().out
    rows = run(Probe("user", [13], confirm=True, also={"day": 1}), "lake")
    assert [[hit.count for hit in row.report.hits] for row in rows if row.report] == [[], [2]]


def test_python_takes_a_condition_or_values_by_column(lake: None) -> None:
    path = "lake/day=0/a.parquet"
    by_text, by_column = (
        probe(path, "user", [0, 1], confirm=True, also=also)
        for also in ("device = 'b'", {"device": "b"})
    )
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
    "list": (
        pa.list_(pa.int32()),
        lambda: [RANDOM.randint(0, 30) for _ in range(RANDOM.randint(0, 3))],
    ),
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
def test_every_column_that_can_hold_the_key(
    tmp_path: Path, filtered: tuple[str, ...], statistics: bool
) -> None:
    path = tmp_path / "a.parquet"
    stored = {
        name: [None if RANDOM.random() < 0.1 else draw() for _ in range(300)]
        for name, (_, draw) in KINDS.items()
    }
    table = pa.table({name: pa.array(stored[name], kind) for name, (kind, _) in KINDS.items()})
    pq.write_table(table, path, row_group_size=70, write_statistics=statistics)
    if filtered:
        add_filters(path, filtered, in_place=True)
    for key in ("7", "30", "12.5", "200", "2026-01-09", "true", "nothing"):
        report = probe(path, None, key, rows=True)
        expected = {
            (name, row)
            for name, values in stored.items()
            for row, value in enumerate(values)
            if is_same(value, key)
        }
        assert {(row.column.split(".")[0], row.row) for row in report.rows} == expected
        assert (report.inconclusive, report.unfit, report.is_absent) == ((), (), not expected)
        may_be = probe(path, None, key)
        groups = {
            (each.column, number)
            for hits in (may_be.hits, may_be.inconclusive)
            for each in hits
            for number in each.row_groups
        }
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
            "lake/day=1/a.parquet: day: 1: row group 0 (3 rows)",
            "Queried 1 value in 2 files: 2 files hold 1 of the values",
        ],
        "",
    )
    assert call("*", "b", "--format", "names")[:2] == (0, ["lake/day=0/a.parquet"])
    code, lines, _ = call("-c", "*", "--value", "13", "--rows", "--format", "csv")
    assert (code, lines[1:]) == (
        0,
        ["lake/day=1/a.parquet,0,1,13,user", "lake/day=1/a.parquet,0,2,13,user"],
    )
    assert (
        call("*", "--filters-only", "b")[1][0]
        == "any of the values: 1 file has no filter for some columns"
    )
    code, _, err = call("*", "b", "--where", "day = 1")
    assert (code, "no column can hold the value" in err) == (1, False), (
        "the folder's column may be text"
    )
    for words in (["*"], ["-c", "*"]):
        assert call(*words)[0] == 2


ROWS_OF_A_LAKE: dict[str, tuple[list[tuple[str, int]], bool]] = {
    # Condition, the rows that satisfy it, and whether there may be others.
    "day = '2026-01-01'": ([("1", row) for row in range(5)], False),
    "day = '2026-01-01' AND x = 3": ([("1", 3)], False),
    "day IN ('2026-01-01', '2026-01-02')": (
        [(day, row) for day in "12" for row in range(5)],
        False,
    ),
    "day = '2026-01-01' AND b = '07'": ([("1", row) for row in range(5)], False),
    "day = '2026-01-02' AND b = '07'": ([], True),
    "b = '7'": ([("2", row) for row in range(5)], True),
    "y IS NULL": ([("2", row) for row in range(5)], False),
    "y IS NULL AND x = 4": ([("2", 4)], False),
    "day = '2026-01-03'": ([], False),
}


@each("condition", list(ROWS_OF_A_LAKE))
def test_rows_that_a_folder_makes_certain(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], condition: str
) -> None:
    columns = {"1": {"x": range(5), "y": range(5)}, "2": {"x": range(5)}}
    for day, bucket in (("1", "07"), ("2", "7")):
        path = tmp_path / f"day=2026-01-0{day}" / f"b={bucket}" / "a.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(columns[day]), path, row_group_size=2)
    expected, is_unsure = ROWS_OF_A_LAKE[condition]
    code = main(["probe", str(tmp_path), condition, "--rows", "--format", "csv"])
    out, err = capfd.readouterr()
    rows = [line.split(",") for line in out.splitlines()[1:]]
    found = [(name.partition("day=2026-01-0")[2][0], int(row)) for name, _, row, *_ in rows]
    assert found == expected
    assert [int(group) for _, group, *_ in rows] == [row // 2 for _, row in found]
    assert code == int(not expected and not is_unsure)
    assert ("reading does not show" in err) == is_unsure
    condition, _, also = condition.partition(" AND ")
    values = [None] if "NULL" in condition else condition.split("'")[1::2]
    verb = Probe(condition.split()[0], values, rows=True, also=also or ())
    for workers in (1, 2):
        reports = [row.report for row in run(verb, tmp_path, jobs=workers)]
        assert sum(len(report.rows) for report in reports if report is not None) == len(expected)


def test_a_key_that_no_column_can_hold(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"x": [1], "flag": [True]}), tmp_path / "a.parquet")
    assert main(["probe", str(tmp_path), "*", "key"]) == 2
    assert "no column can hold the value" in capfd.readouterr().err
    with pytest.raises(UsageError):
        Probe(None, range(1001))


def test_filters_of_all_columns_are_fetched_concurrently(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({f"c{at}": [RANDOM.randint(0, 10**9) for _ in range(4000)] for at in range(20)}),
        path,
        row_group_size=1000,
    )
    add_filters(path, [f"c{at}" for at in range(20)], in_place=True)
    with running() as site:
        report = probe(site.put("a.parquet", path.read_bytes()), None, "123456789")
        assert (report.requests, len(report.hits)) == (len(site.requests), 0)
        assert report.requests < 8
