"""Bitmaps of answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.file import bitmaps

SETS = st.frozensets(st.integers(0, 70) | st.integers(4000, 4200) | st.integers(0, 20_000), max_size=40)


@given(SETS)
def test_a_bitmap_has_the_bits_that_it_was_built_from(positions):
    bitmap = bitmaps.bitmap_of(sorted(positions))
    assert [at for at, _ in bitmaps.iterate([bitmap])] == sorted(positions)
    assert {at for at in (*positions, 0, 7, 8, 25_000) if bitmaps.is_set(bitmap, at)} == positions
    flags = bytearray(max(positions, default=0) + 3)
    for at in positions:
        flags[at] = 1
    assert bitmaps.build_bitmap(bytes(flags), range(len(flags))) == bitmap
    assert bitmaps.build_bitmap([*flags], range(len(flags))) == bitmap


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=60))
def test_a_value_with_several_hashes_is_held_if_one_of_them_is(steps):
    owners, owner = [], 0
    for step, _ in steps:
        owner += step
        owners.append(owner)
    flags = [int(flag) for _, flag in steps]
    expected = {owner for owner, flag in zip(owners, flags, strict=True) if flag}
    assert {at for at, _ in bitmaps.iterate([bitmaps.build_bitmap(flags, owners)])} == expected


@given(st.lists(SETS, max_size=5))
def test_bitmaps_are_read_together(sets):
    expected = {at: tuple(number for number, each in enumerate(sets) if at in each) for at in sorted(frozenset().union(*sets))}
    assert list(bitmaps.iterate([bitmaps.bitmap_of(sorted(each)) for each in sets])) == list(expected.items())
