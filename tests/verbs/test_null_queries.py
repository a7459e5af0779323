"""A query for null keeps every row group in which a row may be null, whatever the column's type and whatever the file states of it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import sbbf_tool
from support.tables import each

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

ROW_GROUPS = {"nulls": [None] * 4, "some": [None, 0, None, 0], "values": [0, 0, 0, 0], "one": [0, 0, 0, None]}
"""What the four rows of a row group are: null, or one of the values."""

WRITERS = {
    "as pyarrow writes": {},
    "without statistics": {"write_statistics": False},
    "without dictionaries": {"use_dictionary": False},
    "pages of version 2": {"data_page_version": "2.0"},
}


def write(path: Path, name: str, *, nested: bool = False, filters: bool = True, **options: object) -> Path:
    kind, values = VALUES[name]
    rows = [None if row is None else values[at % len(values)] for rows in ROW_GROUPS.values() for at, row in enumerate(rows)]
    column = pa.array(rows, kind)
    table = pa.table({"v": pa.array([{"w": row} for row in rows], pa.struct([("w", kind)])) if nested else column})
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
    holding = [rows.num_rows for rows in (pq.ParquetFile(path).read_row_group(number).filter(field.is_null()) for number in range(4))]
    assert holding == [4, 2, 0, 1]
    for row, nulls in zip(report.row_groups, holding, strict=True):
        assert row.statistics in (("maybe",) if nulls else ("absent",)) if writer != "without statistics" else ("cannot say",)
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
        assert (report.note, again.note) == (None if is_text else "nulls are never in a Bloom filter", None)
        assert report.row_groups[0].statistics == ("absent" if is_text else "maybe")
