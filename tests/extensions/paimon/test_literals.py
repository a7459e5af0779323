"""Values written as text."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon import literals
from sbbf_tool.extensions.paimon.data_types import parse_type_text
from sbbf_tool.extensions.paimon.literals import parse_literal
from support.tables import each


@each(
    "data_type, text, key",
    [
        ("STRING", "", b""),
        ("CHAR(9)", " é ", " é ".encode()),
        ("BYTES", "0x", b""),
        ("BINARY(2)", "0xFf00", b"\xff\0"),
        ("TINYINT", "-128", -128),
        ("INT", "+7", 7),
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("FLOAT", "1", 0x3F800000),
        ("FLOAT", "-0", -0x80000000),
        ("FLOAT", "NaN", 0x7FC00000),
        ("FLOAT", "-Infinity", 0xFF800000 - 2**32),
        ("FLOAT", "1e-50", 0),
        ("FLOAT", "1.00000017881393432617187499", 0x3F800001),  # rounded twice it would be ...002
        ("DOUBLE", "0.1", 0x3FB999999999999A),
        ("DOUBLE", "-nan", 0x7FF8000000000000),
        ("DOUBLE", "0e999999999", 0),
        ("DATE", "1970-01-02", 1),
        ("DATE", "-0001-03-01", -719528 - 306),
        ("DATE", "+10000-01-01", 2932897),
        ("TIME(0)", "00:00:01.999999999", 1999),
        ("TIME(3)", "23:59", 86_340_000),
        ("TIMESTAMP(3)", "1970-01-01T00:00:00.0019", 1),
        ("TIMESTAMP(3)", "1969-12-31 23:59:59.9999", -1),
        ("TIMESTAMP(6)", "1969-12-31T23:59:59.999999999", -1),
        ("TIMESTAMP(9)", "1970-01-01T00:00:00.000001999Z", 1),
        ("TIMESTAMP(0)", "1970-01-02", 86_400_000),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "1970-01-01T01:00:00+01:00", 0),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "1970-01-01T01:00:00-0130", 9_000_000),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "1970-01-01T00:00:01", 1_000_000),
    ],
)
def test_values(data_type: str, text: str, key: bytes | int) -> None:
    assert parse_literal(text, parse_type_text(data_type)).key == key


@each(
    "data_type, text",
    [
        ("STRING", "\ud800"),
        ("BYTES", "ff"),
        ("BYTES", "0xf"),
        ("TINYINT", "128"),
        ("INT", "1.0"),
        ("INT", ""),
        ("INT", "٣"),
        ("BIGINT", "9223372036854775808"),
        ("FLOAT", "1e39"),
        ("FLOAT", "--inf"),
        ("DOUBLE", "1e400"),
        ("DOUBLE", "1_0"),
        ("DATE", "2023-02-29"),
        ("DATE", "2023-2-9"),
        ("TIME(3)", "24:00"),
        ("TIME(3)", "1:00"),
        ("TIMESTAMP(3)", "2023-01-01T00:00:00+01:00"),
        ("TIMESTAMP(6)", "+999999999-01-01"),
        ("TIMESTAMP(3)", "yesterday"),
        ("BOOLEAN", "true"),
        ("DECIMAL(5,2)", "1.00"),
    ],
)
def test_what_is_no_value_is_refused(data_type: str, text: str) -> None:
    with pytest.raises(UsageError):
        parse_literal(text, parse_type_text(data_type))


@given(st.integers(0x00800000, 0x7F000000), st.integers(-3, 3))
def test_a_float_is_the_nearest_to_its_decimal(bits: int, off: int) -> None:
    """Decimals around the middle between two floats, to more digits than a double has."""
    low, high = np.array([bits, bits + 1], np.uint32).view(np.float32)
    middle = (Fraction(float(low)) + Fraction(float(high))) / 2
    nudged = middle + off * middle / 10**30
    scale = 10**60
    text = f"{nudged.numerator * scale // nudged.denominator}e-60"
    if abs(nudged) < Fraction(1, 10**25):
        return  # sixty decimal places do not distinguish such numbers
    exact = Fraction(text)
    distances = abs(exact - Fraction(float(low))), abs(exact - Fraction(float(high)))
    expected = bits + (distances[1] < distances[0] or (distances[0] == distances[1] and bits % 2 == 1))
    assert parse_literal(text, parse_type_text("FLOAT")).key == expected


@each("text", ["0", "0e999999999", "1e-999999999", "1.5"])
def test_a_float_that_a_double_states_exactly_or_as_zero_takes_no_exact_arithmetic(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fractions of such exponents would take minutes."""
    monkeypatch.setattr(literals, "Fraction", None)
    assert parse_literal(text, parse_type_text("FLOAT")).key == (0x3FC00000 if text == "1.5" else 0)
