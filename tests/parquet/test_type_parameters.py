"""Parameters of types that the format forbids: such a column has an unknown type, with a reason,
and cannot be queried."""

from __future__ import annotations

from sbbf_tool.parquet.columns import Column, leaf_columns
from sbbf_tool.parquet.idl.ttypes import (
    ConvertedType,
    DecimalType,
    IntType,
    LogicalType,
    MicroSeconds,
    SchemaElement,
    TimestampType,
    TimeType,
    TimeUnit,
    Type,
)
from sbbf_tool.parquet.literals import format_plain, parse, parse_object
from sbbf_tool.parquet.notation import CANNOT_SAY
from support.tables import each

I32_NUMBERS = [
    -(2**31),
    -(2**16),
    -1,
    0,
    1,
    2,
    9,
    10,
    18,
    19,
    38,
    39,
    76,
    1000,
    1001,
    10**6,
    2**31 - 1,
]


def column_of(**fields: object) -> Column:
    (column,) = leaf_columns(
        [
            SchemaElement(name="root", num_children=1),
            SchemaElement(name="v", repetition_type=0, **fields),
        ]
    )
    return column


def assert_distinguished(column: Column, *, is_known: bool) -> None:
    assert (column.doubt is None) == is_known
    if is_known:
        return
    assert column.logical is None
    assert parse(column, "null").is_null
    for value in ("5", "0x00000000", "x" * 100, ""):
        literal = parse(column, value)
        assert (literal.forms, literal.verdict, literal.note) == ((), CANNOT_SAY, column.doubt)
    for thing in (5, 1.5, b"abc", object()):
        assert parse_object(column, thing).verdict == CANNOT_SAY
    assert format_plain(column, b"\0\1") == "0x0001"
    assert len(column.type_name) < 100


PHYSICAL = [  # with a length, and the digits that it holds
    (Type.INT32, None, 9),
    (Type.INT64, None, 18),
    (Type.FIXED_LEN_BYTE_ARRAY, 1, 2),
    (Type.FIXED_LEN_BYTE_ARRAY, 16, 38),
    (Type.FIXED_LEN_BYTE_ARRAY, 2**31 - 1, 1000),
    (Type.BYTE_ARRAY, None, 1000),
]


@each("physical, length, most", PHYSICAL)
@each("precision", [None, *I32_NUMBERS])
def test_decimals(physical, length, most, precision):
    for scale in {None, -1, 0, precision or 1, (precision or 0) + 1, 2**31 - 1} - {2**31}:
        is_known = (
            precision is not None and 1 <= precision <= most and 0 <= (scale or 0) <= precision
        )
        today = LogicalType(DECIMAL=DecimalType(precision=precision, scale=scale))
        assert_distinguished(
            column_of(type=physical, type_length=length, logicalType=today), is_known=is_known
        )
        older = {"converted_type": ConvertedType.DECIMAL, "precision": precision, "scale": scale}
        assert_distinguished(
            column_of(type=physical, type_length=length, **older), is_known=is_known
        )


def test_integers_and_times():
    for bits in (None, -128, -8, -1, 0, 1, 7, 8, 9, 16, 31, 32, 33, 64, 65, 127):
        for signed in (None, True, False):
            logical = LogicalType(INTEGER=IntType(bitWidth=bits, isSigned=signed))
            assert_distinguished(
                column_of(type=Type.INT64, logicalType=logical), is_known=bits in (8, 16, 32, 64)
            )
    for unit, is_known in (
        (None, False),
        (TimeUnit(), False),
        (TimeUnit(MICROS=MicroSeconds()), True),
    ):
        for logical in (
            LogicalType(TIME=TimeType(unit=unit)),
            LogicalType(TIMESTAMP=TimestampType(unit=unit, isAdjustedToUTC=True)),
        ):
            assert_distinguished(column_of(type=Type.INT64, logicalType=logical), is_known=is_known)
