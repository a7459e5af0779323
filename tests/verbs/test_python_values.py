"""Values as Python objects: columns and scalars of pyarrow, pandas, Polars and numpy mean what they
mean there, or are usage errors."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import SbbfError, UsageError, add_filters, explain, probe, prune
from sbbf_tool.arguments import as_value
from support.tables import each

if not hasattr(pa, "uuid"):
    pytest.skip("pyarrow 18 is the first that has arrays of UUIDs", allow_module_level=True)

NANOS = 1_767_225_600_123_456_789
COLUMNS = {
    "int8": pa.array([1, -2, None], pa.int8()),
    "uint64": pa.array([2**64 - 1, 5, None], pa.uint64()),
    "float": pa.array([0.1, -3.5, None], pa.float32()),
    "half": pa.array([np.float16(0.5), np.float16(-3.5), None], pa.float16()),
    "double": pa.array([0.1, 1e300, None]),
    "decimal": pa.array(
        [Decimal("1.10"), Decimal("-99999999999999999999.99"), None], pa.decimal128(30, 2)
    ),
    "text": pa.array(["a", "null", None]),
    "large_text": pa.array(["a", "null", None], pa.large_string()),
    "view": pa.array(["a", "a longer text than fits", None], pa.string_view()),
    "bytes": pa.array([b"x", b"0x00", None]),
    "fixed": pa.array([b"abcd", b"\0\1\2\3", None], pa.binary(4)),
    "date": pa.array([dt.date(2026, 1, 31), dt.date(1, 1, 1), None]),
    "date64": pa.array([dt.date(2026, 1, 31), dt.date(1969, 1, 1), None], pa.date64()),
    "time_ms": pa.array([dt.time(1, 2, 3, 4000), dt.time(23, 59), None], pa.time32("ms")),
    "time_ns": pa.array([1, 86_399_999_999_999, None], pa.time64("ns")),
    "instant_ns": pa.array([NANOS, -1, None], pa.timestamp("ns", "UTC")),
    "instant_zone": pa.array([NANOS // 1000, -1, None], pa.timestamp("us", "Europe/Berlin")),
    "local_ms": pa.array(
        [dt.datetime(2026, 1, 31, 1, 2, 3), dt.datetime(1, 1, 1), None], pa.timestamp("ms")
    ),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "uuid": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, None], pa.binary(16))
    ),
}
CONTAINERS: dict[str, Callable[[pa.Array], Any]] = {
    "array": lambda array: array,
    "chunked": lambda array: pa.chunked_array([array[:1], array[1:]]),
    "scalars": list,
    "one-scalar": lambda array: array[0],
    "dictionary": lambda array: (
        array if isinstance(array, pa.ExtensionArray) else array.dictionary_encode()
    ),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("values") / "a.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    add_filters(path, list(COLUMNS), in_place=True)
    return path


def answers_of(path: Path, name: str, values: Any) -> list[str]:
    """The answers of the only row group, each once."""
    assert prune(path, name, values).files
    return sorted({value.row_groups[0].answer for value in probe(path, name, values).values})


@each("name", list(COLUMNS))
@each("container", list(CONTAINERS))
def test_what_arrow_holds_is_found(path: Path, name: str, container: str) -> None:
    if container == "dictionary" and pa.types.is_dictionary(COLUMNS[name].type):
        return
    values = CONTAINERS[container](COLUMNS[name])
    assert answers_of(path, name, values) == ["maybe"]
    assert not explain(path, name, COLUMNS[name][0]).absent


PACKS: dict[str, Callable[[pa.Array], Any]] = {
    "polars": pl.Series,
    "pandas-arrow": lambda array: array.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas": lambda array: array.to_pandas(),
}
CANNOT_HOLD = {
    # Types that become others: DATE an instant, integers with nulls a float, nanoseconds an error.
    "polars": {"half", "uuid", "view", "fixed", "date64"},
    "pandas-arrow": {"half", "uuid", "view"},
    "pandas": {"half", "uuid", "view", "int8", "uint64", "time_ns"},
}


@each(
    "pack, name",
    [(pack, name) for pack in PACKS for name in COLUMNS if name not in CANNOT_HOLD[pack]],
)
def test_columns_of_polars_and_pandas_are_found(path: Path, pack: str, name: str) -> None:
    """A float column of pandas has NaN for null, which is `maybe`."""
    assert "absent" not in answers_of(path, name, PACKS[pack](COLUMNS[name]))


@each(
    "value",
    [
        *(
            np.timedelta64(2, "ns"),
            np.timedelta64(3, "s"),
            np.timedelta64(1, "Y"),
            np.complex128(1),
            object(),
            pd.Period("2026-01"),
            [1],
            {},
        ),
        *(
            pa.scalar([1]),
            pa.scalar({"a": 1}),
            pa.scalar(5, pa.duration("us")),
            pa.scalar((1, 2, 3), pa.month_day_nano_interval()),
            True,
        ),
        *(
            pd.Timedelta(1),
            pd.Interval(0, 1),
            np.True_,
            Path("a"),
            pa.table({"a": [1]}),
            pd.DataFrame({"a": [1]}),
            range,
        ),
    ],
)
@each("name", ["int8", "double", "text", "instant_ns", "decimal"])
def test_what_is_no_value_of_the_column_is_a_usage_error(path: Path, name: str, value: Any) -> None:
    for function in (probe, prune, explain):
        with pytest.raises(SbbfError) as caught:
            function(path, name, [value])
        assert isinstance(caught.value, UsageError)


@each(
    "null",
    [
        None,
        pd.NA,
        pd.NaT,
        np.datetime64("NaT"),
        np.timedelta64("NaT"),
        pa.scalar(None, pa.int8()),
        np.ma.masked,
    ],
)
def test_nulls_of_every_library_are_null(path: Path, null: Any) -> None:
    assert as_value(null) is None
    for name in COLUMNS:
        assert [value.row_groups[0].answer for value in probe(path, name, [null]).values] == [
            "maybe"
        ]
        assert prune(path, name, [null]).files
        assert not explain(path, name, null).absent
