"""Any value of any type, written to a file that then gets a filter: queried as a Python object and
as text, it is `maybe`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sbbf_tool import add_filters, probe
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.literals import format_plain
from sbbf_tool.parquet.values import read_chunk
from support.corpus_edits import INTERVAL, annotate, decimal
from support.newer_pyarrow import arrow_type

pytestmark = pytest.mark.slow


def integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    return (
        st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if signed
        else st.integers(0, 2**bits - 1)
    )


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(
        lambda n: Decimal(f"{n}e-{scale}")
    )


def to_millis(moment: Any) -> Any:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


NAIVE, AWARE = st.datetimes(), st.datetimes(timezones=st.just(dt.UTC))
TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *((pa.type_for_alias(f"int{bits}"), integers(bits)) for bits in (8, 16, 32, 64)),
    *((pa.type_for_alias(f"uint{bits}"), integers(bits, signed=False)) for bits in (8, 16, 32, 64)),
    (pa.float16(), st.floats(width=16).map(np.float16)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    *((pa.decimal128(p, s), decimals(p, s)) for p, s in ((1, 0), (9, 2), (18, 18), (38, 7))),
    (pa.decimal256(76, 30), decimals(76, 30)),
    (pa.string(), st.text()),
    (pa.binary(), st.binary()),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.date32(), st.dates()),
    (pa.time32("ms"), st.times().map(to_millis)),
    (pa.time64("us"), st.times()),
    (pa.timestamp("ms"), NAIVE.map(to_millis)),
    (pa.timestamp("ms", "UTC"), AWARE.map(to_millis)),
    (pa.timestamp("us"), NAIVE),
    (pa.timestamp("us", "UTC"), AWARE),
    (arrow_type("uuid"), st.uuids().map(lambda key: key.bytes)),
    (pa.list_(pa.list_(pa.int32())), st.lists(st.lists(integers(32), max_size=3), max_size=3)),
    (
        pa.map_(pa.string(), pa.int64()),
        st.lists(st.tuples(st.text(max_size=5), integers(64)), max_size=3),
    ),
]


def leaves_of(value: Any) -> list[Any]:
    """The scalars in nested Python values; a map's entries are tuples."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves_of(item)]
    return [] if value is None else [value]


@settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from(TYPES), st.data())
def test_any_value_of_any_type(
    tmp_path: Path, typed: tuple[pa.DataType, st.SearchStrategy[Any]], data: st.DataObject
) -> None:
    kind, values = typed
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=12))
    path, output = tmp_path / "f.parquet", tmp_path / "with_filters.parquet"
    options = {
        "use_dictionary": data.draw(st.booleans()),
        "store_decimal_as_integer": data.draw(st.booleans()),
    }
    pq.write_table(
        pa.table({"v": pa.array(rows, kind)}),
        path,
        row_group_size=data.draw(st.integers(1, 12)),
        **options,
    )

    probe_values(path, output, leaves_of(rows) if not pa.types.is_map(kind) else None)


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from([decimal(38, 3), INTERVAL]), st.data())
def test_any_bytes_of_a_type_that_pyarrow_does_not_write(
    tmp_path: Path, annotation: dict[str, Any], data: st.DataObject
) -> None:
    """Bytes of a decimal with whatever padding; months, days and milliseconds up to the last
    bit."""
    width = 12 if annotation is INTERVAL else None
    padded = st.builds(
        lambda n, size: n.to_bytes(size, "big", signed=True), integers(64), st.integers(8, 32)
    )
    value = st.binary(min_size=width, max_size=width) if width else st.binary(max_size=16) | padded
    rows = data.draw(st.lists(st.none() | value, min_size=1, max_size=12))
    path, output = tmp_path / "f.parquet", tmp_path / "with_filters.parquet"
    pq.write_table(
        pa.table({"v": pa.array(rows, pa.binary(width) if width else pa.binary())}), path
    )
    annotate(path, {"v": annotation})

    probe_values(path, output, None)


def probe_values(path: Path, output: Path, objects: list[Any] | None) -> None:
    """Query the new filters for these objects, and for every stored value as text and as bytes."""
    output.unlink(missing_ok=True)
    with ParquetFile.open(path) as file:
        columns = file.footer.columns
        add_filters(path, [column.name for column in columns], output=output)
        for column in columns:
            plain = [
                values[at]
                for group in range(file.footer.num_row_groups)
                for values in read_chunk(file.footer, group, column, file.pages(group, column))
                for at in range(len(values))
            ]
            queries = [*plain, *(format_plain(column, value) for value in plain), *(objects or [])]
            assert [
                answer.value
                for answer in probe(output, column.name, queries).values
                if answer.is_absent
            ] == []
