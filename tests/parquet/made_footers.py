"""Footers built field by field, with the fields that newer, older or unusual writers might add."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from parquet import wire
from parquet.wire import Field, Struct

OFFSET, LENGTH = (14, wire.I64), (15, wire.I32)
ROW_GROUPS, COLUMNS, META_DATA = (4, wire.LIST), (1, wire.LIST), (3, wire.STRUCT)


def column_metadata(*more: Field, name: str = "c", num_values: int = 7) -> Struct:
    """Return the required fields of a `ColumnMetaData` for an INT32 column, and more."""
    return (
        Field(1, wire.I32, wire.number(1)),
        Field(2, wire.LIST, wire.items(wire.I32, (wire.number(0), wire.number(3)))),
        Field(3, wire.LIST, wire.items(wire.BINARY, (wire.text(name),))),
        Field(4, wire.I32, wire.number(0)),
        Field(5, wire.I64, wire.number(num_values)),
        Field(6, wire.I64, wire.number(100)),
        Field(7, wire.I64, wire.number(100)),
        Field(9, wire.I64, wire.number(4)),
        *more,
    )


def column_chunk(meta: Struct, *more: Field) -> Struct:
    return (Field(2, wire.I64, wire.number(0)), Field(3, wire.STRUCT, meta), *more)


def row_group(chunks: Sequence[Struct], *more: Field) -> Struct:
    return (
        Field(1, wire.LIST, wire.items(wire.STRUCT, tuple(chunks))),
        Field(2, wire.I64, wire.number(100)),
        Field(3, wire.I64, wire.number(7)),
        *more,
    )


def file_metadata(row_groups: Sequence[Struct], columns: int, *more: Field) -> Struct:
    root = (Field(4, wire.BINARY, wire.text("schema")), Field(5, wire.I32, wire.number(columns)))
    leaves = tuple(
        (
            Field(1, wire.I32, wire.number(1)),
            Field(3, wire.I32, wire.number(1)),
            Field(4, wire.BINARY, wire.text(f"c{at}")),
        )
        for at in range(columns)
    )
    return (
        Field(1, wire.I32, wire.number(2)),
        Field(2, wire.LIST, wire.items(wire.STRUCT, (root, *leaves))),
        Field(3, wire.I64, wire.number(7 * len(row_groups))),
        Field(4, wire.LIST, wire.items(wire.STRUCT, tuple(row_groups))),
        *more,
    )


def footer_with_column(meta: Struct) -> bytes:
    """Return a footer with one row group of one column."""
    return wire.write(file_metadata([row_group([column_chunk(meta)])], 1))


# One value of each kind, by kind; of the nested ones several.
ONE_OF_EACH: dict[str, tuple[int, object]] = {
    "true": (wire.TRUE, b""),
    "false": (wire.FALSE, b""),
    "byte": (wire.BYTE, b"\x7f"),
    "i16": (wire.I16, wire.number(-300)),
    "i32": (wire.I32, wire.number(1 << 30)),
    "i64": (wire.I64, wire.number(-(1 << 62))),
    "double": (wire.DOUBLE, b"\0" * 7 + b"\x40"),
    "binary": (wire.BINARY, wire.text(b"\xff\0\x0c PAR1")),
    "empty binary": (wire.BINARY, wire.text(b"")),
    "uuid": (wire.UUID, bytes(range(16))),
    "empty list": (wire.LIST, wire.items(wire.STRUCT, ())),
    "list of i64": (
        wire.LIST,
        wire.items(wire.I64, tuple(wire.number(n << 20) for n in range(20))),
    ),
    "list of booleans": (wire.LIST, wire.items(wire.FALSE, (b"\1", b"\2", b"\1"))),
    "list with a long header": (wire.LIST, wire.items(wire.BYTE, (b"a",), long=True)),
    "set of binaries": (wire.SET, wire.items(wire.BINARY, (wire.text("x"), wire.text("y")))),
    "empty map": (wire.MAP, wire.pairs((wire.I32, wire.I32), ())),
    "map of structs": (
        wire.MAP,
        wire.pairs(
            (wire.BINARY, wire.STRUCT),
            ((wire.text("k"), (Field(1, wire.TRUE, b""), Field(900, wire.I32, wire.number(4)))),),
        ),
    ),
    "map of bytes to doubles": (
        wire.MAP,
        wire.pairs((wire.BYTE, wire.DOUBLE), ((b"\1", b"\2" * 8), (b"\3", b"\4" * 8))),
    ),
    "empty struct": (wire.STRUCT, ()),
    "structs within structs": (
        wire.STRUCT,
        (
            Field(1, wire.STRUCT, (Field(1, wire.STRUCT, ()), Field(14, wire.I64, wire.number(5)))),
            Field(15, wire.I32, wire.number(6)),
        ),
    ),
    "list of lists of maps": (
        wire.LIST,
        wire.items(
            wire.LIST,
            (
                wire.items(
                    wire.MAP, (wire.pairs((wire.I16, wire.TRUE), ((wire.number(1), b"\1"),)),)
                ),
            ),
        ),
    ),
    "list of uuids": (wire.LIST, wire.items(wire.UUID, (bytes(16), bytes(range(16))))),
}


# At random

_SCALARS = {
    wire.BYTE: st.binary(min_size=1, max_size=1),
    wire.I16: st.integers(-(2**15), 2**15 - 1).map(wire.number),
    wire.I32: st.integers(-(2**31), 2**31 - 1).map(wire.number),
    wire.I64: st.integers(-(2**63), 2**63 - 1).map(wire.number),
    wire.DOUBLE: st.binary(min_size=8, max_size=8),
    wire.BINARY: st.binary(max_size=20).map(wire.text),
    wire.UUID: st.binary(min_size=16, max_size=16),
}


def values(kind: int, depth: int) -> st.SearchStrategy[object]:
    """Draw a value of `kind` as an element of a list, where a boolean is a byte."""
    if kind in (wire.TRUE, wire.FALSE):
        return st.sampled_from([b"\1", b"\2"])
    if kind in (wire.LIST, wire.SET):
        return kinds(depth - 1).flatmap(
            lambda inner: st.builds(
                lambda items, long: wire.items(inner, tuple(items), long=long),
                st.lists(values(inner, depth - 1), max_size=3 if inner > wire.BINARY else 17),
                st.booleans(),
            )
        )
    if kind == wire.MAP:
        return st.tuples(kinds(depth - 1), kinds(depth - 1)).flatmap(
            lambda both: st.lists(
                st.tuples(values(both[0], depth - 1), values(both[1], depth - 1)), max_size=2
            ).map(lambda entries: wire.pairs(both, tuple(entries)))
        )
    if kind == wire.STRUCT:
        return st.lists(random_fields(depth - 1), max_size=3).map(tuple)
    return _SCALARS[kind]


def kinds(depth: int) -> st.SearchStrategy[int]:
    return st.sampled_from(
        [*range(wire.TRUE, wire.UUID + 1)] if depth > 0 else [wire.TRUE, wire.FALSE, *_SCALARS]
    )


def random_fields(depth: int = 2) -> st.SearchStrategy[Field]:
    """Draw a field of any id and kind."""
    return kinds(depth).flatmap(
        lambda kind: st.builds(
            Field,
            st.integers(-(2**15), 2**15 - 1),
            st.just(kind),
            st.just(b"") if kind in (wire.TRUE, wire.FALSE) else values(kind, depth),
            st.booleans(),
        )
    )


def _one_of_each(ids: list[int]) -> list[Field]:
    return [
        Field(ids[at % len(ids)], *value, long=at % 3 == 0)
        for at, value in enumerate(ONE_OF_EACH.values())
    ]


UNKNOWN_FIELDS = _one_of_each([41, 55, 56, 57, 600, -7, 2**15 - 1, -(2**15)])
"""Fields that no version of the format has."""

TAKEN_FOR_ANOTHER_USE = [
    field
    for n in (14, 15)
    for field in _one_of_each([n])
    if (field.id, field.kind) not in (OFFSET, LENGTH)
]
"""Fields with the id of offset or length but another kind, as one build of parquet-mr wrote
them."""

PRESENT_FILTERS = [
    Field(*which, wire.number(value), long)
    for which in (OFFSET, LENGTH)
    for value in (-1, 0, 5, 2**31 - 1)
    for long in (False, True)
]


@st.composite
def mixed(draw: st.DrawFn, struct: Struct, more: list[Field] = UNKNOWN_FIELDS) -> Struct:
    """Draw the known fields in any order, one in three with a long header, with other fields
    between them."""
    fields = list(struct)
    order = draw(st.randoms(use_true_random=False))
    if draw(st.booleans()):
        order.shuffle(fields)
    for field in draw(st.lists(st.sampled_from(more), max_size=3)):
        fields.insert(order.randint(0, len(fields)), field)
    return tuple(Field(*field.content, long=field.long or order.random() < 0.3) for field in fields)


@st.composite
def footers(draw: st.DrawFn, *, with_filters: bool) -> tuple[Struct, int, int]:
    """Draw a footer with its number of row groups and of columns."""
    row_groups, columns = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    more = [*UNKNOWN_FIELDS, *TAKEN_FOR_ANOTHER_USE, *(PRESENT_FILTERS * 3 if with_filters else [])]
    parts = []
    for _ in range(row_groups):
        chunks = [
            draw(mixed(column_chunk(draw(mixed(column_metadata(), more))))) for _ in range(columns)
        ]
        parts.append(draw(mixed(row_group(chunks))))
    return draw(mixed(file_metadata(parts, columns))), row_groups, columns
