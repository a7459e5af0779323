"""`probe --confirm`: what is present is there, row by row, as DuckDB and pyarrow read it; what may
be there without it is never less."""

from __future__ import annotations

import base64
import cProfile
import datetime as dt
import random
import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from sbbf_tool import add_filters, probe
from sbbf_tool.cli import main
from sbbf_tool.verbs.verb import COMPARE_SCANS
from support.tables import each

RANDOM = random.Random(40)
NEW_YEAR = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def some_time() -> dt.time:
    return dt.time(RANDOM.randint(0, 23), RANDOM.randint(0, 59), RANDOM.randint(0, 59))


def some_float() -> float:
    return RANDOM.choice(
        [0.0, -0.0, float("nan"), 0.1, 1e30, -1e30, *(RANDOM.random() for _ in range(20))]
    )


def some_decimal(bound: int) -> Decimal:
    return Decimal(RANDOM.randint(-bound, bound)).scaleb(-2)


DRAWS: dict[str, tuple[pa.DataType, Callable[[], Any]]] = {
    "int8": (pa.int8(), lambda: RANDOM.randint(-128, 127)),
    "int16": (pa.int16(), lambda: RANDOM.randint(-4000, 4000)),
    "uint8": (pa.uint8(), lambda: RANDOM.randint(0, 255)),
    "uint32": (pa.uint32(), lambda: RANDOM.randint(0, 4000) * 1_000_003),
    "uint64": (pa.uint64(), lambda: RANDOM.randint(0, 4000) * 4_000_000_000_000_003),
    "int32": (pa.int32(), lambda: RANDOM.randint(-4000, 4000)),
    "int64": (
        pa.int64(),
        lambda: (
            RANDOM.randint(-(1 << 40), 1 << 40)
            if RANDOM.random() < 0.5
            else RANDOM.randint(0, 2000)
        ),
    ),
    "half": (pa.float16(), some_float),
    "float": (pa.float32(), some_float),
    "double": (pa.float64(), some_float),
    "decimal9": (pa.decimal128(9, 2), lambda: some_decimal(5000)),
    "decimal20": (pa.decimal128(20, 2), lambda: some_decimal(5000)),
    "decimal38": (pa.decimal128(38, 2), lambda: some_decimal(10**34)),
    "text": (
        pa.string(),
        lambda: RANDOM.choice(
            ["", "null", "a", "ß", *(f"user-{RANDOM.randint(0, 4000):05}" for _ in range(20))]
        ),
    ),
    "bytes": (pa.binary(), lambda: RANDOM.randbytes(RANDOM.randint(0, 2))),
    "fixed": (pa.binary(3), lambda: RANDOM.randbytes(1) + b"ab"),
    "uuid": (pa.binary(16), lambda: RANDOM.randint(0, 4000).to_bytes(16, "big")),
    "date": (
        pa.date32(),
        lambda: dt.date(2026, 1, 1) + dt.timedelta(days=RANDOM.randint(-1800, 1800)),
    ),
    "time": (pa.time64("us"), some_time),
    "milliseconds": (pa.time32("ms"), some_time),
    "instant": (
        pa.timestamp("us", "UTC"),
        lambda: NEW_YEAR + dt.timedelta(minutes=RANDOM.randint(0, 5000)),
    ),
    "moment": (
        pa.timestamp("ms"),
        lambda: NEW_YEAR.replace(tzinfo=None) + dt.timedelta(seconds=RANDOM.randint(0, 5000)),
    ),
    "bool": (pa.bool_(), lambda: RANDOM.random() < 0.5),
    "struct": (
        pa.struct([("y", pa.int32())]),
        lambda: {"y": RANDOM.choice([None, *range(1, 4000)])},
    ),
    "list": (
        pa.list_(pa.int32()),
        lambda: [RANDOM.randint(0, 3000) for _ in range(RANDOM.randint(0, 3))],
    ),
    "structs": (
        pa.list_(pa.struct([("y", pa.string())])),
        lambda: [{"y": f"{RANDOM.randint(0, 3000)}"} for _ in range(RANDOM.randint(0, 3))],
    ),
}
PATHS = {"struct": "x.y", "list": "x.list.element", "structs": "x.list.element.y"}


class Kms(pe.KmsClient):
    """Has one key."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def write_encrypted(rows: pa.Table, path: Path, group: int) -> None:
    configuration = pe.EncryptionConfiguration(footer_key="k", uniform_encryption=True)
    properties = pe.CryptoFactory(lambda _: Kms()).file_encryption_properties(
        pe.KmsConnectionConfig(), configuration
    )
    pq.write_table(rows, path, row_group_size=group, encryption_properties=properties)


def write_by_duckdb(rows: pa.Table, path: Path, group: int) -> None:
    duckdb.connect().execute(
        f"copy (from rows) to '{path}' (format parquet, row_group_size {max(group, 2048)})"
    )


def by_pyarrow(**options: Any) -> Callable[[pa.Table, Path, int], None]:
    return lambda rows, path, group: pq.write_table(rows, path, row_group_size=group, **options)


def of_type(*checks: Callable[[pa.DataType], bool]) -> set[str]:
    return {name for name, (kind, _) in DRAWS.items() if any(check(kind) for check in checks)}


_PLAIN: dict[str, Any] = {"use_dictionary": False}
_DELTA, _TEXT = (
    of_type(lambda kind: pa.types.is_integer(kind) and kind.bit_width >= 32),
    {"text", "bytes"},
)
WRITERS: dict[str, tuple[Callable[[pa.Table, Path, int], None], set[str]]] = {
    "dictionary": (by_pyarrow(), {*DRAWS}),
    "dictionary and plain": (
        by_pyarrow(dictionary_pagesize_limit=200, data_page_size=1000, write_batch_size=50),
        {*DRAWS},
    ),
    "small pages": (
        by_pyarrow(
            data_page_size=500, write_batch_size=50, write_page_index=True, data_page_version="2.0"
        ),
        {*DRAWS},
    ),
    "plain": (by_pyarrow(**_PLAIN, data_page_size=2000, data_page_version="2.0"), {*DRAWS}),
    "plain decimals": (
        by_pyarrow(**_PLAIN, store_decimal_as_integer=True, write_page_checksum=True),
        of_type(pa.types.is_decimal),
    ),
    "no statistics": (by_pyarrow(write_statistics=False, compression="zstd"), {*DRAWS}),
    "delta": (by_pyarrow(**_PLAIN, column_encoding="DELTA_BINARY_PACKED"), _DELTA),
    "delta text": (
        by_pyarrow(**_PLAIN, column_encoding="DELTA_BYTE_ARRAY", compression="gzip"),
        _TEXT,
    ),
    "streams": (
        by_pyarrow(**_PLAIN, column_encoding="BYTE_STREAM_SPLIT"),
        of_type(pa.types.is_floating),
    ),
    "int96": (by_pyarrow(use_deprecated_int96_timestamps=True), {"moment"}),
    "encrypted": (write_encrypted, {*DRAWS}),
    "duckdb": (write_by_duckdb, {*DRAWS} - {"half"}),
    "polars": (
        lambda rows, path, group: polars.from_arrow(rows).write_parquet(path, row_group_size=group),
        {*DRAWS} - {"milliseconds"},
    ),
}
CASES = [
    (name, writer, is_filtered)
    for writer, (_, names) in WRITERS.items()
    for name in DRAWS
    for is_filtered in (0, 1)
    if name in names
]


def leaves(value: Any) -> list[Any]:
    """Return the values of a row, of which a NaN is a text, since it does not equal itself."""
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    value = value["y"] if isinstance(value, dict) else value
    return ["nan" if value != value else value]


def count_answers(
    path: Path, name: str, writer: str, *, filtered: bool, rows: int, group: int, most_values: int
) -> int:
    """Compare the answers about a file with those of a search through all values; return how many
    there are."""
    kind, draw = DRAWS[name]
    # In the precision of the column: to ask for 0.1 in a FLOAT is to ask for its nearest FLOAT.
    values, others = (
        pa.array(
            [None if RANDOM.random() < 0.05 else draw() for _ in range(rows)], kind
        ).to_pylist()
        for _ in range(2)
    )
    if writer == "small pages":  # sorted, so that few row groups and pages have a value
        values.sort(
            key=lambda value: (
                value is None,
                0
                if value is None
                else str(value)
                if isinstance(value, float | list | dict)
                else value,
            )
        )
    path.unlink(missing_ok=True)
    WRITERS[writer][0](pa.table({"x": pa.array(values, kind)}), path, group)
    column, keys = PATHS.get(name, "x"), Kms() if writer == "encrypted" else None
    if filtered and name != "bool":
        add_filters(path, [column], in_place=True, keys=keys)
    expected: dict[Any, list[int]] = {}
    for row, value in enumerate(values):
        for leaf in set(leaves(value)):
            expected.setdefault(leaf, []).append(row)
    leaves_of_both = (
        leaf
        for pair in zip(values, others, strict=True)
        for value in pair
        for leaf in leaves(value)
    )
    sought = [
        leaf for leaf in dict.fromkeys(leaves_of_both) if leaf is not None or "list" not in column
    ][:most_values]
    asked = [float("nan") if value == "nan" else value for value in sought]
    if (
        writer == "int96"
    ):  # other digits of a second than nine are not what DuckDB, Spark and Trino show
        asked = [value and f"{value.isoformat()}.000000000" for value in asked]
    report = probe(path, column, asked, rows=True, keys=keys)
    groups = pq.read_metadata(path).num_row_groups if keys is None else report.row_groups
    starts = (
        [*accumulate((group for _ in range(groups)), initial=0)]
        if writer != "duckdb"
        else [0, max(group, 2048)]
    )
    found = [expected.get(value, []) for value in sought]
    assert report.inconclusive == ()
    assert Counter(row.row for row in report.rows) == Counter(row for each in found for row in each)
    present = {
        hit.position: (hit.count, hit.row_groups) for hit in report.hits if hit.answer == "present"
    }
    assert len(present) == len(report.hits)
    where = [tuple(sorted({bisect_right(starts, row) - 1 for row in each})) for each in found]
    assert present == {at: (len(each), where[at]) for at, each in enumerate(found) if each}
    for answer, row_groups in zip(probe(path, column, asked, keys=keys).values, where, strict=True):
        assert {each.row_group for each in answer.row_groups if not each.is_absent} >= {*row_groups}
    return len(asked) * report.row_groups


@each("name, writer, filtered", CASES, every=7)
def test_rows_are_those_of_a_search_through_all_values(
    tmp_path: Path, name: str, writer: str, filtered: int
) -> None:
    count_answers(
        tmp_path / "a.parquet",
        name,
        writer,
        filtered=bool(filtered),
        rows=700,
        group=300,
        most_values=40,
    )


@pytest.mark.nightly(4)
def test_a_million_answers_are_those_of_a_search_through_all_values(
    tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    count = sum(
        count_answers(
            tmp_path / "a.parquet",
            name,
            writer,
            filtered=bool(filtered),
            rows=4000,
            group=400,
            most_values=500,
        )
        for name, writer, filtered in CASES
    )
    record_testsuite_property("answers", count)
    assert count >= 1_000_000


KEYS: dict[str, Callable[[int], Any]] = {
    "UUIDs": lambda number: str(
        uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128)
    ),
    "e-mails": lambda number: f"user.{number * 7919}@example.com",
    "integers": lambda number: number * 1_000_003,
    "decimals": lambda number: Decimal(number * 1_000_003).scaleb(-2),
    "dates": lambda number: dt.date(1000, 1, 1) + dt.timedelta(days=number),
}


def count_calls(path: Path, keys: list[Any]) -> int:
    """Confirm keys, of which half are stored, once each; return how many functions are called."""
    profile = cProfile.Profile()
    report = profile.runcall(probe, path, "x", keys, confirm=True)
    assert [(hit.position, hit.count) for hit in report.hits] == [
        (at, 1) for at in range(0, len(keys), 2)
    ]
    return sum(entry.callcount for entry in profile.getstats())


@each(
    "name, options",
    [(name, options) for name in KEYS for options in ({}, _PLAIN, {"column_encoding": "DELTA"})],
    every=2,
)
def test_work_grows_as_the_keys_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, Any]
) -> None:
    """One page holds all of them: twice as many are no more than twice the work."""
    monkeypatch.delenv(COMPARE_SCANS, raising=False)  # answering twice is twice the work
    path, calls = tmp_path / "a.parquet", []
    if "column_encoding" in options:
        is_text = name in ("UUIDs", "e-mails")
        encoding = "DELTA_BYTE_ARRAY" if is_text else "DELTA_BINARY_PACKED"
        options = {**_PLAIN, "column_encoding": encoding, "store_decimal_as_integer": True}
    for count in (0, 500, 1000, 2000):  # modules are imported at first
        keys = [KEYS[name](number) for number in range(max(2, count))]
        rows = pa.table({"x": pa.array(keys[::2])})
        pq.write_table(rows, path, data_page_size=1 << 20, write_batch_size=1 << 14, **options)
        calls.append(count_calls(path, keys))
    assert calls[3] - calls[2] < 2.5 * (calls[2] - calls[1])
    assert calls[3] - calls[2] < 100 * 1000


def test_a_value_that_is_given_twice_is_found_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [7, 5, 5, 3]}), path)
    found = probe(path, "x", ["5", "4", "05", "7", "5"], rows=True)
    assert [(hit.position, hit.count) for hit in found.hits] == [(0, 2), (2, 2), (3, 1), (4, 2)]
    assert [(row.row, row.value) for row in found.rows][:2] == [(0, "7"), (1, "5")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of two writers, some with filters: ids that repeat, and statistics that exclude half of
    them."""
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
            connection.execute(
                f"copy (select * from rows) to '{path}' (format parquet, row_group_size 2048)"
            )
        if number % 3:
            add_filters(path, ["user_id"], in_place=True)
    return folder


def test_names_rows_and_answers_are_those_of_duckdb(
    lake: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{RANDOM.randint(-5000, 120_000)}\n" for _ in range(5000)))
    files, sought = (
        f"read_parquet('{lake}/*.parquet', filename = true, file_row_number = true)",
        f"read_csv('{keys}', header = false)",
    )
    sql = (
        f"select filename, file_row_number, user_id from {files} where user_id in (select "
        f"column0 from {sought}) order by all"
    )
    expected = duckdb.sql(sql).fetchall()
    command = ["probe", str(lake), "-c", "user_id", "--values-file", str(keys)]
    assert main([*command, "--confirm", "--format", "names"]) == 0
    assert capfdbinary.readouterr().out.decode().splitlines() == sorted(
        {name for name, *_ in expected}
    )
    assert main([*command, "--format", "names0"]) == 0
    names = capfdbinary.readouterr().out.decode().split("\0")
    assert {*names} >= {name for name, *_ in expected} | {""}
    out = tmp_path / "rows.parquet"
    assert main([*command, "--rows", "--report", str(out), "-q"]) == 0
    rows = duckdb.sql(
        f"select distinct file, row, value::bigint from '{out}' order by all"
    ).fetchall()
    assert rows == expected
    assert main([*command[:4], "--value", "-1", "--value", "999999", "--confirm"]) == 1
    assert b"none of them" in capfdbinary.readouterr().out


def test_a_name_with_a_line_break_is_printed_only_with_nul(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "a\nb.parquet"
    pq.write_table(pa.table({"x": [1, 2]}), path)
    assert main(["probe", str(path), "x", "1", "--format", "names"]) == 2
    captured = capfdbinary.readouterr()
    assert (captured.out, b"line break" in captured.err) == (b"", True)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "c.parquet")
    assert main(["probe", str(tmp_path), "x", "1", "--format", "names"]) == 2
    assert capfdbinary.readouterr().out == bytes(tmp_path / "c.parquet") + b"\n"
    assert main(["probe", str(path), "x", "1", "--format", "names0"]) == 0
    assert capfdbinary.readouterr().out == bytes(path) + b"\0"


def test_explain_takes_a_condition(lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each means is asked for the values that the means before it leave."""
    path = str(lake / "1.parquet")
    stored = pq.read_table(path, columns=["user_id"])["user_id"].to_pylist()
    absent = next(
        value
        for value in range(min(stored) + 1, max(stored))
        if probe(path, "user_id", value).is_absent
    )
    for values, code in (([-1, 10**9], 1), ([absent, 10**9], 1), ([absent, stored[0]], 0)):
        condition = f"user_id in ({values[0]}, {values[1]})"
        assert main(["explain", path, condition]) == code
        by_condition = capfd.readouterr().out
        assert (
            main(["explain", path, "-c", "user_id", f"--value={values[0]}", f"--value={values[1]}"])
            == code
        )
        assert capfd.readouterr().out == by_condition
    assert "dictionary" in by_condition


def test_what_reading_does_not_show_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Instants of an unknown writer may be stored in other forms, and a null in a list is no
    row."""
    path = tmp_path / "a.parquet"
    rows = pa.table(
        {"t": pa.array([NEW_YEAR.replace(tzinfo=None)], pa.timestamp("us")), "l": [[1, None, 1]]}
    )
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    for column, value in (("t", "2021-01-01"), ("l.list.element", "null")):
        assert main(["probe", str(path), column, value, "--confirm"]) == 0
        out = capfd.readouterr().out
        assert "cannot say" in out
        assert "1 file may hold some of them, which reading does not show" in out
        assert main(["probe", str(path), column, value, "--rows"]) == 0
        assert "cannot say" in capfd.readouterr().out
        assert main(["probe", str(tmp_path), column, value, "--confirm", "--format", "names"]) == 0
        captured = capfd.readouterr()
        assert (captured.out, "reading does not show" in captured.err) == (f"{path}\n", True)
        assert main(["probe", str(tmp_path), column, value, "--confirm"]) == 0
        assert "1 file may hold some of them, which reading does not show" in capfd.readouterr().out
    assert [(row.row, row.value) for row in probe(path, "l.list.element", 1, rows=True).rows] == [
        (0, "1")
    ]


NEAR = [0.1, 0.10000000149011612, 0.0, 0.5, 1e300]
"""Doubles, of which the second is what the first is in single precision."""


@each(
    "values, present, unsure",
    [
        (["0.1"], {"0.1": [0]}, {"0.1"}),
        (["0.10000000149011612"], {"0.10000000149011612": [1]}, set()),
        (["1e-50"], {}, {"1e-50"}),
        (["0.5", "1e300"], {"0.5": [3], "1e300": [4]}, set()),
        (["0.1", "0.5", "7.5"], {"0.1": [0], "0.5": [3]}, {"0.1"}),
        (["0.1", *map(str, range(2, 1200))], {"0.1": [0]}, {"0.1"}),
    ],
)
@each("options", [{}, {"use_dictionary": False}, {"column_encoding": {"x": "BYTE_STREAM_SPLIT"}}])
def test_a_double_of_many_files_is_not_one_that_is_close_to_it(
    tmp_path: Path, values: list[str], present: dict[str, list[int]], unsure: set[str], options: Any
) -> None:
    if "column_encoding" in options:
        options = {**options, "use_dictionary": False}
    path = tmp_path / "a.parquet"
    columns = pa.table({"x": NEAR, "y": NEAR, "n": range(len(NEAR))})
    pq.write_table(columns, path, row_group_size=1, **options)
    report = probe(path, "x", values, strict=False, rows=True)
    found: dict[str, list[int]] = {}
    for row in report.rows:
        found.setdefault(row.value, []).append(row.row)
    assert found == present
    assert {hit.value: hit.count for hit in report.hits if hit.answer == "present"} == {
        value: len(rows) for value, rows in present.items()
    }
    assert {hit.value for hit in report.hits if hit.answer != "present"} == unsure
    also = probe(path, "n", [*range(len(NEAR))], strict=False, rows=True, also={"x": values})
    assert [row.row for row in also.rows] == sorted(row.row for row in report.rows)
    assert bool(also.inconclusive) == bool(unsure)


def test_no_close_double_is_listed_for_any_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": NEAR}), tmp_path / "a.parquet")
    assert [row.row for row in probe(tmp_path / "a.parquet", None, ["0.1"], rows=True).rows] == [0]
    assert probe(tmp_path / "a.parquet", "x", ["1e-50"], confirm=True).is_absent
