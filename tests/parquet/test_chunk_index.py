"""The index of a footer's chunks: it states what parsing the whole footer states, and it declines
what is unusual."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from parquet import made_footers as made
from parquet import wire
from parquet.made_footers import column_chunk, column_metadata, file_metadata, row_group
from parquet.wire import Field, Struct
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import footer_structs
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from sbbf_tool.parquet.structs import read
from support.footer_index import assert_index_agrees, footer_of, needs_walker, without_walker
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


def around(shape: str, kind: int, value: object) -> tuple[int, object]:
    """Put a value into one more container."""
    if shape == "structs":
        return wire.STRUCT, (Field(1, kind, value),)
    if shape == "lists":
        return wire.LIST, wire.items(kind, (value,))
    if shape == "sets":
        return wire.SET, wire.items(kind, (value,))
    if shape == "map values":
        return wire.MAP, wire.pairs((wire.BYTE, kind), ((b"\1", value),))
    return wire.MAP, wire.pairs((kind, wire.BYTE), ((value, b"\1"),))


SHAPES = ("structs", "lists", "sets", "map values", "map keys")
INNERMOST = {"struct": (wire.STRUCT, ()), "list": (wire.LIST, wire.items(wire.BYTE, ()))}


def with_field(level: str, field: Field) -> Struct:
    """Return a footer with an unknown field in one of its structs."""

    def of(name: str, *others: Field) -> tuple[Field, ...]:
        return (*others, field) if name == level else others

    count = Field(3, wire.I32, wire.number(1))
    stats = (Field(1, wire.I32, wire.number(0)), Field(2, wire.I32, wire.number(0)), count)
    meta = column_metadata(
        Field(12, wire.STRUCT, of("Statistics")),
        Field(13, wire.LIST, wire.items(wire.STRUCT, (of("PageEncodingStats", *stats),))),
        *of("ColumnMetaData"),
    )
    group = row_group([column_chunk(meta, *of("ColumnChunk"))], *of("RowGroup"))
    pair = of("KeyValue", Field(1, wire.BINARY, wire.text("key")))
    pairs = Field(5, wire.LIST, wire.items(wire.STRUCT, (pair,)))
    return file_metadata([group], 1, pairs, *of("FileMetaData"))


LEVELS = ("FileMetaData", "KeyValue", "RowGroup", "ColumnChunk", "ColumnMetaData", "Statistics")
LEVELS += ("PageEncodingStats",)


@each(
    "level, shape, innermost",
    [(level, shape, innermost) for level in LEVELS for shape in SHAPES for innermost in INNERMOST],
    every=4,
)
def test_an_unknown_field_of_any_depth_is_skipped_in_all_ways_or_refused(level, shape, innermost):
    """The walker's bounds are the same for positions and for numbers; what it leaves to the parser,
    and what that can read, can be changed as well."""
    kind, value = INNERMOST[innermost]
    answers = []
    for depth in range(70):
        raw = wire.write(with_field(level, Field(40, kind, value)))
        try:
            footer = Footer(raw, 4)
        except UnreadableError:
            answers.append("refused")
        else:
            places = {(0, 0): FilterPlace(99, 47)}
            both = [Footer(changed, 4) for changed in ways_of_setting(footer, places)]
            assert [each.filter_places() for each in both] == [places] * 2
            answers.append("parsed" if footer.index is None else "indexed")
        # Whether thrift's extension or this package reads it makes no difference.
        try:
            read(FileMetaData(), raw)
            is_read = True
        except UnreadableError:
            is_read = False
        assert is_read == (answers[-1] != "refused")
        if depth % 8 == 0 or answers[-2:-1] != answers[-1:]:
            assert assert_index_agrees(raw) == (answers[-1] == "indexed")
        kind, value = around(shape, kind, value)
    runs = [answer for answer, _ in groupby(answers)]
    assert runs == ["indexed", "parsed", "refused"]
    assert answers.index("parsed") > 20
    assert answers.index("refused") > 50


def ways_of_setting(footer: Footer, places: dict[tuple[int, int], FilterPlace]) -> list[bytes]:
    with without_walker():
        by_walk = set_filters(footer.raw, places)
    return [footer.set_filters(places), by_walk]


def test_the_walker_refuses_what_is_no_table():
    from sbbf_tool.parquet import _compact

    raw, table = wire.write(with_meta()), footer_structs.table_of_structs()
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
