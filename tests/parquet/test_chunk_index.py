"""The index of a footer's chunks: it states what parsing the whole footer states, and it declines
what is unusual."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from parquet import made_footers as made
from parquet import wire
from parquet.made_footers import column_chunk, column_metadata, file_metadata, row_group
from parquet.wire import Field, Struct
from sbbf_tool.parquet import footer_structs
from support.footer_index import assert_index_agrees, footer_of, needs_walker
from support.tables import each

pytestmark = needs_walker

GOLDEN = Path(__file__).parents[1] / "golden"
FIXTURES = Path(__file__).parents[2] / "fixtures"


# Both ways on every corpus


def test_files_of_every_writer():
    footers = [
        footer_of(path)
        for folder in (FIXTURES, GOLDEN)
        for path in sorted(folder.rglob("*.parquet*"))
        if path.is_file()
    ]
    assert sum(assert_index_agrees(raw) for raw in footers if raw) >= 20


@pytest.mark.slow
@settings(
    max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(made.footers(with_filters=True))
def test_footers_with_any_fields(made_footer):
    assert assert_index_agrees(wire.write(made_footer[0])) in (True, False)


# What the walker takes, and what it leaves to the parser


def with_meta(*fields: Field) -> Struct:
    return file_metadata([row_group([column_chunk(column_metadata(*fields))])], 1)


def with_chunk(*fields: Field) -> Struct:
    return file_metadata([row_group([column_chunk(column_metadata(), *fields)])], 1)


def nested(depth: int) -> Field:
    value: tuple[Field, ...] = ()
    for _ in range(depth):
        value = (Field(1, wire.STRUCT, value),)
    return Field(40, wire.STRUCT, value)


CHUNK = column_chunk(column_metadata())

INDEXED = {
    "no row group": (*file_metadata([], 1)[:2], Field(4, wire.LIST, wire.items(wire.STRUCT, ()))),
    "many chunks": file_metadata([row_group([CHUNK] * 40)] * 20, 40),
    "no chunk": file_metadata([row_group([])], 0),
    "an empty list of another kind": with_meta(Field(13, wire.LIST, wire.items(wire.I32, ()))),
    "a field of another kind": with_meta(Field(14, wire.BINARY, wire.text("bloom"))),
    "a filter": with_meta(
        Field(14, wire.I64, wire.number(99)), Field(15, wire.I32, wire.number(47))
    ),
    "an offset that is stated twice": with_meta(
        Field(14, wire.I64, wire.number(1)), Field(14, wire.I64, wire.number(99))
    ),
    "an offset of -2^63": with_meta(Field(14, wire.I64, wire.number(-(2**63)))),
    "a length of 33 bits": with_meta(Field(15, wire.I32, wire.number(1 << 32))),
    "an external file": with_chunk(Field(1, wire.BINARY, wire.text("elsewhere"))),
    "text that is not UTF-8": with_chunk(Field(1, wire.BINARY, wire.text(b"\xff"))),
    "an unknown field in a row group": file_metadata(
        [row_group([CHUNK], Field(4, wire.LIST, wire.items(wire.STRUCT, ())))], 1
    ),
    "chunks of another number than columns": file_metadata([row_group([CHUNK, CHUNK])], 1),
    "structs 25 deep": with_meta(nested(25)),
}
UNUSUAL = {
    "two lists of row groups": (*with_meta(), Field(4, wire.LIST, wire.items(wire.STRUCT, ()))),
    "two lists of chunks": file_metadata(
        [row_group([CHUNK], Field(1, wire.LIST, wire.items(wire.STRUCT, (CHUNK,))))], 1
    ),
    "two ColumnMetaData": with_chunk(Field(3, wire.STRUCT, column_metadata(num_values=1))),
    "no ColumnMetaData": file_metadata([row_group([(Field(2, wire.I64, wire.number(0)),)])], 1),
    "no list of row groups": with_meta()[:3],
    "no list of chunks": file_metadata([(Field(3, wire.I64, wire.number(0)),)], 1),
    "an encrypted chunk": with_chunk(Field(8, wire.STRUCT, (Field(1, wire.STRUCT, ()),))),
    "encrypted metadata": with_chunk(Field(9, wire.BINARY, wire.text("?"))),
    "an encryption algorithm": (*with_meta(), Field(8, wire.STRUCT, ())),
    "a list with other elements": with_meta(
        Field(13, wire.LIST, wire.items(wire.I32, (wire.number(1),)))
    ),
    "a list of row groups with other elements": (
        *with_meta()[:3],
        Field(4, wire.LIST, wire.items(wire.I32, (wire.number(1),))),
    ),
    "structs 40 deep": with_meta(nested(40)),
    "structs 70 deep": with_meta(nested(70)),
    "an integer with too many bytes": with_meta(Field(15, wire.I32, wire.varint(94, padding=5))),
    "text beyond the end": with_chunk(Field(1, wire.BINARY, wire.varint(1 << 31))),
    "a count beyond the end": (
        *with_meta()[:3],
        Field(4, wire.LIST, b"\xfc" + wire.varint((1 << 31) - 1)),
    ),
}


@each(
    "footer, is_taken",
    {
        name: (footer, kinds is INDEXED)
        for kinds in (INDEXED, UNUSUAL)
        for name, footer in kinds.items()
    },
)
def test_what_the_walker_takes_and_what_it_leaves_to_the_parser(footer, is_taken):
    assert assert_index_agrees(wire.write(footer)) == is_taken


def test_the_walker_refuses_what_is_no_table():
    from sbbf_tool.parquet import _compact

    raw, table = wire.write(with_meta()), footer_structs._table()
    assert _compact.walk(raw, table) is not None
    for wrong in (b"", table[:-1], b"\xff" * len(table), table[:128]):
        with pytest.raises(ValueError, match="table"):
            _compact.walk(raw, wrong)
    for arguments in (
        (raw, bytes(7), b"\1\6"),
        (raw, bytes(8), b"\0\6"),
        (raw, bytes(8), b"\x40\6"),
        (raw, b"\xff" * 8, b"\1\6"),
    ):
        with pytest.raises(ValueError, match="chunks"):
            _compact.numbers(*arguments)
