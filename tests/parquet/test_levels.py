"""Definition levels, against an encoder of the format's own words and any mixture of runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.parquet.levels import count_highest
from support.tables import each


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


@each(
    "raw, highest, count, answer",
    [
        (b"\x03\x07", 1, 3, 3),  # the last group may be cut to the bytes that it needs
        (b"\x05\xff\x01", 1, 9, 9),
        (b"\x05\xff", 1, 9, None),
        (b"\x05\xff\xff\xff", 3, 12, 12),
        (b"\x05\xff\xff\xff", 3, 13, None),
        *((repeated(1, n, 1), 1, n, n) for n in (1, 63, 64, 127, 128, 8191, 8192, 1 << 20)),  # headers of one to four bytes
        *((repeated(0, n, 1) + repeated(1, 1, 1), 1, n + 1, 1) for n in (1, 63, 64, 8192)),
        (b"", 0, 7, 7),  # a column that stores no levels
        *((empty + repeated(1, 4, 1), 1, 4, None) for empty in (b"\x01", b"\x00\x01")),  # a run of no levels
        *((raw, 1, 4, None) for raw in (b"", b"\x80", b"\x80" * 6 + b"\x01", b"\x00\x01", b"\x08", b"\x01")),
    ],
)
def test_runs_of_known_levels(raw, highest, count, answer):
    if answer is None:
        with pytest.raises(ValueError, match="levels end early"):
            count_highest(memoryview(raw), highest, count)
    else:
        assert count_highest(memoryview(raw), highest, count) == answer
