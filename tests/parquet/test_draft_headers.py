"""The headers of the drafts: the bytes of each form, the dialects that each may belong to, and
bytes that are no such header."""

from __future__ import annotations

import json

from sbbf_tool.bloom.dialects import PAGE, RAW_12, RAW_16, WITHOUT_COMPRESSION, find_dialect
from sbbf_tool.parquet.draft_headers import FORMS, readings
from sbbf_tool.parquet.filters import HEADER_GUESS, build_draft_header, parse_header
from support.tables import each

POWERS = [32 << n for n in range(23)]
NAMES = {
    RAW_12: ["draft1-raw", "branch-12"],
    RAW_16: ["draft1-raw", "branch-12", "branch-16"],
    WITHOUT_COMPRESSION: ["draft1-thrift", "draft2-thrift"],
    PAGE: ["draft1-page", "draft2-page"],
}
"""By header, when the bitset behind it does not begin with a zero word."""
BITSET = b"\xff" * 64
WITHOUT_COMPRESSION_32 = bytes.fromhex("15 40  1c 1c 00 00  1c 1c 00 00  00")


def names(candidates):
    return [reading.dialect.name for reading in candidates]


def test_the_bytes_of_each_form():
    headers = {form: build(32) for form, (_, build) in FORMS.items()}
    assert headers == {
        RAW_12: bytes.fromhex("20000000 00000000 00000000"),
        RAW_16: bytes.fromhex("20000000 00000000 00000000 00000000"),
        WITHOUT_COMPRESSION: WITHOUT_COMPRESSION_32,
        PAGE: bytes.fromhex("15 08  15 40  15 40  6c") + WITHOUT_COMPRESSION_32 + b"\0",
    }


@each("num_bytes", POWERS)
@each("form", list(FORMS))
def test_every_form_of_every_size_is_read_back(form, num_bytes):
    parse, build = FORMS[form]
    header = build(num_bytes)
    assert parse(header + BITSET) == (len(header), num_bytes)
    assert names(readings(header + BITSET)) == NAMES[form]
    header_read = parse_header(header + BITSET)
    assert (header_read.num_bytes, header_read.unsupported_reason is not None) == (num_bytes, True)
    assert len(header) <= HEADER_GUESS


# Ambiguous headers, and what decides between the readings


RAW = build_draft_header(find_dialect("branch-16"), 64) + BITSET


@each(
    "room, stated_length, expected",
    [
        (80, None, ["draft1-raw", "branch-12", "branch-16"]),
        (79, None, ["draft1-raw", "branch-12"]),
        (80, 80, ["branch-16"]),
        (80, 76, ["draft1-raw", "branch-12"]),
        (80, 77, ["draft1-raw", "branch-12", "branch-16"]),
        (79, 80, ["draft1-raw", "branch-12"]),
        (20, None, ["draft1-raw", "branch-12", "branch-16"]),
    ],
)
def test_the_stated_length_and_the_room_decide_between_them(room, stated_length, expected):
    header = parse_header(RAW).within(room, stated_length)
    assert names(header.readings) == expected
    assert (header.length, header.num_bytes) == header.readings[0][1:]
    assert all(name in header.unsupported_reason for name in expected)


# Bytes that others wrote


def test_every_file_of_the_branch_is_read(conformance):
    table = json.loads((conformance / "drafts" / "legacy.json").read_text())
    for name, entry in table.items():
        data = (conformance / "drafts" / name).read_bytes()
        header = parse_header(data[:HEADER_GUESS]).within(len(data), len(data))
        assert {(reading.length, reading.num_bytes) for reading in header.readings} == {
            (entry["header_bytes"], entry["bitset_bytes"])
        }
    first = (conformance / "parquet-testing" / "bloom_filter.bin").read_bytes()
    assert names(parse_header(first[:HEADER_GUESS]).within(len(first), len(first)).readings) == [
        "draft1-raw",
        "branch-12",
    ]
