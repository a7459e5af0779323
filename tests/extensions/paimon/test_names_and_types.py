"""Names in modified UTF-8, type texts, options, and names of partitions' directories."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon.index_container import build_utf, parse_utf
from sbbf_tool.extensions.paimon.index_options import (
    IndexRequest,
    parse_bloom_columns,
    parse_manifest_threshold,
    parse_memory_size,
)
from sbbf_tool.extensions.paimon.manifest import partition_stats
from sbbf_tool.extensions.paimon.partition import (
    Timestamp,
    Value,
    build_row,
    build_segments,
    display_value,
    escape,
    parse_row,
)
from sbbf_tool.extensions.paimon.table_schema import (
    DataType,
    TableSchema,
    parse_data_type,
    parse_fields,
    parse_type_text,
)
from support.tables import each

text_with_surrogates = st.text(st.characters(exclude_categories=()), max_size=30)


@given(text_with_surrogates)
def test_any_name_comes_back(name: str) -> None:
    data = build_utf(name)
    combined_name = name.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert parse_utf(data, 0, len(data)) == (combined_name, len(data))


NAMES = [
    ("", "0000"),
    ("a", "000161"),
    ("\0", "0002c080"),
    ("é", "0002c3a9"),
    ("日", "0003e697a5"),
    ("\U0001f600", "0006eda0bdedb880"),
]


def test_the_bytes_of_names() -> None:
    assert [(name, build_utf(name).hex()) for name, _ in NAMES] == NAMES
    assert len(build_utf("x" * 65535)) == 65537
    with pytest.raises(UsageError):
        build_utf("x" * 65536)


@each(
    "text, expected",
    [
        ("VARCHAR(2147483647)", "STRING"),
        ("bytes not null", "BYTES NOT NULL"),
        # Without parameters a type has the defaults of Paimon's classes: CharType, BinaryType,
        # TimestampType, DecimalType and so on.
        ("VARCHAR", "VARCHAR(1)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE NOT NULL", "TIMESTAMP(3) NOT NULL"),
        ("TIMESTAMP_LTZ(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        ("TIME", "TIME(0)"),
        ("NUMERIC(5,2)", "DECIMAL(5, 2)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        (
            "MAP<STRING NOT NULL, TIMESTAMP(3)> NOT NULL",
            "MAP<STRING NOT NULL, TIMESTAMP(3)> NOT NULL",
        ),
    ],
)
def test_type_texts(text: str, expected: str) -> None:
    assert str(parse_type_text(text)) == expected


def test_options_of_columns() -> None:
    prefix = "file-index.bloom-filter."
    options = {
        prefix + "columns": " a , m[k],m[l]",
        prefix + "a.items": "5",
        prefix + "m.items": "7",
        prefix + "m[l].items": "9",
        prefix + "m.fpp": "0.5",
        prefix + "a.b.items": "11",
    }
    assert parse_bloom_columns(options) == {
        "a": IndexRequest("a", 5, 0.1),
        "m[k]": IndexRequest("m[k]", 7, 0.5),
        "m[l]": IndexRequest("m[l]", 9, 0.5),
    }
    assert parse_bloom_columns({}) == {}
    with pytest.raises(UnreadableError):
        parse_bloom_columns({prefix + "columns": "a", prefix + "a.items": "many"})


def test_sizes() -> None:
    sizes = {"500 B": 500, "1kb": 1024, "2 mebibytes": 2 << 20, "7": 7, " 1 G ": 1 << 30, "0t": 0}
    assert {text: parse_memory_size(text) for text in sizes} == sizes
    assert parse_manifest_threshold({}) == 500
    assert parse_manifest_threshold({"file-index.in-manifest-threshold": "1 b"}) == 1


def test_names_of_directories() -> None:
    assert escape("p=1/x") == "p%3D1%2Fx"
    assert escape("é ~") == "é ~"
    types = [parse_type_text(text) for text in ("STRING", "DATE", "STRING", "BYTES", "FLOAT")]
    values: list[Value] = ["a:b", 19782, " ", b"x", 0.10000000149011612]
    legacy = build_segments(list("vwxyz"), types, values, "NONE", legacy=True)
    assert legacy == ["v=a%3Ab", "w=19782", "x=NONE", None, None]
    assert display_value(values[4], types[4]) == "0.1"
    assert build_segments(["x"], types[1:2], [19782], "NONE", legacy=False) == ["x=2024-02-29"]
    assert build_segments(["x"], types[1:2], [None], "NONE", legacy=True) == ["x=NONE"]
    minute = parse_type_text("TIMESTAMP(3)")
    for millis, text in ((0, ""), (1000, "%3A01"), (20, "%3A00.020")):
        of_minute: list[Value] = [Timestamp(millis, 0)]
        (segment,) = build_segments(["x"], [minute], of_minute, "NONE", legacy=True)
        assert segment == f"x=1970-01-01T00%3A00{text}"


TYPES_AND_VALUES: list[tuple[str, list[Value]]] = [
    ("BOOLEAN", [True, False]),
    ("TINYINT", [-128, 127]),
    ("SMALLINT", [-32768]),
    ("INT", [-(2**31), 5]),
    ("BIGINT", [2**63 - 1]),
    ("DATE", [19782]),
    ("FLOAT", [0.5]),
    ("DOUBLE", [-1e300]),
    ("STRING", ["", "1234567", "12345678", "é" * 20]),
    ("BYTES", [b"", b"\xff" * 7, b"\0" * 9]),
    ("TIMESTAMP(3)", [Timestamp(-1, 0)]),
    ("TIMESTAMP(9)", [Timestamp(-5, 999_999)]),
    ("DECIMAL(9, 2)", [Decimal("-12.34")]),
    ("DECIMAL(38, 20)", [Decimal("-123456789012345678.01234567890123456789"), Decimal(10) ** 17]),
    (
        "DECIMAL(30, 3)",
        [
            Decimal("-0.001"),
            Decimal("128"),
            Decimal("-32.768"),
            Decimal("12345678901234567890.123"),
        ],
    ),
]


def test_rows_come_back() -> None:
    types_of_all = [parse_type_text(text) for text, values in TYPES_AND_VALUES for _ in values] * 5
    values_of_all: list[Value] = [value for _, values in TYPES_AND_VALUES for value in values] * 5
    values_of_all[3] = None
    assert list(parse_row(build_row(values_of_all, types_of_all), types_of_all)) == values_of_all
    for text, values in TYPES_AND_VALUES:
        data_type = parse_type_text(text)
        for value in [*values, None]:
            assert parse_row(build_row([value], [data_type]), [data_type]) == (value,)
            assert bool(display_value(value, data_type)) == (value != "")


@each(
    "text, value, field",
    [
        ("STRING", "é", "c3a9000000000082"),
        ("STRING", "1234567", "3132333435363787"),
        ("STRING", "12345678", "0800000010000000" + "3132333435363738"),
        ("BYTES", b"123456789", "0900000010000000" + "3132333435363738" + "39" + "00" * 7),
        ("TIMESTAMP(3)", Timestamp(-2, 0), "fe" + "ff" * 7),
        ("TIMESTAMP(4)", Timestamp(-2, 7), "0700000010000000" + "fe" + "ff" * 7),
        ("DECIMAL(18, 0)", Decimal(-2), "fe" + "ff" * 7),
        ("DECIMAL(18, 18)", Decimal("0.000000000000000002"), "02" + "00" * 7),
        *(
            (
                "DECIMAL(19, 0)",
                Decimal(unscaled),
                f"0{len(stored) // 2}00000010000000" + stored.ljust(32, "0"),
            )
            for unscaled, stored in (
                (0, "00"),
                (127, "7f"),
                (128, "0080"),
                (-1, "ff"),
                (-128, "80"),
                (-129, "ff7f"),
            )
        ),
        ("DECIMAL(38, 38)", Decimal("2e-38"), "0100000010000000" + "02" + "00" * 15),
    ],
)
def test_short_fields_are_inline_and_longer_ones_follow_the_fields(
    text: str, value: Value, field: str
) -> None:
    """The first byte after the only field has offset 16; decimals have the bytes of Java's
    BigInteger."""
    data_type = parse_type_text(text)
    row = bytes.fromhex("00000001" + "00" * 8 + field)
    assert build_row([value], [data_type]) == row
    assert parse_row(row, [data_type]) == (value,)
    assert build_row([], []) == bytes(12)
    # Offset 0 and size 0: Paimon's BinaryRow copies no byte and reports no error.
    assert parse_row(bytes.fromhex("00000001") + bytes(16), [parse_type_text("STRING")]) == ("",)


@each("value", [3, "1234567", "12345678"])
def test_a_truncated_row_is_unreadable(value: Value) -> None:
    types = [parse_type_text("STRING" if isinstance(value, str) else "INT")] * 3
    row = build_row([value] * 3, types)
    for length in range(len(row)):
        with pytest.raises(UnreadableError):
            parse_row(row[:length], types)


def parse_hex(text: str) -> object:
    data = bytes.fromhex(text)
    return parse_utf(data, 0, len(data))


def parse_int(text: str) -> object:
    return parse_row(bytes.fromhex(text) + bytes(100), [DataType("INT")])


def parse_as(data_type: DataType) -> object:
    return parse_row(
        bytes.fromhex("00000001" + "00" * 8 + "0100000010000000" + "02" + "00" * 15), [data_type]
    )


NESTED_WITHOUT_END: object = reduce(
    lambda nested, _: {"type": "ARRAY", "element": nested}, range(200), "INT"
)


@each("parse, values, message", [
    (parse_hex, ["00", "0002c3", "000100", "0004f09f9880", "0002c081", "0001ff", "0003e08080",
        "0001c3"], None),
    (parse_data_type, [None, 3, {}, {"type": 3}, {"type": "MAP", "key": "STRING"}, {"type": "??"},
        "", "(3)", {"type": "ROW"}], None),
    (parse_data_type, [NESTED_WITHOUT_END], "too deep"),
    (parse_fields, [[{"id": "1", "name": "a", "type": "INT"}]], None),
    (parse_memory_size, ["", "kb", "1.5 kb", "-1", "1 parsec", "9" * 30], None),
    (parse_int, ["00000000", "00000002", "01000000"], "does not have the 1 fields"),
    (parse_as, [DataType("DECIMAL", 39, 0), parse_type_text("DECIMAL(999999999, 2)")], "DECIMAL"),
    (parse_as, [parse_type_text("DECIMAL(9, 999999999)"), DataType("ARRAY", value=DataType("INT"))],
        None),
])  # fmt: skip
def test_what_is_unreadable(
    parse: Callable[[Any], object], values: list[object], message: str | None
) -> None:
    for value in values:
        with pytest.raises(UnreadableError, match=message):
            parse(value)
    assert parse_as(DataType("DECIMAL", 38, 0)) == (Decimal(2),)


@given(st.binary(max_size=60), st.sampled_from([text for text, _ in TYPES_AND_VALUES]))
def test_rows_of_noise(data: bytes, text: str) -> None:
    """What parses is a value that can be stored again."""
    types = [parse_type_text(text)]
    try:
        row = parse_row(data, types)
    except UnreadableError:
        return
    assert repr(parse_row(build_row(row, types), types)) == repr(
        row
    )  # by its text, as NaN equals nothing


@each(
    "kind, values, least, greatest",
    [
        ("DOUBLE", [1.5, float("nan"), 0.0, -0.0, None], -0.0, float("nan")),
        ("DOUBLE", [0.0, -1.0, float("inf")], -1.0, float("inf")),
        ("STRING", ["b", "\U0001f600", "\uffff", None], "b", "\U0001f600"),
        ("INT", [None], None, None),
    ],
)
def test_partitions_of_a_manifest_have_the_order_of_java(
    kind: str, values: list[Value], least: Value, greatest: Value
) -> None:
    schema = TableSchema(0, parse_fields([{"id": 0, "name": "p", "type": kind}]), ("p",), (), {})
    stats = partition_stats(
        [build_row([value], schema.partition_types) for value in values], schema
    )
    rows = [build_row([bound], schema.partition_types) for bound in (least, greatest)]
    assert [stats["_MIN_VALUES"], stats["_MAX_VALUES"], stats["_NULL_COUNTS"]] == [
        *rows,
        [values.count(None)],
    ]
