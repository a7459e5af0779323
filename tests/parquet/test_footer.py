"""The tail of a file and what a footer must hold to be one; and where a patch puts what it appends."""

from __future__ import annotations

import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.footer import Footer, Tail, build_tail, parse_tail
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from sbbf_tool.parquet.structs import parse_struct
from support import made_footers as made
from support import wire
from support.made_footers import column_metadata
from support.tables import each
from support.wire import Field

# Tail


def test_the_tail_says_where_the_footer_is():
    assert parse_tail(build_tail(b"x" * 500), 1000) == Tail(492, 500, False)
    assert parse_tail((500).to_bytes(4, "little") + b"PARE", 1000) == Tail(492, 500, True)
    assert parse_tail(build_tail(b""), 12) == Tail(4, 0, False)


@each(
    "raw, size, message",
    [
        *((b"\0\0\0\0PAR1"[-size:] if size else b"", size, "not a Parquet file") for size in range(12)),
        *((bytes(4) + magic, 1000, "does not end with PAR1") for magic in (b"PAR2", b"par1", bytes(4), b"ORC1", b"PARA")),
        *(
            (length.to_bytes(4, "little") + b"PAR1", 1000, f"footer of {length:,} bytes does not fit into the file of 1,000")
            for length in (989, 1000, 2**31, 2**32 - 1)
        ),
    ],
)
def test_other_tails_are_unreadable(raw, size, message):
    with pytest.raises(UnreadableError, match=message):
        parse_tail(raw, size)


@each(
    "content, kind",
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 9\n", "Git LFS"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), "Zstandard"),
        (b"ORC" + bytes(20) + b"ORC", "ORC"),
        (bytes(8) + b"DUCK" + bytes(20), "DuckDB"),
        (b"\xef\xbb\xbfid,name\n1,J\xc3\xbcrgen\n", "CSV"),
        (b'{"id": 1}\n', "JSON"),
        (b"\n<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "XML"),
        (b"Not found: the object does not exist", "a file of text"),
        (bytes(1000), "zero bytes"),
        (b"PAR1" + bytes(20), "truncated"),
        (b"\x93\x01\x02" * 9, "truncated"),
    ],
)
def test_what_is_not_parquet_is_named(tmp_path, content, kind):
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(UnreadableError, match=kind) as caught:
        ParquetFile.open(tmp_path / "x.parquet")
    assert caught.value.hint


# What a footer must hold

META = column_metadata()
GROUP = made.row_group([made.column_chunk(META)])


NO_FOOTERS = {
    "nothing": b"",
    "only a stop": b"\0",
    "no schema": wire.write((Field(4, wire.LIST, wire.items(wire.STRUCT, (GROUP,))),)),
    "an empty schema": wire.write(
        (Field(2, wire.LIST, wire.items(wire.STRUCT, ())), Field(4, wire.LIST, wire.items(wire.STRUCT, (GROUP,))))
    ),
    "no row groups": wire.write(made.file_metadata([], 1)[:3]),
    "a chunk too few": wire.write(made.file_metadata([GROUP], 2)),
    "a chunk too many": wire.write(made.file_metadata([made.row_group([made.column_chunk(META)] * 2)], 1)),
    "a row group without chunks": wire.write(made.file_metadata([GROUP[1:]], 1)),
    "row groups that are numbers": wire.write((*made.file_metadata([], 1)[:3], Field(4, wire.LIST, wire.items(wire.I32, (b"\2",))))),
    "junk": bytes(range(256)),
}


@each("raw", NO_FOOTERS)
def test_bytes_that_are_no_footer_are_unreadable(raw):
    with pytest.raises(UnreadableError):
        Footer(raw, 4)
    with pytest.raises(UnreadableError, match="the row group has 1 column chunks, but the schema has 2 leaf columns") as caught:
        Footer(NO_FOOTERS["a chunk too few"], 4)
    assert caught.value.place == "row group 0"


@pytest.mark.timeout(10)
@each("count", [2**20, 2**31 - 1, 2**32 - 1, 2**62])
def test_a_list_that_claims_more_than_there_is_is_unreadable(count):
    for field_id in (2, 4, 5, 7):
        with pytest.raises(UnreadableError):
            parse_struct(FileMetaData, bytes([field_id << 4 | wire.LIST, 0xF0 | wire.STRUCT]) + wire.varint(count) + b"\0" * 100)


# Filters


def test_a_filter_is_where_a_chunk_has_an_offset_above_0():
    for offset in (0, -1, -(2**63)):
        meta = column_metadata(Field(14, wire.I64, wire.number(offset)), Field(15, wire.I32, wire.number(80)))
        assert Footer(made.footer_with_column(meta), 4).filter_place(0, 0) is None
    for key in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        with pytest.raises(UnreadableError, match="a column chunk to edit"):
            set_filters(made.footer_with_column(META), {key: FilterPlace(4, 80)})
