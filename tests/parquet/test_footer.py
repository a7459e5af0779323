"""Tails of files that are cut short or no Parquet at all, and the places of filters in a footer."""

from __future__ import annotations

import pytest

from parquet import made_footers as made
from parquet import wire
from parquet.made_footers import column_metadata
from parquet.wire import Field
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.footer import Footer, parse_tail
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from support.tables import each

# Tail


@each(
    "raw, size, message",
    [
        *(
            (b"\0\0\0\0PAR1"[-size:] if size else b"", size, "not a Parquet file")
            for size in range(12)
        ),
        *(
            (bytes(4) + magic, 1000, "does not end with PAR1")
            for magic in (b"PAR2", b"par1", bytes(4), b"ORC1", b"PARA")
        ),
        *(
            (
                length.to_bytes(4, "little") + b"PAR1",
                1000,
                f"footer of {length:,} bytes does not fit into the file of 1,000",
            )
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


# Filters

META = column_metadata()


def test_a_filter_is_where_a_chunk_has_an_offset_above_0():
    for offset in (0, -1, -(2**63)):
        meta = column_metadata(
            Field(14, wire.I64, wire.number(offset)), Field(15, wire.I32, wire.number(80))
        )
        assert Footer(made.footer_with_column(meta), 4).filter_place(0, 0) is None
    for key in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        with pytest.raises(UnreadableError, match="a column chunk to edit"):
            set_filters(made.footer_with_column(META), {key: FilterPlace(4, 80)})
