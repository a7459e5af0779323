"""Conditions of any form, against a full scan of DuckDB over the same rows in memory: no row group
is excluded that has a row, and the listed rows are those of the scan."""

from __future__ import annotations

import pickle
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, run
from sbbf_tool.cli import run as run_command
from sbbf_tool.errors import UsageError
from sbbf_tool.verbs import Probe
from sbbf_tool.verbs.explain import Explain
from support.tables import each

FIXTURES = Path(__file__).parents[2] / "fixtures"
FEW = 400
MANY = 20_000
ROWS = 60


class Kind(NamedTuple):
    """A type, its values, and how they are written in SQL."""

    type: pa.DataType
    values: list[Any]
    write: Callable[[Any], str]


def quoted(value: object) -> str:
    text = str(value).replace("'", "''")
    return f"'{text}'"


FIRST_DAY = date(2026, 1, 1)
FIRST_INSTANT = datetime(2026, 1, 1, 12, 30)
NAN = float("nan")
TEXTS = ["", "a", "ab", "b", "it's", "z" * 70, "ä", "Z"]
KINDS = {
    "i8": Kind(pa.int8(), [-128, -1, 0, 1, 5, 127], str),
    "i32": Kind(pa.int32(), [-(2**31), -3, 0, 7, 2**31 - 1], str),
    "i64": Kind(pa.int64(), [-(2**63), -5, 0, 42, 2**53 + 1, 2**63 - 1], str),
    "u32": Kind(pa.uint32(), [0, 1, 2**31, 2**32 - 1], str),
    "u64": Kind(pa.uint64(), [0, 3, 2**63, 2**64 - 1], str),
    "f": Kind(pa.float32(), [-1.5, -0.0, 0.0, 0.5, 0.1, 3.25, NAN, float("inf")], repr),
    "d": Kind(pa.float64(), [-1e300, -0.0, 0.0, 0.1, 2.5, NAN, float("-inf")], repr),
    "dec": Kind(pa.decimal128(9, 2), [Decimal(n) / 100 for n in (-150, 0, 1, 999, 12345)], str),
    "wide": Kind(pa.decimal128(25, 3), [Decimal(n) / 1000 for n in (-(10**22), -1, 0, 7)], str),
    "s": Kind(pa.string(), TEXTS, quoted),
    "b": Kind(pa.binary(), [text.encode() for text in TEXTS[:5]], lambda v: quoted(v.decode())),
    "bool": Kind(pa.bool_(), [True, False], lambda value: str(value).lower()),
    "day": Kind(pa.date32(), [FIRST_DAY + timedelta(n) for n in (-800, 0, 1, 30)], quoted),
    "ts": Kind(
        pa.timestamp("us"), [FIRST_INSTANT + timedelta(seconds=n) for n in (-(10**9), 0, 1)], quoted
    ),
    "clock": Kind(pa.time64("us"), [time(0, 0), time(9, 30), time(23, 59, 59)], quoted),
}
IN_BETWEEN = {"i8": "2.5", "i32": "-2.75", "i64": "41.9", "dec": "0.005", "u32": "-1"}
PARTITIONS = {
    "part": ["1", "2", "10"],
    "region": ["eu", "us"],
    "on": ["2026-01-01", "2026-01-31"],
}


def draw_column(random_source: random.Random, kind: Kind) -> list[Any]:
    """Draw values of a row group, in which few values are near each other."""
    few = random_source.sample(kind.values, random_source.randint(1, min(3, len(kind.values))))
    share_of_nulls = random_source.choice([0, 0, 0.2, 0.9, 1])
    column = []
    for _ in range(ROWS):
        is_null = random_source.random() < share_of_nulls
        column.append(None if is_null else random_source.choice(few))
    return column


def draw_table(random_source: random.Random, row_groups: int) -> pa.Table:
    columns = {}
    for name, kind in KINDS.items():
        values: list[Any] = []
        for _ in range(row_groups):
            values += draw_column(random_source, kind)
        columns[name] = pa.array(values, kind.type)
    return pa.table(columns)


def write_file(random_source: random.Random, table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        table,
        path,
        row_group_size=ROWS,
        write_statistics=random_source.random() < 0.8,
        use_dictionary=random_source.random() < 0.5,
    )
    if random_source.random() < 0.6:
        columns = random_source.sample(sorted(set(KINDS) - {"bool"}), 6)
        add_filters(path, columns, in_place=True)


def draw_constant(random_source: random.Random, name: str) -> str:
    if name in PARTITIONS:
        value = random_source.choice(PARTITIONS[name])
        return value if name == "part" else quoted(value)
    kind = KINDS[name]
    if name in IN_BETWEEN and random_source.random() < 0.2:
        return IN_BETWEEN[name]
    values = [value for value in kind.values if value == value and abs_of(value) != float("inf")]
    return kind.write(random_source.choice(values))


def abs_of(value: Any) -> Any:
    return abs(value) if isinstance(value, float) else value


def draw_part(random_source: random.Random, names: list[str], *, with_others: bool) -> str:
    name = random_source.choice(names)
    column = f'"{name}"' if random_source.random() < 0.3 or name == "on" else name
    form = random_source.random()
    constant = draw_constant(random_source, name)
    if with_others and form < 0.08:
        return f"CAST({column} AS VARCHAR) LIKE '1%'"
    if form < 0.5:
        sign = random_source.choice(["=", "=", "==", "!=", "<>", "<", "<=", ">", ">="])
        if form < 0.1 and name not in PARTITIONS:
            mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign)
            return f"{constant} {mirrored} {column}"
        return f"{column} {sign} {constant}"
    negation = random_source.choice(["", "", " NOT"])
    if form < 0.7:
        constants = [draw_constant(random_source, name) for _ in range(3)]
        return f"{column}{negation} IN ({', '.join(constants)})"
    if form < 0.85:
        return f"{column}{negation} BETWEEN {constant} AND {draw_constant(random_source, name)}"
    return f"{column} IS{negation} NULL"


def draw_condition(
    random_source: random.Random, names: list[str], depth: int = 0, *, with_others: bool
) -> str:
    form = random_source.random()
    if depth > 2 or form < 0.4:
        return draw_part(random_source, names, with_others=with_others)
    operands = []
    for _ in range(random_source.randint(1, 3)):
        operand = draw_condition(random_source, names, depth + 1, with_others=with_others)
        operands.append(operand)
    text = random_source.choice([" AND ", " AND ", " OR "]).join(operands)
    if form < 0.55:
        return f"NOT ({text})"
    return f"({text})"


class Lake:
    """Files, and their rows in memory."""

    def __init__(self, random_source: random.Random, root: Path) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.files: dict[str, str] = {}
        """The name of the table in memory of each file."""
        for number in range(4):
            table = draw_table(random_source, row_groups=3)
            values = {name: random_source.choice(texts) for name, texts in PARTITIONS.items()}
            folder = root / "/".join(f"{name}={value}" for name, value in values.items())
            path = folder / f"{number}.parquet"
            write_file(random_source, table, path)
            self._add(str(path), table, values)

    def _add(self, path: str, table: pa.Table, partition: dict[str, str]) -> None:
        name = f"t{len(self.files)}"
        rows = pa.array(range(len(table)), pa.int64())
        columns = {"row": rows, **{each: table[each] for each in table.column_names}}
        columns["part"] = pa.array([int(partition["part"])] * len(table))
        columns["region"] = pa.array([partition["region"]] * len(table))
        columns["on"] = pa.array([date.fromisoformat(partition["on"])] * len(table))
        self.connection.register("source", pa.table(columns))
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM source")
        self.files[path] = name

    def scan(self, path: str, condition: str) -> set[int]:
        query = f"SELECT row FROM {self.files[path]} WHERE {condition}"
        return {row for (row,) in self.connection.execute(query).fetchall()}


def ensure_nothing_is_lost(lake: Lake, path: str, condition: str) -> None:
    expected = lake.scan(path, condition)
    report = Probe.of(condition)(path, strict=False)
    remaining = set()
    for answers in (*report.hits, *report.inconclusive):
        remaining.update(answers.row_groups)
    lost = {row // ROWS for row in expected} - remaining
    assert not lost, (path, condition, lost)


def ensure_rows_are_equal(lake: Lake, path: str, condition: str) -> int:
    """Return the number of rows that reading does not decide."""
    expected = lake.scan(path, condition)
    report = Probe.of(condition, rows=True)(path, strict=False)
    listed = {row.row for row in report.rows}
    uncertain = set()
    for hit in report.hits:
        if hit.answer != "present":
            uncertain.update(hit.row_groups)
    for answers in report.inconclusive:
        uncertain.update(answers.row_groups)
    assert listed <= expected, (path, condition, listed - expected)
    missing = {row for row in expected - listed if row // ROWS not in uncertain}
    assert not missing, (path, condition, missing)
    return len(expected - listed)


def check(tmp_path: Path, seeds: Iterator[int], count: int) -> None:
    names = [*KINDS, *PARTITIONS]
    checked = 0
    undecided = 0
    decided = 0
    for seed in seeds:
        random_source = random.Random(seed)
        lake = Lake(random_source, tmp_path / str(seed))
        for _ in range(min(100, count - checked)):
            condition = draw_condition(random_source, names, with_others=True)
            path = random_source.choice(list(lake.files))
            ensure_nothing_is_lost(lake, path, condition)
            condition = draw_condition(random_source, names, with_others=False)
            undecided += ensure_rows_are_equal(lake, path, condition)
            decided += len(lake.scan(path, condition))
            checked += 1
        if checked >= count:
            break
    assert undecided < decided / 20


def draw_delta_table(random_source: random.Random, root: Path) -> tuple[str, pa.Table]:
    """Write a Delta table of several files, with null among the values of its partitions."""
    parts = []
    for number in range(6):
        table = draw_table(random_source, row_groups=2)
        first = number * len(table)
        day = random_source.choice([*KINDS["day"].values, None])
        region = random_source.choice(["eu", "7", None])
        table = table.select(["i32", "d", "s", "dec", "bool"])
        table = table.append_column("id", pa.array(range(first, first + len(table)), pa.int64()))
        table = table.append_column("on", pa.array([day] * len(table), pa.date32()))
        table = table.append_column("region", pa.array([region] * len(table), pa.string()))
        deltalake.write_deltalake(root, table, partition_by=["on", "region"], mode="append")
        parts.append(table)
    return str(root), pa.concat_tables(parts)


def test_rows_of_a_delta_table(tmp_path: Path) -> None:
    random_source = random.Random(7)
    name, rows = draw_delta_table(random_source, tmp_path / "table")
    connection = duckdb.connect()
    connection.register("source", rows)
    connection.execute("CREATE TABLE t AS SELECT * FROM source")
    ids: dict[str, list[int]] = {}
    for condition in DELTA_CONDITIONS + [
        draw_condition(random_source, ["i32", "d", "s", "dec", "on", "region"], with_others=False)
        for _ in range(100)
    ]:
        query = f"SELECT id FROM t WHERE {condition}"
        expected = {row for (row,) in connection.execute(query).fetchall()}
        listed = set()
        possible = set()
        for outcome in run(Probe.of(condition, rows=True), name, jobs=1):
            report = outcome.report
            assert report is not None, outcome.reason
            if outcome.path not in ids:
                ids[outcome.path] = pq.read_table(outcome.path, columns=["id"])["id"].to_pylist()
            listed |= {ids[outcome.path][row.row] for row in report.rows}
            if report.inconclusive:
                possible |= set(ids[outcome.path])
        assert listed <= expected, condition
        assert expected - listed <= possible, condition
        remaining = set()
        for outcome in run(Probe.of(condition), name, jobs=1):
            assert outcome.report is not None
            if not outcome.report.is_absent:
                remaining |= set(ids[outcome.path])
        assert expected <= remaining, condition


DELTA_CONDITIONS = [
    "\"on\" >= '2026-01-01'",
    "\"on\" IS NULL OR region = 'eu'",
    "NOT (region = '7' AND i32 > 0)",
    "region <> 'eu' AND \"on\" BETWEEN '2020-01-01' AND '2026-01-01'",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of two row groups: n is 0 to 9 and 10 to 19."""
    path = tmp_path / "a.parquet"
    numbers = list(range(20))
    table = pa.table(
        {
            "n": numbers,
            "s": [f"k{n:02}" for n in numbers],
            "x": [NAN if n == 3 else n / 2 for n in numbers],
            "gaps": [None if n < 10 else n for n in numbers],
            "tags": [[f"t{n}"] for n in numbers],
        }
    )
    pq.write_table(table, path, row_group_size=10)
    add_filters(path, ["s"], in_place=True)
    return path


def row_groups_of(path: Path, condition: str, **options: Any) -> list[int]:
    report = Probe.of(condition)(path, **options)
    row_groups = set()
    for answers in (*report.hits, *report.inconclusive):
        row_groups.update(answers.row_groups)
    return sorted(row_groups)


@each(
    "condition, row_groups",
    [
        ("n > 9", [1]),
        ("n > 9.5 AND n < 9.7", []),
        ("9 < n", [1]),
        ("NOT (n <= 9)", [1]),
        ("n BETWEEN 3 AND 4 OR n = 15", [0, 1]),
        ("n NOT BETWEEN 0 AND 9", [1]),
        ("n <> 3", [0, 1]),
        ("s = 'k15' OR s = 'absent'", [1]),
        ("s = 'k05x' OR n > 100", []),
        ("NOT (s = 'k05x')", [0, 1]),
        ("SELECT trim(BOTH FROM s) FROM t WHERE t.n >= 10 ORDER BY s LIMIT 3;", [1]),
        ("gaps > 0", [1]),
        ("NOT (gaps > 0)", []),
        ("NOT (gaps > 10)", [1]),
        ("gaps IS NULL", [0]),
        ("gaps IS NOT NULL AND n < 10", []),
        # Bounds ignore NaN, which engines order last.
        ("x > 100", [0, 1]),
        ("NOT (x <= 100)", [0, 1]),
        ("x < -1", []),
        ("s LIKE 'k%' AND n > 9", [1]),
        ("s LIKE 'k%' OR n > 9", [0, 1]),
        ("NOT (upper(s) = 'K01') AND n < 0", []),
        ("s > 5", [0, 1]),
        ("tags.list.element = 't3' OR n = 15", [0, 1]),
        ("lacking = 1 OR n > 9", [1]),
        ("NOT (lacking = 1) AND n > 9", []),
        ("lacking IS NULL AND n > 9", [1]),
    ],
)
def test_row_groups_that_may_have_rows(path: Path, condition: str, row_groups: list[int]) -> None:
    assert row_groups_of(path, condition, strict=False) == row_groups


@each(
    "condition, words",
    [
        ("s LIKE 'k%' OR n = 3", "nothing decides s LIKE 'k%'"),
        ("lower(s) = 'k01' AND n = 3", "nothing decides lower"),
        ("s > 5", "nothing decides s > 5: readers convert values of BYTE_ARRAY STRING"),
        ("tags.list.element > 't3'", "column tags.list.element is in a list"),
        ("n = 'null' OR n > 3", "no value equals NULL"),
        ("n > 'x'", "'x' is not a value of INT64"),
    ],
)
def test_what_values_do_not_decide_is_an_error(path: Path, condition: str, words: str) -> None:
    for options in ({"confirm": True}, {"rows": True}):
        with pytest.raises(UsageError) as caught:
            Probe.of(condition, **options)(path)
        assert words in str(caught.value)


def test_values_without_an_order_are_not_compared() -> None:
    for name, condition in (("duckdb-types", "span > 'P1D'"), ("spark-int96", "at_utc > '1970'")):
        with pytest.raises(UsageError, match="readers share no order of values of"):
            Probe.of(condition, rows=True)(FIXTURES / f"{name}.parquet")


def test_a_part_that_nothing_answers_is_named(path: Path) -> None:
    report = Probe.of("s LIKE 'k%' AND n > 9")(path)
    assert report.notes == ("nothing answers s LIKE 'k%': any row may satisfy it",)
    assert Probe.of("s = 'k01' AND s LIKE 'k%'")(path).notes == report.notes


def test_values_are_those_of_the_first_part_with_equality(path: Path) -> None:
    verb = Probe.of("n > 2 AND s IN ('k01', 'k05', 'k07')", rows=True)
    assert (verb.column, verb.values) == ("s", ("k01", "k05", "k07"))
    assert verb.needs().columns == ("s", "n")
    assert [(row.row, row.value) for row in verb(path).rows] == [(5, "k05"), (7, "k07")]
    assert Probe.of("s = 'k01' AND n = 3") == Probe("s", ["k01"], also="n = 3")
    assert pickle.loads(pickle.dumps(verb)) == verb


def test_a_condition_without_a_column(path: Path) -> None:
    verb = Probe(None, (), rows=True, also="s IN ('k01', 'k15') AND n > 9")
    assert [row.row for row in verb(path).rows] == [15]
    assert [row.row for row in Probe.of("n > 17 AND gaps > 0", rows=True)(path).rows] == [18, 19]
    with pytest.raises(UsageError, match="a query of every column takes"):
        Probe(None, (), also={"n": [1]})


CONSTANTS_NOT_STORED = [
    ("d", "'0.504'"),
    ("d", "'0.496'"),
    ("d", "0.504"),
    ("ts", "'2024-01-01 00:00:00.1234'"),
    ("i", "'4.4'"),
    ("i", "'3.5'"),
    ("i", "3.5"),
]


@pytest.fixture
def one_row(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    instant = pa.scalar(1704067200123, pa.timestamp("ms"))
    columns = {
        "d": pa.array([Decimal("0.50")], pa.decimal128(9, 2)),
        "ts": pa.array([instant]),
        "i": pa.array([4]),
    }
    pq.write_table(pa.table(columns), path)
    add_filters(path, list(columns), in_place=True)
    return path


COMPARISONS = [
    "= {}",
    "<> {}",
    "< {}",
    "<= {}",
    "> {}",
    ">= {}",
    "IN ({}, '7')",
    "= {} OR d = 0.504",
]


@each("comparison", COMPARISONS)
@each("column, constant", CONSTANTS_NOT_STORED)
def test_engines_round_text_and_compare_numbers(one_row, column, constant, comparison):
    """What DuckDB finds, no answer excludes; what is listed, DuckDB finds."""
    if column == "ts":
        comparison = comparison.replace("'7'", "'2025-01-01'")
    condition = f"{column} {comparison.format(constant)}"
    query = f"SELECT 1 FROM '{one_row}' WHERE {condition}"
    is_found = bool(duckdb.connect().execute(query).fetchall())
    try:
        report = Probe.of(condition)(one_row)
    except UsageError:
        assert column == "i", "a fraction is no value of integers"
        return
    assert not (is_found and report.is_absent)
    with suppress(UsageError):
        assert is_found or not Probe.of(condition, rows=True)(one_row).rows


def test_a_double_may_be_a_single_in_other_files(tmp_path: Path) -> None:
    single = pa.array([0.1], pa.float32())
    pq.write_table(pa.table({"d": single}), tmp_path / "a.parquet")
    path = tmp_path / "b.parquet"
    pq.write_table(pa.table({"d": single.cast(pa.float64())}), path)
    verb = Probe.of("d <= 0.1")
    assert verb(path).is_absent
    for outcome in run(verb, str(tmp_path)):
        assert outcome.report is not None, outcome.reason
        assert not outcome.report.is_absent


def test_a_subquery_is_named_as_unanswered(path: Path) -> None:
    report = Probe.of("n > 9 AND EXISTS (SELECT 1 FROM t)")(path)
    assert report.notes == ("nothing answers EXISTS (SELECT 1 FROM t): any row may satisfy it",)


CONVERTED = [
    ("05", "5"),
    (" 5", "5"),
    ("5", "+5"),
    ("5.0", "DECIMAL '5'"),
    ("T", "true"),
    ("2020-1-1", "DATE '2020-01-01'"),
    ("2020-01-01", "TIMESTAMP '2020-01-01 00:00:00'"),
    ("0123456789abcdef0123456789abcdef", "UUID '01234567-89ab-cdef-0123-456789abcdef'"),
]


@each("condition", ["t = {}", "{} = t", "t IN ({0}, {0})", "t = {} OR t = '7'", "t = {} AND n = 1"])
@each("stored, constant", CONVERTED)
def test_engines_convert_text_to_compare_it(tmp_path, stored, constant, condition):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": [stored], "n": [1]}), path)
    add_filters(path, ["t", "n"], in_place=True)
    condition = condition.format(constant)
    if constant != "DECIMAL '5'":  # it is a decimal without fraction, and the text is rounded
        query = f"SELECT 1 FROM '{path}' WHERE {condition}"
        assert duckdb.connect().execute(query).fetchall()
    for options in ({}, {"confirm": True}, {"filters_only": True}):
        assert not Probe.of(condition, **options)(path).is_absent
    report = Probe.of(condition, rows=True)(path)
    assert not report.is_absent
    assert not report.rows
    (note,) = report.notes
    assert note.endswith("write text in single quotes")


@each("condition", ["k = {}", "n = 1 AND k = {}", "k IN ({0}, {0})"])
@each("stored, constant", [("05", "5"), ("2020-1-1", "DATE '2020-01-01'")])
def test_engines_convert_the_text_of_a_partition(tmp_path, stored, constant, condition):
    folder = tmp_path / "t"
    for k in (stored, "3", "2019-12-31"):
        rows = pa.table({"n": [1], "k": [k]})
        deltalake.write_deltalake(folder, rows, partition_by=["k"], mode="append")
    answers = {
        outcome.path.partition("k=")[2].partition("/")[0]: outcome.report.is_absent
        for outcome in run(Probe.of(condition.format(constant)), str(folder))
    }
    assert not answers[stored]
    assert answers["3" if constant == "5" else "2019-12-31"]


def test_many_numbers_beside_text(tmp_path: Path) -> None:
    """More than a thousand are one block."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": ["x"], "n": [3000]}), path)
    add_filters(path, ["t", "n"], in_place=True)
    numbers = ", ".join(map(str, range(2000)))
    assert not Probe.of(f"t IN ({numbers})")(path).is_absent
    assert Probe.of(f"n IN ({numbers})")(path).is_absent


@each("sign", ["<", "<=", ">", ">="])
def test_a_row_that_depends_on_rounding_is_not_listed(tmp_path: Path, sign: str) -> None:
    """Engines compare with 0.1 in single precision, or in double precision."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"f": pa.array([0.1], pa.float32())}), path)
    report = Probe.of(f"f {sign} 0.1", rows=True)(path)
    assert (report.rows, report.is_absent) == ((), False)


@each("condition", ["k = '5.4'", "k IN ('4.6', '9')", "NOT k < '5.4'", "k <= '4.6'", "k <> '5.6'"])
def test_engines_round_text_to_the_value_of_a_folder(tmp_path, condition):
    path = tmp_path / "k=5" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"n": [1]}), path)
    for name in (path, tmp_path):
        (row,) = run(Probe.of(condition), name)
        assert row.report is not None, row.reason
        assert not row.report.is_absent
    query = f"SELECT 1 FROM read_parquet('{path}', hive_partitioning = true) WHERE {condition}"
    assert duckdb.connect().execute(query).fetchall()
    assert Probe.of(condition.replace("'", ""))(path).is_absent != ("<>" in condition)


def test_text_in_quotes_is_reported_as_the_same_argument(tmp_path: Path) -> None:
    folder = tmp_path / "part=a"
    folder.mkdir()
    path = folder / "a.parquet"
    columns = {
        "s": (pa.array(["x", "it's"]), "it's"),
        "d": (pa.array([Decimal("0.50"), None], pa.decimal128(9, 2)), "0.50"),
        "day": (pa.array([date(2026, 1, 2), None]), "2026-01-02"),
        "i": (pa.array([4, 5]), "4"),
        "f": (pa.array([0.5, 1.5]), "0.5"),
    }
    pq.write_table(pa.table({name: array for name, (array, _) in columns.items()}), path)
    add_filters(path, ["s", "d", "day", "i"], in_place=True)
    for name, text in [(name, text) for name, (_, text) in columns.items()] + [("part", "a")]:
        condition = f"""{name} = '{text.replace("'", "''")}'"""
        for rows in (False, True):
            (of_condition,) = run(Probe.of(condition, rows=rows), tmp_path)
            (of_argument,) = run(Probe(name, [text], rows=rows), tmp_path)
            assert of_condition.report is not None, of_condition.reason
            assert of_argument.report is not None, of_argument.reason
            assert of_condition.report == of_argument.report
            assert of_condition.report.to_arrow() == of_argument.report.to_arrow()


def test_partition_columns(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-02"):
        path = tmp_path / f"day={day}" / "a.parquet"
        path.parent.mkdir()
        pq.write_table(pa.table({"id": range(10)}), path, row_group_size=5)
    rows = {}
    for condition in ("day >= '2026-01-02' AND id > 7", "day = '2026-01-02' AND NOT (id <= 7)"):
        for row in run(Probe.of(condition, rows=True), str(tmp_path), jobs=1):
            assert row.report is not None
            rows[Path(row.path).parent.name] = [match.row for match in row.report.rows]
        assert rows == {"day=2026-01-01": [], "day=2026-01-02": [8, 9]}


def test_explain_names_the_part_that_excludes(path: Path) -> None:
    report = Explain.of("s = 'k05x' AND n < 10")(path)
    parts = [(row.excluded_by, row.statistics, row.filter) for row in report.row_groups]
    assert parts == [("s = 'k05x'", "maybe", "absent"), ("s = 'k05x'", "absent", "maybe")]
    assert report.absent
    report = Explain.of("n < 10 OR gaps IS NOT NULL")(path)
    assert [row.excluded_by for row in report.row_groups] == [None, None]
    assert Explain.of("n IN (1, 2)") == Explain("n", ["1", "2"])


def test_explain_counts_the_parts_that_exclude_in_many_files(path: Path, capfd) -> None:
    shutil.copy(path, path.with_name("b.parquet"))
    assert run_command(["explain", str(path.parent), "s = 'k05x' AND n < 10"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["s", "=", "'k05x'", "filter", "2"],
        ["s", "=", "'k05x'", "statistics", "2"],
    ]
    assert lines[3] == "0 of 4 row groups may have rows that satisfy the condition"


def test_no_row_is_lost(tmp_path: Path) -> None:
    check(tmp_path, iter(range(1000)), FEW)


@pytest.mark.heavy(10)
def test_no_row_is_lost_of_many_conditions(tmp_path: Path) -> None:
    check(tmp_path, iter(range(1000, 2000)), MANY)
