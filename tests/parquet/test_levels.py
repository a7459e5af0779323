"""Definition levels, against an encoder of the format's own words and any mixture of runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.parquet.levels import count_highest


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def repeated(level: int, count: int, width: int) -> bytes:
    return varint(count << 1) + level.to_bytes((width + 7) // 8, "little")


def packed(levels: list[int], width: int) -> bytes:
    """Groups of eight, the last filled up with zeros."""
    groups = -(-len(levels) // 8)
    bits = sum(level << at * width for at, level in enumerate(levels))
    return varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, bytes, list[int]]:
    highest = draw(st.integers(1, 300))
    width = highest.bit_length()
    raw, levels = b"", []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            level, count = draw(st.integers(0, highest)), draw(st.integers(1, 2000))
            raw += repeated(level, count, width)
            levels += [level] * count
        else:
            some = draw(st.lists(st.one_of(st.just(highest), st.integers(0, highest)), min_size=8, max_size=80))
            some = some[: len(some) // 8 * 8]
            raw += packed(some, width)
            levels += some
    return highest, raw, levels


@given(runs(), st.data())
def test_any_runs(sample, data):
    highest, raw, levels = sample
    count = data.draw(st.integers(0, len(levels)))
    assert count_highest(memoryview(raw), highest, count) == levels[:count].count(highest)
    with pytest.raises(ValueError, match="end early"):
        count_highest(memoryview(raw), highest, len(levels) + 1)


def test_the_last_group_may_be_cut_to_the_bytes_it_needs():
    assert count_highest(memoryview(b"\x03\x07"), 1, 3) == 3
    assert count_highest(memoryview(b"\x05\xff\x01"), 1, 9) == 9
    with pytest.raises(ValueError, match="end early"):
        count_highest(memoryview(b"\x05\xff"), 1, 9)


@pytest.mark.parametrize("count", [1, 63, 64, 127, 128, 8191, 8192, 1 << 20])
def test_runs_of_any_length(count):
    """Their headers have one to four bytes."""
    assert count_highest(memoryview(repeated(1, count, 1)), 1, count) == count
    assert count_highest(memoryview(repeated(0, count, 1) + repeated(1, 1, 1)), 1, count + 1) == 1


@pytest.mark.parametrize("empty", [b"\x01", b"\x00\x01"])
def test_a_run_of_no_levels_is_unreadable(empty):
    with pytest.raises(ValueError, match="levels end early"):
        count_highest(memoryview(empty + repeated(1, 4, 1)), 1, 4)


def test_a_column_that_stores_no_levels():
    assert count_highest(memoryview(b""), 0, 7) == 7


@pytest.mark.parametrize("raw", [b"", b"\x80", b"\x80\x80\x80\x80\x80\x80\x01", b"\x00\x01", b"\x08", b"\x01"])
def test_bytes_that_cannot_be_levels(raw):
    with pytest.raises(ValueError, match="levels end early"):
        count_highest(memoryview(raw), 1, 4)
