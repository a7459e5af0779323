"""Where fields stand in compact Thrift: every kind, hostile lengths, and bytes that end too
soon."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet import made_footers as made
from parquet import wire
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import compact
from support.tables import each

ENDS_TOO_SOON = (IndexError, UnreadableError)
"""What `skip` and `fields` raise; `footer.set_filters` makes one of both."""


# Numbers


@given(st.integers(0, 2**64 - 1))
def test_varints_are_each_others_inverse(number):
    assert compact.build_varint(number) == wire.varint(number)
    assert compact.read_varint(wire.varint(number) + b"\xff", 0) == (
        number,
        len(wire.varint(number)),
    )


def test_a_varint_does_not_go_on_for_ever():
    with pytest.raises(UnreadableError, match="more than ten bytes"):
        compact.read_varint(b"\x80" * 1000, 0)


# Skipping


@given(st.lists(made.random_fields(3), max_size=6).map(tuple))
def test_fields_are_where_the_other_reader_finds_them(struct):
    raw = wire.write(struct)
    fields, stop = compact.fields(raw, 0)
    assert stop == len(raw) - 1
    assert [(field.id, field.kind, field.relative) for field in fields] == [
        (f.id, f.kind, not f.long) for f in wire.read(raw)
    ]
    assert [raw[field.value : field.end] for field in fields] == [
        wire.write_value(f.kind, f.value) for f in struct
    ]
    remembered: compact.Ends = {}
    assert (
        compact.skip(raw, 0, compact.STRUCT, 0, remembered)
        == compact.skip(raw, 0, compact.STRUCT, 0, remembered)
        == len(raw)
    )


@pytest.mark.timeout(10)
@each("count", [2**31 - 1, 2**31, 2**62])
@each("kind", [*range(compact.TRUE, compact.UUID + 1)])
def test_a_count_of_elements_that_are_not_there_costs_no_more_than_the_bytes_that_are(kind, count):
    """Neither time nor memory follow a length that only is claimed."""
    claimed = bytes([0xF0 | kind]) + wire.varint(count) + b"\0" * 1000
    with pytest.raises(ENDS_TOO_SOON):
        compact.skip(claimed, 0, compact.LIST)
    with pytest.raises(ENDS_TOO_SOON):
        compact.skip(wire.varint(count) + bytes([kind << 4 | kind]) + b"\0" * 1000, 0, compact.MAP)
    with pytest.raises(ENDS_TOO_SOON):
        compact.skip(wire.varint(count) + b"\0" * 1000, 0, compact.BINARY)


DEEP = {
    "structs": (compact.STRUCT, b"\x1c" * 5000),
    "lists": (compact.LIST, b"\x19" * 5000),
    "sets": (compact.SET, b"\x1a" * 5000),
    "maps": (compact.MAP, b"\x01\x3b\x00" * 5000),
    "structs in lists": (compact.STRUCT, b"\x19\x1c" * 5000),
}


@each("kind, raw", DEEP)
def test_nesting_ends_in_an_error_before_it_ends_in_pythons(kind, raw):
    with pytest.raises(UnreadableError, match="nested more than 64 deep"):
        compact.skip(raw, 0, kind)
