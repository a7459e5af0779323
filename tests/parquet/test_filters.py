"""The header in front of a bitset: today's header byte by byte, and the warnings about every
other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet import wire
from parquet.wire import Field
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.filters import (
    FilterHeader,
    StoredFilter,
    build_header,
    parse_header,
    predict_header_bytes,
)
from sbbf_tool.parquet.idl.ttypes import BloomFilterHeader
from sbbf_tool.parquet.splice import FilterPlace
from sbbf_tool.parquet.structs import parse_struct
from support.tables import each

POWERS = [64 << n for n in range(22)]
UNIONS = bytes.fromhex("1c1c0000 1c1c0000 1c1c0000 00")


def first_member(field_id: int, member: int = 1) -> Field:
    """A field with a union in it, of which this member is set."""
    return Field(field_id, wire.STRUCT, (Field(member, wire.STRUCT, ()),))


def header(num_bytes: int = 64, *fields: Field) -> bytes:
    return wire.write((Field(1, wire.I32, wire.number(num_bytes)), *fields))


# Today's


@each("num_bytes", POWERS)
def test_the_header_of_every_size_that_is_written(num_bytes):
    raw = build_header(num_bytes)
    assert raw == header(num_bytes, first_member(2), first_member(3), first_member(4))
    assert parse_header(raw) == FilterHeader(len(raw), num_bytes, None)
    struct = parse_struct(BloomFilterHeader, raw)
    assert struct.numBytes == num_bytes
    assert None not in (struct.algorithm.BLOCK, struct.hash.XXHASH, struct.compression.UNCOMPRESSED)
    assert stored(num_bytes).warnings() == []
    assert predict_header_bytes(len(raw) + num_bytes) == len(raw)
    assert predict_header_bytes(None) == predict_header_bytes(5) == len(build_header(32))


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_the_quick_way_reads_what_thrift_reads(folded, padding):
    """Today's headers are matched as bytes; whatever number stands in them, the generated class
    finds the same."""
    raw = b"\x15" + wire.varint(folded, padding) + UNIONS
    try:
        expected = parse_struct(BloomFilterHeader, raw).numBytes
    except UnreadableError:
        expected = None
    if expected is None or expected < 32:
        with pytest.raises(UnreadableError):
            parse_header(raw)
    else:
        assert parse_header(raw) == FilterHeader(len(raw), expected, None)


# Legal, and not today's: nothing may be concluded from its bitset

ALL = (first_member(2), first_member(3), first_member(4))
BEYOND_US = {
    "a draft, without compression": (header(64, first_member(2), first_member(3)), "compression"),
    "another algorithm": (
        header(64, first_member(2, 2), first_member(3), first_member(4)),
        "algorithm",
    ),
    "an algorithm without a member": (
        header(64, Field(2, wire.STRUCT, ()), first_member(3), first_member(4)),
        "algorithm",
    ),
    "no algorithm": (header(64, first_member(3), first_member(4)), "algorithm"),
    "another hash": (header(64, first_member(2), first_member(3, 2), first_member(4)), "hash"),
    "no hash": (header(64, first_member(2), first_member(4)), "hash"),
    "a bitset compressed in another way": (
        header(64, first_member(2), first_member(3), first_member(4, 2)),
        "compressed",
    ),
    "nothing but a size": (header(64), "neither algorithm nor hash"),
    "unions that are numbers": (
        header(64, *(Field(n, wire.I32, wire.number(0)) for n in (2, 3, 4))),
        "neither algorithm nor hash",
    ),
}


@each("raw, reason", BEYOND_US)
def test_a_header_of_another_kind_is_beyond_us_with_the_reason(raw, reason):
    header_read = parse_header(raw + b"\xaa" * 64)
    assert header_read.num_bytes == 64
    assert header_read.length == len(raw)
    assert header_read.unsupported_reason is not None
    assert reason in header_read.unsupported_reason


# Header and footer together


def stored(num_bytes: int, stated_length: int | None = -1) -> StoredFilter:
    length = len(build_header(num_bytes))
    return StoredFilter(
        0,
        0,
        FilterPlace(100, length + num_bytes if stated_length == -1 else stated_length),
        FilterHeader(length, num_bytes),
    )


ODD = {
    "no length": (stored(64, None), ["bloom_filter_length is missing"]),
    "a length that disagrees": (
        stored(64, 81),
        ["bloom_filter_length is 81, but header and bitset have 80 bytes"],
    ),
    "a negative length": (stored(64, -5), ["bloom_filter_length is -5"]),
    "96 bytes": (stored(96), ["not a power of two"]),
    "1000 bytes": (stored(1000), ["its last 8 bytes are unused", "not a power of two"]),
    "32 bytes": (stored(32), ["Impala reads past its end"]),
    "33 bytes": (stored(33), ["its last 1 bytes are unused", "Impala reads past its end"]),
    "256 MiB": (stored(256 << 20), ["larger than 128 MiB"]),
    "1000 bytes without a length": (
        stored(1000, None),
        ["bloom_filter_length is missing", "its last 8 bytes are unused", "not a power of two"],
    ),
}


@each("odd, message", ODD)
def test_filters_that_some_reader_refuses_or_misreads_cause_warnings(odd, message):
    warnings = odd.warnings()
    assert len(warnings) == len(message)
    for words, sentence in zip(message, warnings, strict=True):
        assert words in sentence
