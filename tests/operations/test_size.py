"""`size_filter`: each of size, number of values and rate from the other two."""

from __future__ import annotations

from typing import Any

import pytest

from sbbf_tool import UsageError, size_filter
from sbbf_tool.bloom import sizing
from sbbf_tool.parquet.filters import build_header
from support.tables import each

MIB = 1 << 20


def test_values_and_rate_give_the_smallest_size() -> None:
    report = size_filter(ndv=1_000_000, fpp=0.01)
    smaller, chosen, larger = report.sizes
    assert [size.choice for size in report.sizes] == ["next smaller", "chosen", "next larger"]
    assert [size.bitset_bytes for size in report.sizes] == [MIB, 2 * MIB, 4 * MIB]
    assert larger.fpp < chosen.fpp <= 0.01 < smaller.fpp
    assert chosen.header_bytes == len(build_header(2 * MIB))
    assert chosen.blocks == 65_536
    assert size_filter(ndv=1_000_000) == report


def test_the_formula_of_the_first_draft_is_too_low() -> None:
    report = size_filter(ndv=1, fpp=0.01)
    assert (round(report.bits_per_value, 2), round(report.formula_bits_per_value, 2)) == (10.53, 9.68)
    assert report.formula_fpp == pytest.approx(0.0146, abs=0.0001)
    assert sizing.fpp_of_bits(report.bits_per_value) == pytest.approx(0.01)
    assert (report.formula_bytes, report.bitset_bytes) == (32, 64)


@each(
    "options, choices",
    [
        ({"ndv": 1}, ["chosen", "next larger"]),
        ({"num_bytes": 32}, ["chosen", "next larger"]),
        ({"ndv": 50, "num_bytes": 1000}, ["next smaller", "chosen", "next larger"]),
        ({"ndv": 10**15}, ["next smaller", "chosen"]),
        ({"ndv": 1, "num_bytes": 128 * MIB}, ["next smaller", "chosen"]),
        ({"ndv": 10**12, "num_bytes": 64}, ["chosen", "next larger"]),
    ],
)
def test_sizes_that_may_not_be_written_are_left_out(options: dict[str, Any], choices: list[str]) -> None:
    assert [size.choice for size in size_filter(**options).sizes] == choices


@each(
    "options, message",
    [
        ({}, "give ndv, a size in bytes, or both"),
        ({"fpp": 0.01}, "give ndv, a size in bytes, or both"),
        ({"ndv": 1, "fpp": 0.01, "num_bytes": 64}, "give two of them"),
        ({"ndv": 0}, "ndv must be from 1 to 9223372036854775807, not 0"),
        ({"ndv": 10**400}, "ndv must be from 1 to 9223372036854775807, not 1000"),
        ({"num_bytes": 31}, "size must be from 32 to 134217728 bytes, not 31"),
        ({"num_bytes": 256 * MIB}, "size must be from 32 to 134217728 bytes, not 268435456"),
        ({"ndv": 1, "fpp": 1.0}, "fpp must be above 0 and below 1, not 1.0"),
        ({"num_bytes": 64, "fpp": 1e-12}, "a bitset of 64 bytes holds no value at 1e-12; one value has 1.9e-10"),
    ],
)
def test_other_numbers_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        size_filter(**options)
