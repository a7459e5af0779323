"""Written values and the bytes that stand for them: one table per type, each row worked out by hand
from the specification."""

from __future__ import annotations

import datetime as dt
import struct
import uuid

import numpy as np
import pytest

from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.literals import format_plain, parse, parse_object
from sbbf_tool.parquet.logical import Logical
from sbbf_tool.parquet.notation import ABSENT, MAYBE
from support.tables import each


def column(physical: str, kind: str | None = None, *, length: int = 0, **details: object) -> Column:
    logical = Logical(kind, **details) if kind else None  # type: ignore[arg-type]
    return Column(0, ("v",), ("v",), physical, length, logical, 0, 0)


INT32, INT64, INT96 = column("INT32"), column("INT64"), column("INT96")
FLOAT, DOUBLE, HALF = (
    column("FLOAT"),
    column("DOUBLE"),
    column("FIXED_LEN_BYTE_ARRAY", "FLOAT16", length=2),
)
INT8, UINT8 = column("INT32", "INT", bits=8), column("INT32", "INT", bits=8, signed=False)
INT16, UINT16 = column("INT32", "INT", bits=16), column("INT32", "INT", bits=16, signed=False)
UINT32, UINT64 = (
    column("INT32", "INT", bits=32, signed=False),
    column("INT64", "INT", bits=64, signed=False),
)
STRING, ENUM, JSON = (
    column("BYTE_ARRAY", "STRING"),
    column("BYTE_ARRAY", "ENUM"),
    column("BYTE_ARRAY", "JSON"),
)
BYTES, FOUR_BYTES, BSON = (
    column("BYTE_ARRAY"),
    column("FIXED_LEN_BYTE_ARRAY", length=4),
    column("BYTE_ARRAY", "BSON"),
)
GEOMETRY, UUID = column("BYTE_ARRAY", "GEOMETRY"), column("FIXED_LEN_BYTE_ARRAY", "UUID", length=16)
DATE, INTERVAL = column("INT32", "DATE"), column("FIXED_LEN_BYTE_ARRAY", "INTERVAL", length=12)


def decimal(physical: str, precision: int, scale: int, length: int = 0) -> Column:
    return column(physical, "DECIMAL", precision=precision, scale=scale, length=length)


DECIMAL9, DECIMAL18 = decimal("INT32", 9, 2), decimal("INT64", 18, 4)
DECIMAL38, DECIMAL_BYTES = decimal("FIXED_LEN_BYTE_ARRAY", 38, 10, 16), decimal("BYTE_ARRAY", 9, 2)


def time(unit: str, *, utc: bool = True) -> Column:
    return column("INT32" if unit == "MILLIS" else "INT64", "TIME", unit=unit, utc=utc)


def timestamp(unit: str, *, utc: bool = True) -> Column:
    return column("INT64", "TIMESTAMP", unit=unit, utc=utc)


def i32(value: int) -> bytes:
    return struct.pack("<i", value)


def i64(value: int) -> bytes:
    return struct.pack("<q", value)


EXACT = [
    # Integers: the pattern of the physical type, narrow ones widened.
    (INT32, "0", i32(0)),
    (INT32, "2147483647", b"\xff\xff\xff\x7f"),
    (INT64, "-1", b"\xff" * 8),
    (UINT16, "65535", i32(65535)),
    (UINT32, "4294967295", b"\xff" * 4),
    (UINT64, "18446744073709551615", b"\xff" * 8),
    # Floating point: IEEE bits, rounded to the column's width.
    (FLOAT, "0.1", bytes.fromhex("cdcccc3d")),
    (FLOAT, "-inf", bytes.fromhex("000080ff")),
    (DOUBLE, "0.1", struct.pack("<d", 0.1)),
    (DOUBLE, "5e-324", b"\x01" + b"\x00" * 7),
    (HALF, "-1.5", bytes.fromhex("00be")),
    # Decimals: the unscaled integer, in whatever form the column has.
    (DECIMAL9, "12.3", i32(1230)),
    (DECIMAL18, "-0.0001", i64(-1)),
    (DECIMAL38, "1", (10**10).to_bytes(16, "big")),
    (DECIMAL38, "-0.0000000001", b"\xff" * 16),
    (decimal("FIXED_LEN_BYTE_ARRAY", 5, 2, 3), "-1.00", b"\xff\xff\x9c"),
    (decimal("FIXED_LEN_BYTE_ARRAY", 76, 0, 32), "9" * 76, (10**76 - 1).to_bytes(32, "big")),
    # Days, times of day, instants.
    (DATE, "1969-12-31", i32(-1)),
    (DATE, "2024-02-29", i32(19_782)),
    (DATE, "-0001-12-31", i32(-719_529)),
    (DATE, "+5881580-07-11", i32(2**31 - 1)),
    (time("MILLIS"), "00:00:01.5", i32(1500)),
    (time("MICROS"), "23:59:59.999999", i64(86_399_999_999)),
    (time("NANOS"), "12:00", i64(43_200 * 10**9)),
    (time("MICROS"), "24:00:00", i64(86_400_000_000)),
    (timestamp("MICROS"), "1969-12-31T23:59:59.999999Z", i64(-1)),
    (timestamp("NANOS"), "2024-03-01T12:34:56.123456789+01:30", i64(1_709_291_096_123_456_789)),
    (timestamp("MICROS", utc=False), "2024-03-01 12:34:56", i64(1_709_296_496_000_000)),
    (timestamp("MICROS"), "2024-03-01T00:00:00-00:00:01", i64(1_709_251_201_000_000)),
    (INT96, "1970-01-01T00:00:00.000000001Z", i64(1) + i32(2_440_588)),
    (INTERVAL, "P1Y2M3DT4H5M6.007S", struct.pack("<III", 14, 3, 14_706_007)),
    # Text and bytes.
    (STRING, "", b""),
    (STRING, "Grüße", "Grüße".encode()),
    (STRING, "0x41", b"0x41"),
    (STRING, "\udcff", b"\xff"),
    (BYTES, "0x00ff", b"\x00\xff"),
    (BYTES, "null", b"null"),
    (FOUR_BYTES, "0xdeadBEEF", b"\xde\xad\xbe\xef"),
    (BSON, "0x0500000000", b"\x05\0\0\0\0"),
    (
        UUID,
        "123E4567-e89b-12d3-a456-426614174000",
        bytes.fromhex("123e4567e89b12d3a456426614174000"),
    ),
    # Plain bytes, in hexadecimal, in any column that is not text.
    (INT32, "0x07000000", i32(7)),
    (UUID, "0x" + "ab" * 16, b"\xab" * 16),
    (INT96, "0x01000000000000008c3d2500", i64(1) + i32(2_440_588)),
]


@each("leaf, text, plain", EXACT)
def test_a_written_value_is_these_plain_bytes(leaf: Column, text: str, plain: bytes) -> None:
    literal = parse(leaf, text)

    assert (literal.forms[0], literal.verdict) == (plain, None)


@each(
    "leaf, texts, forms",
    [
        # Readers take the low bits of a number that is stored wider than its annotation.
        (UINT8, ["255", "-1"], {i32(255), i32(-1)}),
        (INT8, ["-1", "255"], {i32(255), i32(-1)}),
        (INT8, ["-128", "128"], {i32(128), i32(-128)}),
        (
            column("INT64", "INT", bits=32, signed=False),
            ["4294967295", "-1"],
            {i64(2**32 - 1), i64(-1)},
        ),
        # They wrap a time in UTC that an offset moved out of the day.
        (
            time("MILLIS"),
            ["20:08:21", "20:08:21 UTC"],
            {i32(72_501_000), i32(-13_899_000), i32(158_901_000)},
        ),
        (
            time("MILLIS"),
            ["-03:51:39", "0x" + i32(-13_899_000).hex()],
            {i32(72_501_000), i32(-13_899_000), i32(158_901_000)},
        ),
        (time("MICROS"), ["25:00:00"], {i64(hour * 3_600_000_000) for hour in (1, 25, -23)}),
        (time("MICROS", utc=False), ["25:00:00"], {i64(25 * 3_600_000_000)}),
        (DATE, ["0044-03-15 (BC)", "-0043-03-15"], {i32(-735_160)}),
        (DATE, ["infinity"], {i32(2**31 - 1)}),
        (DATE, ["-infinity"], {i32(1 - 2**31)}),
        (
            timestamp("MICROS", utc=False),
            ["0001-12-31 (BC) 23:59:59.999999", "0000-12-31T23:59:59.999999"],
            {i64(-62_135_596_800_000_001)},
        ),
        (timestamp("MICROS"), ["infinity"], {i64(2**63 - 1)}),
        (INTERVAL, ["P-1M5D", "P4294967295M5D"], {struct.pack("<iII", -1, 5, 0)}),
        # Instants as BigQuery, Athena, Trino, Go and pyarrow print them.
        (
            timestamp("MILLIS"),
            ["1970-01-01 00:00:01 UTC", "1970-01-01 00:00:01.000 GMT", "1970-01-01 00:00:01 Z"],
            {i64(1000)},
        ),
        (
            timestamp("MILLIS"),
            ["1970-01-01 01:00:01 +0100 CET", "1970-01-01 01:00:01 Europe/Paris"],
            {i64(1000)},
        ),
        (
            timestamp("MILLIS"),
            ["2024-10-27 02:30:00 Europe/Paris"],
            {i64(1_729_989_000_000), i64(1_729_992_600_000)},
        ),
        (INT96, ["1970-01-02 00:00:00.000 UTC"], {i64(0) + i32(2_440_589)}),
    ],
)
def test_a_value_is_queried_in_all_forms_in_which_it_may_be_stored(
    leaf: Column, texts: list[str], forms: set[bytes]
) -> None:
    for text in texts:
        assert set(parse(leaf, text).forms) == forms, text


NO_VALUE = [
    (
        INT32,
        ["", "1.0", "2147483648", "-2147483649", "0x00", "1_000", "--1", "٣", "true", "9" * 5000],
    ),
    (INT64, ["3.5", "-0.5", "1e-3", "nan", "inf", "1e400", " 3.5", "1_0.5", "3.5.5"]),
    (INT8, ["256", "-129"]),
    (UINT8, ["-129", "256"]),
    (UINT64, ["-1", "18446744073709551616"]),
    (FLOAT, ["1e39", "", "one", "0x1p3", "1_0.0", "1e400"]),
    (DOUBLE, ["1e400", "-1e400", "٣", "9" * 400]),
    (HALF, ["65520", "1e9"]),
    (
        DECIMAL9,
        ["100000000", "-100000000.00", "NaN", "inf", "1,5", "", "1e3000", "1_0", "1" * 1001],
    ),
    (decimal("FIXED_LEN_BYTE_ARRAY", 9, 0, 1), ["128", "-129"]),
    (
        DATE,
        [
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-04-31",
            "24-01-01",
            "2024-01-01T00:00:00",
            "5881580-07-12",
            "1 May 2024",
        ],
    ),
    (
        time("MILLIS"),
        ["600:00:00", "12:60", "12:00:60", "12:00:00+01:00", "12:00:00 Europe/Paris", "noon", "12"],
    ),
    (time("MICROS", utc=False), ["12:00:00Z"]),
    (
        timestamp("MICROS"),
        [
            "2024-02-30T00:00:00",
            "2024-01-01T25:00:00",
            "2024-01-01T00:00:00+24:00",
            "now",
            "400000-01-01T00:00:00Z",
        ],
    ),
    (timestamp("MICROS", utc=False), ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00+01:00"]),
    (INT96, ["yesterday", "0x00", "9999999-01-01"]),
    (
        INTERVAL,
        ["P", "PT", "P1DT", "1 day", "P-3000000000D", "P1.5D", "P4294967296M", "PT5000000S"],
    ),
    (BYTES, ["0x0", "0xzz"]),
    (FOUR_BYTES, ["abc", "0x0011", "Grüße"]),
    (BSON, ['{"a": 1}', "null?"]),
    (GEOMETRY, ["POINT (1 2)", ""]),
    (UUID, ["123e4567", "0x00", "123e4567-e89b-12d3-a456-42661417400g"]),
    (STRING, ["\ud800"]),
]


@each("leaf, text", [(leaf, text) for leaf, texts in NO_VALUE for text in texts])
def test_what_cannot_be_a_value_is_a_usage_error_that_says_what_can(
    leaf: Column, text: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse(leaf, text)

    error = caught.value
    assert error.exit_code == 2
    assert leaf.type_name in error.message
    assert error.place == "column v"
    assert error.hint is not None
    assert error.hint.startswith("it takes ")
    assert len(error.message) < 200


@each(
    "leaf, texts, unit",
    [
        (DECIMAL9, ["1.001", "1e-900"], "scale of 2"),
        (DECIMAL_BYTES, ["0.005"], "scale of 2"),
        (time("MILLIS"), ["12:00:00.0001"], "unit, millis"),
        (timestamp("MILLIS"), ["2024-01-01T00:00:00.0005Z"], "unit, millis"),
        (timestamp("MICROS"), ["2024-01-01T00:00:00.0000001Z"], "unit, micros"),
        (timestamp("NANOS"), ["2024-01-01T00:00:00.0000000001Z"], "unit, nanos"),
        (INT96, ["2024-01-01T00:00:00.0000000001"], "unit, nanos"),
        (INTERVAL, ["PT0.0001S"], "unit, millis"),
    ],
)
def test_what_is_finer_than_the_unit_is_absent_and_not_rounded(
    leaf: Column, texts: list[str], unit: str
) -> None:
    note = f"more {'digits' if 'scale' in unit else 'precise'} than the column's {unit}"
    for literal in (parse(leaf, text) for text in texts):
        assert (literal.forms, literal.verdict, literal.note) == ((), ABSENT, note)


@each("leaf", [FLOAT, DOUBLE, HALF])
def test_a_zero_is_queried_with_both_signs_and_nan_not_at_all(leaf: Column) -> None:
    width = leaf.width or 0
    zeros = (bytes(width), bytes(width - 1) + b"\x80")

    for text in ("0", "-0.0", "0e5", "1e-999", f"0x{zeros[1].hex()}"):
        assert set(parse(leaf, text).forms) == set(zeros)
    for text in ("nan", "NaN", "-nan"):
        assert parse(leaf, text).verdict == MAYBE
    assert parse(leaf, "0x" + "ff" * width).verdict == MAYBE


def test_a_zero_that_stands_for_a_smaller_number_is_not_certain() -> None:
    for leaf, text in ((FLOAT, "1e-50"), (FLOAT, "-1e-50"), (HALF, "1e-10")):
        literal = parse(leaf, text)
        assert set(literal.forms) == set(literal.rounded) == set(parse(leaf, "0").forms)
    assert parse(FLOAT, "0").rounded == ()


def test_text_half_way_between_two_narrow_numbers_is_queried_as_both() -> None:
    """As a double it is exactly half way, so rounding it again may go the wrong way: 1 + 2^-24 +
    2^-60 is above, and is not seen."""
    low, high = struct.pack("<f", 1.0), struct.pack("<f", 1.0 + 2**-23)

    assert set(parse(FLOAT, "1.000000059604644775390625000000000000867").forms) == {low, high}
    assert parse(FLOAT, "1.00000011920928955078125").forms == (high,)
    assert set(parse(HALF, "2049").forms) == {struct.pack("<e", 2048), struct.pack("<e", 2050)}


def test_a_byte_array_decimal_is_also_queried_with_superfluous_sign_bytes() -> None:
    literal = parse(DECIMAL_BYTES, "-1.28")

    assert literal.forms == tuple(
        (-128).to_bytes(width, "big", signed=True) for width in range(1, 33)
    )
    assert (
        literal.note
        == "a BYTE_ARRAY decimal has other forms, with superfluous sign bytes: queried are "
        "those of 1 to 32 bytes"
    )
    assert parse(DECIMAL_BYTES, "0").forms[0] == b"\x00"
    assert parse(DECIMAL_BYTES, "1.28").forms[0] == b"\x00\x80"
    assert parse(decimal("BYTE_ARRAY", 100, 0), "1").forms[-1] == (1).to_bytes(42, "big")


@each(
    "leaf, value, plain",
    [
        (UINT64, np.uint64(2**64 - 1), b"\xff" * 8),
        (FLOAT, np.float32(0.1), struct.pack("<f", 0.1)),
        (HALF, np.float16(1.5), bytes.fromhex("003e")),
        (DATE, np.datetime64("1970-01-02"), i32(1)),
        (
            timestamp("MICROS"),
            dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
            i64(0),
        ),
        (timestamp("MICROS", utc=False), dt.datetime(1970, 1, 1, 0, 0, 1), i64(1_000_000)),
        (timestamp("NANOS", utc=False), np.datetime64("1970-01-01T00:00:00.000000001"), i64(1)),
        (INTERVAL, dt.timedelta(days=1, milliseconds=5), struct.pack("<III", 0, 1, 5)),
        (INTERVAL, np.timedelta64(86_405, "s"), struct.pack("<III", 0, 1, 5000)),
        (INTERVAL, np.timedelta64(5_000_000, "ns"), struct.pack("<III", 0, 0, 5)),
        (UUID, uuid.UUID(int=1), bytes(15) + b"\x01"),
        (STRING, b"\xff\x00", b"\xff\x00"),
        (BYTES, bytearray(b"ab"), b"ab"),
        (FOUR_BYTES, memoryview(b"abcd"), b"abcd"),
        (INT96, i64(1) + i32(2_440_588), i64(1) + i32(2_440_588)),
    ],
)
def test_python_objects(leaf: Column, value: object, plain: bytes) -> None:
    assert parse_object(leaf, value).forms[0] == plain


@each(
    "leaf, plain, text",
    [
        (INT8, i32(300), "0x2c010000"),
        (UINT8, i32(-1), "255"),
        (time("MILLIS"), i32(-1), "-00:00:00.001"),
        (time("MICROS"), i64(86_400_000_000), "24:00:00"),
        (timestamp("MICROS"), i64(-(2**63)), "-290308-12-21T19:59:05.224192Z"),
        (timestamp("NANOS", utc=False), i64(1), "1970-01-01T00:00:00.000000001"),
        (DATE, i32(-(2**31)), "-5877641-06-23"),
        (INT96, i64(86_400 * 10**9) + i32(2_440_588), "0x00004f91944e00008c3d2500"),
        (INT96, i64(82_800 * 10**9) + i32(2_440_587), "1969-12-31T23:00:00Z"),
        (INT96, i64(-3_600 * 10**9) + i32(2_440_588), "1969-12-31T23:00:00Z"),
        (FLOAT, struct.pack("<f", 0.1), "0.1"),
        (FLOAT, bytes.fromhex("ffff7f7f"), "3.4028235e+38"),
        (HALF, bytes.fromhex("ff7b"), "65500.0"),
        (DECIMAL9, i32(-5), "-0.05"),
        (DECIMAL_BYTES, b"\x00\x00\x01", "0.01"),
        (STRING, b"\xff", "\udcff"),
        (INTERVAL, struct.pack("<III", 14, 3, 14_706_007), "P14M3DT14706.007S"),
    ],
)
def test_stored_bytes_as_a_person_reads_them(leaf: Column, plain: bytes, text: str) -> None:
    assert format_plain(leaf, plain) == text
