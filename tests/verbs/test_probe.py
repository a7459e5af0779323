"""`probe`: its answers, and the few bytes that it reads for them.

A query for null keeps every row group in which a row may be null, whatever the column's type and
whatever the file states of it.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool import UsageError, add_filters, inspect, probe, remove_filters
from support.samples import ROW_GROUP_ROWS, places, write_column, write_events
from support.tables import each


@pytest.fixture
def filtered(tmp_path):
    path = write_events(tmp_path / "events.parquet")
    add_filters(path, ["id", "name", "score", "tags"], in_place=True, fpp=1e-6)
    return path


def answers(path, column, value) -> list[str]:
    (value_answer,) = probe(path, column, [value]).values
    return [answer.answer for answer in value_answer.row_groups]


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("row", [0, 1, 99])
def test_only_the_row_group_that_holds_a_value_may_hold_it(filtered, number, row):
    n = number * ROW_GROUP_ROWS + row
    expected = ["maybe" if at == number else "absent" for at in range(3)]
    assert answers(filtered, "id", n * 7) == answers(filtered, "id", str(n * 7)) == expected
    assert answers(filtered, "score", n / 4) == expected


def test_without_a_filter_the_dictionary_answers(filtered):
    remove_filters(filtered, ["name"], in_place=True)
    assert answers(filtered, "name", "name 7b") == ["absent"] * 3
    assert [
        each.answer for each in probe(filtered, "name", ["name 7b"], filters_only=True).inconclusive
    ] == ["no filter"]


@pytest.mark.parametrize(
    ("column", "value"), [("idd", 7), ("id", "seven"), ("id", 2**63), ("point", 1)]
)
def test_an_invalid_column_or_value_is_a_usage_error(filtered, column, value):
    with pytest.raises(UsageError) as caught:
        probe(filtered, column, [value])
    assert caught.value.file == str(filtered)
    assert caught.value.hint


def test_only_one_block_of_a_large_filter_is_read(tmp_path):
    path = write_column(tmp_path / "large.parquet", pa.array(range(50_000), pa.int64()))
    add_filters(path, ["v"], in_place=True)
    (place,) = places(path).values()
    footer = pq.read_metadata(path).serialized_size
    assert place.length > 60_000
    assert probe(path, "v", [17]).bytes_read < footer + 200
    many = probe(path, "v", range(10**6, 10**6 + 5000), filters_only=True)
    assert many.bytes_read < footer + place.length + 200


FIXTURES = sorted((Path(__file__).parent.parent.parent / "fixtures").glob("*.parquet"))
# parquet-java writes filters of BOOLEAN columns that hold nothing; `probe` says that it cannot say.
SIMPLE = (int, str, bytes, float)


def columns_with_filters(path: Path) -> list[str]:
    return [total.column for total in inspect(path).columns if "." not in total.column]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_no_stored_value_of_the_fixtures_is_absent(path):
    queries = 0
    with pq.ParquetFile(path) as file:
        for name in columns_with_filters(path):
            for row_group in range(file.num_row_groups):
                stored = file.read_row_group(row_group, columns=[name]).column(0).to_pylist()
                values = list(dict.fromkeys(value for value in stored if isinstance(value, SIMPLE)))
                try:
                    answers = probe(path, name, values).values
                except UsageError:
                    continue  # pyarrow shows it as another type; the corpus of types has those
                for value, answer in zip(values, answers, strict=True):
                    assert answer.row_groups[row_group].answer in (
                        "maybe",
                        "no filter",
                        "cannot say",
                    ), (name, value)
                queries += len(values)
    if path.stem.endswith("-filters"):
        assert queries > 0


VALUES = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [1, -2]),
    "int32": (pa.int32(), [1, -2]),
    "int64": (pa.int64(), [1, -2]),
    "uint64": (pa.uint64(), [1, 2**63]),
    "half": (pa.float16(), [np.float16(1.0), np.float16(-2.5)]),
    "float": (pa.float32(), [1.0, -2.5]),
    "double": (pa.float64(), [1.0, -2.5]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.00"), Decimal("-2.50")]),
    "date": (pa.date32(), [dt.date(2026, 1, 1), dt.date(1969, 1, 1)]),
    "time": (pa.time64("us"), [dt.time(1), dt.time(2)]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]),
    "string": (pa.string(), ["a", "null"]),
    "binary": (pa.binary(), [b"a", b"\xff"]),
    "fixed": (pa.binary(4), [b"abcd", b"null"]),
    "uuid": (pa.binary(16), [UUID(int=1).bytes]),
}
"""A name for each type, and values of it."""

ROW_GROUPS = {
    "nulls": [None] * 4,
    "some": [None, 0, None, 0],
    "values": [0, 0, 0, 0],
    "one": [0, 0, 0, None],
}
"""What the four rows of a row group are: null, or one of the values."""

WRITERS = {
    "as pyarrow writes": {},
    "without statistics": {"write_statistics": False},
    "without dictionaries": {"use_dictionary": False},
    "pages of version 2": {"data_page_version": "2.0"},
}


def write(
    path: Path, name: str, *, nested: bool = False, filters: bool = True, **options: object
) -> Path:
    kind, values = VALUES[name]
    rows = [
        None if row is None else values[at % len(values)]
        for rows in ROW_GROUPS.values()
        for at, row in enumerate(rows)
    ]
    column = pa.array(rows, kind)
    table = pa.table(
        {
            "v": pa.array([{"w": row} for row in rows], pa.struct([("w", kind)]))
            if nested
            else column
        }
    )
    pq.write_table(table, path, row_group_size=4, **options)
    if filters and name != "bool":
        sbbf_tool.add_filters(path, ["v.w" if nested else "v"], in_place=True)
    return path


@each("nested", {"flat": False, "nested": True})
@each("writer", list(WRITERS))
@each("name", list(VALUES), every=4)
def test_no_row_that_is_null_is_lost(tmp_path, name, writer, nested):
    path = write(tmp_path / "v.parquet", name, nested=nested, **WRITERS[writer])
    column = "v.w" if nested else "v"
    field = ds.field("v", "w") if nested else ds.field("v")
    expected = ds.dataset(path).count_rows(filter=field.is_null())
    assert expected == 7
    for values in ([None], [None, VALUES[name][1][0]]):
        report = sbbf_tool.prune(path, column, values)
        assert report.dataset().count_rows(filter=field.is_null()) == expected
    report = sbbf_tool.explain(path, column, None)
    assert not report.absent
    holding = [
        rows.num_rows
        for rows in (
            pq.ParquetFile(path).read_row_group(number).filter(field.is_null())
            for number in range(4)
        )
    ]
    assert holding == [4, 2, 0, 1]
    for row, nulls in zip(report.row_groups, holding, strict=True):
        assert (
            row.statistics in (("maybe",) if nulls else ("absent",))
            if writer != "without statistics"
            else ("cannot say",)
        )
        assert (row.dictionary, row.filter) in {(None, "cannot say"), ("cannot say", "cannot say")}
        assert row.is_absent == (nulls == 0 and writer != "without statistics")
    assert not sbbf_tool.probe(path, column, [None]).is_absent
    (hit,) = sbbf_tool.probe(str(path), column, (None,)).hits
    assert hit.row_groups == ((0, 1, 2, 3) if writer == "without statistics" else (0, 1, 3))


@each("rows", [[[1], []], [[1], None], [[1], [None]], [[1, 2], [3]]])
def test_null_in_a_list_is_never_ruled_out(tmp_path, rows):
    path = tmp_path / "l.parquet"
    pq.write_table(pa.table({"l": pa.array(rows, pa.list_(pa.int64()))}), path)
    assert not sbbf_tool.explain(path, "l", None).absent
    assert sbbf_tool.prune(path, "l", [None]).row_groups == 1


def test_a_required_column_has_no_null(tmp_path):
    path = tmp_path / "r.parquet"
    schema = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"v": [1, 2]}, schema), path, write_statistics=False)
    assert sbbf_tool.explain(path, "v", None).absent
    assert sbbf_tool.prune(path, "v", [None]).row_groups == 0


@each("name", list(VALUES))
def test_the_text_null_is_text_or_null_by_type(tmp_path, name):
    path = write(tmp_path / "v.parquet", name, filters=False)
    is_text = name in ("string", "binary")
    for text in ("null", "NULL"):
        report = sbbf_tool.explain(path, "v", text)
        (again,) = sbbf_tool.probe(path, "v", [text]).values
        assert (report.note, again.note) == (
            None if is_text else "nulls are never in a Bloom filter",
            None,
        )
        assert report.row_groups[0].statistics == ("absent" if is_text else "maybe")
