"""Numbers as people read them: three significant digits, no exponent, units, plurals, and numbers
of row groups."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.numbers import (
    format_count,
    format_number,
    format_percent,
    format_row_groups,
    format_size,
)
from support.tables import each

NUMBERS = {
    0: "0", 0.00001: "0.0000", 0.01234: "0.0123", 0.099951: "0.100", 0.5: "0.500", 0.99951: "1.00",
    9.9951: "10.0", 12.34: "12.3",
    99.951: "100", 999.9: "1,000", 1234.5: "1,234", 4.5e6: "4,500,000", -12.34: "-12.3",
}  # fmt: skip
EXACT = {4.0: "4", 3.99: "3.99", 4.9999: "5", 2.5: "2.5", 1000.0: "1,000"}
PERCENTAGES = {
    None: "", 0: "0 %", 1: "100 %", 0.99999: "100 %", 0.0734: "7.34 %", 1.1e-6: "0.0001 %",
    9e-7: "<0.0001 %", 1e-300: "<0.0001 %",
}  # fmt: skip
SIZES = {
    0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB",
    25_600_000_000: "25.6 GB", 10**18: "1.0 EB",
    10**22: "10000.0 EB",
}  # fmt: skip


def test_known_numbers():
    assert {number: format_number(number) for number in NUMBERS} == NUMBERS
    assert {number: format_number(number, exact=True) for number in EXACT} == EXACT
    assert {ratio: format_percent(ratio) for ratio in PERCENTAGES} == PERCENTAGES
    assert {size: format_size(size) for size in SIZES} == SIZES
    assert [format_count(count, "file") for count in (0, 1, 2, 12345)] == [
        "0 files",
        "1 file",
        "2 files",
        "12,345 files",
    ]


@given(st.floats(-1e18, 1e18) | st.floats(-1, 1))
def test_a_number_has_three_significant_digits_and_no_exponent(value):
    text = format_number(value)
    assert re.fullmatch(r"-?\d{1,3}(,\d{3})*(\.\d{1,4})?", text)
    digits = text.replace("-", "").replace(",", "")
    if "." in text:
        assert len(digits.replace(".", "").lstrip("0")) <= 3
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.00501, abs=0.00005001)


@given(st.floats(0, 1))
def test_a_percentage_is_never_zero_unless_it_is(ratio):
    assert (format_percent(ratio) in ("0 %",)) == (ratio == 0)


@given(st.integers(0, 10**21))
def test_a_size_has_at_most_one_decimal(size):
    assert re.fullmatch(r"\d{1,4}(\.\d)? ([kMGTPE]?B)", format_size(size))


@each(
    "numbers, text",
    [
        ([3], "row group 3"),
        ([0, 1, 2, 5], "row groups 0-2, 5"),
        ([5, 0, 1], "row groups 0-1, 5"),
        ([1, 3, 5], "row groups 1, 3, 5"),
    ],
)
def test_row_groups(numbers, text):
    assert format_row_groups(numbers) == text


@given(st.sets(st.integers(0, 60), min_size=1))
def test_row_groups_come_back(numbers):
    spans = re.findall(r"(\d+)(?:-(\d+))?", format_row_groups(sorted(numbers)))
    assert {
        number for first, last in spans for number in range(int(first), int(last or first) + 1)
    } == numbers
