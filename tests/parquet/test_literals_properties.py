"""Any value of any type: written and read again it is the same, in a filter it is found, and
nothing that is stored is ever `absent`."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sbbf_tool.parquet import iso8601
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.literals import format_plain, parse, parse_object
from sbbf_tool.parquet.logical import Logical
from sbbf_tool.parquet.notation import MAYBE

pytestmark = pytest.mark.slow


def leaf(physical: str, kind: str | None = None, *, length: int = 0, **details: object) -> Column:
    return Column(
        0, ("v",), ("v",), physical, length, Logical(kind, **details) if kind else None, 0, 0
    )  # type: ignore[arg-type]


UNITS = ("MILLIS", "MICROS", "NANOS")
FLBA = "FIXED_LEN_BYTE_ARRAY"
COLUMNS = [
    *(leaf(physical) for physical in ("INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY")),
    *(
        leaf("INT32", "INT", bits=bits, signed=signed)
        for bits in (8, 16, 32)
        for signed in (True, False)
    ),
    *(leaf("INT64", "INT", bits=64, signed=signed) for signed in (True, False)),
    *(leaf("INT32", "DECIMAL", precision=9, scale=scale) for scale in (0, 2, 9)),
    *(leaf("INT64", "DECIMAL", precision=18, scale=scale) for scale in (0, 4)),
    *(
        leaf(FLBA, "DECIMAL", precision=precision, scale=2, length=length)
        for precision, length in ((3, 2), (38, 16), (76, 32))
    ),
    leaf("BYTE_ARRAY", "DECIMAL", precision=38, scale=5),
    leaf("INT32", "DATE"),
    *(
        leaf("INT32" if unit == "MILLIS" else "INT64", "TIME", unit=unit, utc=utc)
        for unit in UNITS
        for utc in (True, False)
    ),
    *(leaf("INT64", "TIMESTAMP", unit=unit, utc=utc) for unit in UNITS for utc in (True, False)),
    *(
        leaf("BYTE_ARRAY", kind)
        for kind in ("STRING", "ENUM", "JSON", "BSON", "GEOMETRY", "GEOGRAPHY")
    ),
    leaf(FLBA, "UUID", length=16),
    leaf(FLBA, "FLOAT16", length=2),
    leaf(FLBA, "INTERVAL", length=12),
    leaf(FLBA, length=1),
    leaf(FLBA, length=16),
]


def plain_values(column: Column) -> st.SearchStrategy[bytes]:
    """Any bytes that a page of this column may hold, whether or not a writer should have put them
    there."""
    if column.width is not None:
        edges = [
            bytes(column.width),
            b"\xff" * column.width,
            b"\xff" * (column.width - 1) + b"\x7f",
            bytes(column.width - 1) + b"\x80",
        ]
        small = st.integers(-200, 200).map(
            lambda n: n.to_bytes(max(2, column.width or 0), "little", signed=True)[: column.width]
        )
        return st.one_of(
            st.binary(min_size=column.width, max_size=column.width), st.sampled_from(edges), small
        )
    if column.logical is not None and column.logical.kind == "DECIMAL":
        return st.one_of(
            st.builds(
                lambda n, width: n.to_bytes(width, "big", signed=True),
                st.integers(-(2**100), 2**100),
                st.integers(13, 32),
            ),
            st.binary(max_size=16),
        )
    return st.one_of(
        st.binary(max_size=40),
        st.text(max_size=40).map(str.encode),
        st.sampled_from([b"null", b"0x41", b"nan", b""]),
    )


@settings(max_examples=500)
@given(st.sampled_from(COLUMNS), st.data())
def test_what_is_stored_is_never_absent(column: Column, data: st.DataObject) -> None:
    """Queried in its printed form, and as the bytes themselves; what is queried instead of it has
    the same printed forms."""
    plain = data.draw(plain_values(column))
    literal = parse(column, format_plain(column, plain))
    assert plain in literal.forms or literal.verdict == MAYBE
    as_bytes = parse_object(column, plain)
    assert plain in as_bytes.forms or as_bytes.verdict == MAYBE

    if literal.verdict is not None:
        assert literal.verdict == MAYBE
        return
    for form in literal.forms:
        again = parse(column, format_plain(column, form))
        assert set(again.forms) == set(literal.forms) or form in literal.forms[1:]
    assert parse(column, format_plain(column, literal.forms[0])).forms == literal.forms


# Against the standard library, where it can follow


@given(
    st.datetimes(
        timezones=st.just(dt.UTC)
        | st.integers(-1439, 1439).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
    )
)
@example(dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=23))))
@example(dt.datetime(1900, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=53, seconds=28))))
def test_instants_are_those_of_the_standard_library(moment: dt.datetime) -> None:
    micros = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)

    instant = iso8601.parse_timestamp(moment.isoformat())
    assert instant.zoned
    assert instant.in_unit("MICROS") == micros


# Against exact arithmetic


@given(
    st.sampled_from(["<f", "<e"]),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-60000, max_value=60000),
)
def test_the_nearest_narrow_number_is_among_the_queried_forms(layout: str, value: Decimal) -> None:
    """Rounding text to a double and then to a narrow number may be one step off; exact fractions
    show which number is nearest."""
    column = leaf("FLOAT") if layout == "<f" else leaf(FLBA, "FLOAT16", length=2)
    forms = parse(column, str(value)).forms
    exact = Fraction(value)
    queried_values = {Fraction(struct.unpack(layout, form)[0]) for form in forms}
    best = min(abs(exact - number) for number in queried_values)

    for number in queried_values:
        for step in (-1, 1):
            bits = int.from_bytes(struct.pack(layout, float(number)), "little") + step
            size = struct.calcsize(layout)
            neighbour = struct.unpack(layout, (bits % 2 ** (8 * size)).to_bytes(size, "little"))[0]
            if neighbour == neighbour and abs(neighbour) != float("inf"):
                assert abs(exact - Fraction(neighbour)) >= best
