"""`size_filter`: each of size, number of values and rate from the other two."""

from __future__ import annotations

from typing import Any

import pytest

from sbbf_tool import UsageError, size_filter
from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
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


def test_a_size_holds_so_many_values() -> None:
    (chosen,) = (size for size in size_filter(num_bytes=MIB).sizes if size.choice == "chosen")
    assert sizing.fpp_of(chosen.most_values, MIB) <= 0.01 < sizing.fpp_of(chosen.most_values + 1, MIB)
    assert size_filter(num_bytes=MIB).ndv == chosen.most_values
    assert size_filter(num_bytes=MIB, fpp=0.1).ndv > chosen.most_values


def test_values_and_size_give_the_rate() -> None:
    report = size_filter(ndv=1000, num_bytes=1024)
    assert report.fpp == sizing.fpp_of(1000, 1024)


def test_the_rate_is_that_of_a_filter() -> None:
    bloom = BloomFilter.empty(1 << 14)
    for value in range(10_000):
        bloom.insert_hash(value * 0x9E3779B97F4A7C15 % 2**64)
    assert bloom.fpp == pytest.approx(size_filter(ndv=10_000, num_bytes=1 << 14).fpp, rel=0.1)


def test_the_formula_of_the_first_draft_is_too_low() -> None:
    report = size_filter(ndv=1, fpp=0.01)
    assert (round(report.bits_per_value, 2), round(report.formula_bits_per_value, 2)) == (10.53, 9.68)
    assert report.formula_fpp == pytest.approx(0.0146, abs=0.0001)
    assert sizing.fpp_of_bits(report.bits_per_value) == pytest.approx(0.01)
    assert (report.formula_bytes, report.bitset_bytes) == (32, 64)


@each("ndv, fpp, size", [(100_000, 0.01, 131_072), (1_000_000, 0.01, 2 * MIB), (1_048_576, 0.05, MIB), (10**9, 0.01, 128 * MIB)])
def test_writers_that_use_the_formula_choose_a_power_of_two(ndv: int, fpp: float, size: int) -> None:
    assert size_filter(ndv=ndv, fpp=fpp).formula_bytes == size


def test_drafts_have_other_headers() -> None:
    headers = {size.dialect: size.header_bytes for size in size_filter(ndv=1000).dialects}
    assert len(headers) == 9
    assert (headers["draft1-raw"], headers["branch-16"]) == (12, 16)
    assert headers["draft1-thrift"] == headers["current"] - 4
    assert {size.dialect for size in size_filter(ndv=10, num_bytes=1000).dialects} == headers.keys() - {
        "draft1-raw",
        "branch-12",
        "branch-16",
    }


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


@each("fpp", [0.999, 1 - 1e-16, sizing.LEAST_FPP])
@each("size", [{"ndv": 1}, {"ndv": 2**63 - 1}, {"num_bytes": 128 * MIB}])
def test_extreme_rates_have_sizes(size: dict[str, int], fpp: float) -> None:
    report = size_filter(**size, fpp=fpp)
    (chosen,) = (each for each in report.sizes if each.choice == "chosen")
    assert "num_bytes" not in size or chosen.most_values == report.ndv
    assert 0 < report.formula_bits_per_value <= report.bits_per_value * 1.01


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
