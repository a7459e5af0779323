"""A column for every type, and the rows for it: a few values, many, nothing but nulls, no rows at
all, and the extremes.

A `Kind` is a type with values that are computed from a row's number, so that all writers write the
same rows. `corpus_writers` writes them; `corpus_readers` reads them back with an engine that did
not write them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

VARIANTS = ("few", "many", "nulls", "none", "extremes")
GROUPS, ROWS_PER_GROUP = 3, 120
NULL_EVERY = 7

_EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_NAIVE = _EPOCH.replace(tzinfo=None)


@dataclass(frozen=True)
class Kind:
    """A column: `value(n)` differs from row to row as far as the type allows; `extremes` are values
    that readers often get wrong."""

    name: str
    arrow: pa.DataType
    value: Callable[[int], Any]
    extremes: list[Any] = field(default_factory=list)


def digest(n: int) -> bytes:
    return hashlib.md5(str(n).encode(), usedforsecurity=False).digest()


def _utc(moments: list[dt.datetime]) -> list[dt.datetime]:
    return [moment.replace(tzinfo=dt.UTC) for moment in moments]


def _decimal(name: str, arrow: pa.DataType, step: int, offset: int) -> Kind:
    most = 10**arrow.precision - 1
    edges = [
        unscaled
        for unscaled in (0, 1, -1, most, -most, 127, 128, -128, -129)
        if abs(unscaled) <= most
    ]
    return Kind(
        name,
        arrow,
        lambda n: _scale(n * step + offset, arrow),
        [_scale(unscaled, arrow) for unscaled in edges],
    )


def _scale(unscaled: int, arrow: pa.DataType) -> Decimal:
    return Decimal(unscaled).scaleb(-arrow.scale, Context(prec=arrow.precision))


INTEGERS = [
    Kind("i8", pa.int8(), lambda n: n % 250 - 125, [-128, -1, 0, 1, 127]),
    Kind("i16", pa.int16(), lambda n: n * 51 - 9000, [-(2**15), -1, 0, 2**15 - 1]),
    Kind("i32", pa.int32(), lambda n: n * 1_000_003 - 200_000_000, [-(2**31), -1, 0, 2**31 - 1]),
    Kind("i64", pa.int64(), lambda n: n * 10**16 - 10**17, [-(2**63), -1, 0, 2**63 - 1]),
    Kind("u8", pa.uint8(), lambda n: n % 250, [0, 127, 128, 255]),
    Kind("u16", pa.uint16(), lambda n: n * 91, [0, 2**15, 2**16 - 1]),
    Kind("u32", pa.uint32(), lambda n: 2**32 - 1 - 11 * n, [0, 2**31 - 1, 2**31, 2**32 - 1]),
    Kind("u64", pa.uint64(), lambda n: 2**64 - 1 - 11 * n, [0, 2**63 - 1, 2**63, 2**64 - 1]),
]
_NUMBERS = [1.0, -1.0, float("inf"), float("-inf")]
_HALVES = [np.float16(number) for number in (65504, -65504, 6e-8, *_NUMBERS)]
FLOATS = [
    Kind("f16", pa.float16(), lambda n: np.float16((n - 40) / 8 or 99), _HALVES),
    Kind(
        "f32",
        pa.float32(),
        lambda n: n * 0.25 + 0.125,
        [3.4028234663852886e38, 1.401298464324817e-45, *_NUMBERS],
    ),
    Kind(
        "f64",
        pa.float64(),
        lambda n: n * 1.1 + 0.3,
        [1.7976931348623157e308, 5e-324, 0.1, *_NUMBERS],
    ),
]
_SPECIAL = [0.0, -0.0, float("nan")]
ZEROS_AND_NANS = [
    Kind(
        "f16_zero",
        pa.float16(),
        lambda n: np.float16(n % 50),
        [np.float16(number) for number in _SPECIAL],
    ),
    Kind(
        "f32_zero",
        pa.float32(),
        lambda n: float(n % 50),
        [*_SPECIAL, np.uint32(0x7FC00001).view(np.float32)],
    ),
    Kind(
        "f64_zero",
        pa.float64(),
        lambda n: float(n % 50),
        [*_SPECIAL, np.uint64(0x7FF8000000000001).view(np.float64)],
    ),
]
"""Equal values with different bits: our filters contain all of these forms, the writer's filters
only the stored ones."""
DECIMALS = [
    Kind(
        "dec2",
        pa.decimal128(2, 1),
        lambda n: Decimal(n % 90).scaleb(-1),
        [Decimal("0.0"), Decimal("9.9"), Decimal("-9.9")],
    ),
    _decimal("dec9", pa.decimal128(9, 2), 131, -10_000),
    _decimal("dec18", pa.decimal128(18, 4), 10**12 + 7, -(10**13)),
    _decimal("dec38", pa.decimal128(38, 10), 10**30 + 7, -(10**31)),
]
WIDE_DECIMALS = [_decimal("dec76", pa.decimal256(76, 5), 10**60 + 7, -(10**61))]
TEXTS = [
    Kind(
        "text",
        pa.string(),
        lambda n: f"text {n}",
        ["", " ", "null", "0x00", "Grüße 👋", "a\0b", "x" * 3000],
    ),
    Kind(
        "blob",
        pa.binary(),
        lambda n: digest(n)[: n % 9 + 2],
        [b"", b"\0", b"\xff\xfe", bytes(3000)],
    ),
]
FIXED_BYTES = [
    Kind("fixed4", pa.binary(4), lambda n: n.to_bytes(4, "big"), [bytes(4), b"\xff" * 4, b"null"]),
    Kind("fixed16", pa.binary(16), digest, [bytes(16), b"\xff" * 16]),
]
DAYS = [
    Kind(
        "day",
        pa.date32(),
        lambda n: _NAIVE.date() + dt.timedelta(days=3 * n),
        [dt.date.min, dt.date(1969, 12, 31), dt.date.max],
    )
]


def _moment(start: dt.datetime, n: int, unit: str) -> dt.datetime:
    return start + n * dt.timedelta(hours=7, **{unit: 1})


TIMES = [
    Kind(
        "clock_ms",
        pa.time32("ms"),
        lambda n: _moment(_NAIVE, n, "milliseconds").time(),
        [dt.time(0), dt.time(23, 59, 59, 999000)],
    ),
    Kind(
        "clock_us",
        pa.time64("us"),
        lambda n: _moment(_NAIVE, n, "microseconds").time(),
        [dt.time(0), dt.time.max],
    ),
    Kind("clock_ns", pa.time64("ns"), lambda n: 61_000_000_001 * n, [0, 1, 86_400 * 10**9 - 1]),
]
_MILLIS = [
    dt.datetime(1, 1, 1),
    _NAIVE,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
    dt.datetime(9999, 12, 31, 23, 59, 59),
]
_MICROS = [*_MILLIS, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]
_NANOS = [-(2**63) + 1, -1, 0, 1, 2**63 - 1]
MICROS = [
    Kind(
        "at_us",
        pa.timestamp("us", "UTC"),
        lambda n: _moment(_EPOCH, n, "microseconds"),
        _utc(_MICROS),
    ),
    Kind("local_us", pa.timestamp("us"), lambda n: _moment(_NAIVE, n, "microseconds"), _MICROS),
]
OTHER_MOMENTS = [
    Kind(
        "at_ms",
        pa.timestamp("ms", "UTC"),
        lambda n: _moment(_EPOCH, n, "milliseconds"),
        _utc(_MILLIS),
    ),
    Kind("local_ms", pa.timestamp("ms"), lambda n: _moment(_NAIVE, n, "milliseconds"), _MILLIS),
    Kind(
        "at_ns",
        pa.timestamp("ns", "UTC"),
        lambda n: 1_700_000_000_000_000_000 + n * 1_000_000_007,
        _NANOS,
    ),
    Kind(
        "local_ns",
        pa.timestamp("ns"),
        lambda n: 1_700_000_000_000_000_000 + n * 1_000_000_007,
        _NANOS,
    ),
]


def _tree(n: int) -> dict[str, Any]:
    return {"a": [[(f"k{n}", {"x": n}), ("none", None)], None, []] if n % 5 else None}


NESTED = [
    Kind(
        "point",
        pa.struct([("x", pa.int32()), ("label", pa.string())]),
        lambda n: {"x": n, "label": f"p{n}"},
        [{"x": None, "label": ""}],
    ),
    Kind(
        "words",
        pa.list_(pa.string()),
        lambda n: [f"w{n}-{i}" for i in range(n % 4)],
        [[], [None], [""]],
    ),
    Kind(
        "cube",
        pa.list_(pa.list_(pa.list_(pa.int32()))),
        lambda n: [[[n, n + 1], None, []], []],
        [None, [], [[]], [[[]]], [[[None]]]],
    ),
    Kind(
        "dict",
        pa.map_(pa.string(), pa.int64()),
        lambda n: [(f"k{n}", n), ("null", None)],
        [[], [("", 0)]],
    ),
    Kind(
        "points",
        pa.list_(pa.struct([("x", pa.int32())])),
        lambda n: [{"x": n}, None],
        [[], [None], [{"x": None}]],
    ),
    Kind(
        "tree",
        pa.struct([("a", pa.list_(pa.map_(pa.string(), pa.struct([("x", pa.int32())]))))]),
        _tree,
        [{"a": None}, {"a": []}],
    ),
]
BOOLEANS = [Kind("flag", pa.bool_(), lambda n: n % 3 == 0, [True, False])]


def table(kinds: list[Kind], variant: str) -> pa.Table:
    """Return the rows of a variant, one batch per row group; `n` numbers the rows.

    The numbers of "many" are even, and the ranges of its groups overlap, so that there are absent
    values between minimum and maximum. The variant "others" has the numbers between them, and so
    these absent values.
    """
    if variant == "many":
        return rows(
            kinds,
            *(range(2 * group, 2 * GROUPS * ROWS_PER_GROUP, 2 * GROUPS) for group in range(GROUPS)),
        )
    if variant == "others":
        return rows(
            kinds, range(GROUPS * ROWS_PER_GROUP // 2 * 2 + 1, GROUPS * ROWS_PER_GROUP + 200, 2)
        )
    return rows(kinds, range(0 if variant == "none" else 50), variant=variant)


def rows(kinds: list[Kind], *groups: range, variant: str = "many") -> pa.Table:
    """Return the rows of these numbers, one batch per group."""
    schema = pa.schema([("n", pa.int64()), *((kind.name, kind.arrow) for kind in kinds)])
    batches = []
    for numbers in groups:
        arrays = [
            pa.array(numbers, pa.int64()),
            *(pa.array([_value(kind, variant, n) for n in numbers], kind.arrow) for kind in kinds),
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _value(kind: Kind, variant: str, n: int) -> Any:
    if variant == "nulls" or n % NULL_EVERY == 3:
        return None
    if variant == "extremes":
        return kind.extremes[
            (n + n // NULL_EVERY) % len(kind.extremes)
        ]  # without the second term the nulls may always fall on the same value
    return kind.value(n % 3 if variant == "few" else n)
