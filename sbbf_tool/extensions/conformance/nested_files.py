"""Leaves of nested columns, and columns whose names look like those of nested ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sbbf_tool.extensions.conformance.corpus_file import ABSENT_VALUES, CorpusFile, answer_of, question_of
from sbbf_tool.extensions.conformance.kinds import BITSET_BYTES, BY_NAME, Kind
from sbbf_tool.extensions.conformance.manifest import Expectation
from sbbf_tool.extensions.conformance.parquet_writer import (
    OPTIONAL,
    REPEATED,
    REQUIRED,
    Cell,
    CorpusTable,
    StoredBytes,
    build_filter,
    build_parquet,
    build_root,
)
from sbbf_tool.parquet.idl.ttypes import ConvertedType, ListType, LogicalType, MapType, SchemaElement, VariantType

_INT32, _STRING, _BYTES = BY_NAME["int32"], BY_NAME["string"], BY_NAME["byte-array"]

Leaf = tuple[Kind, Sequence[Cell]]


def make_nested() -> Iterator[CorpusFile]:
    yield _make_struct()
    yield _make_list()
    yield _make_map()
    yield _make_variant()
    yield _make_dotted()
    yield _make_unicode()


def _make(name: str, about: str, schema: list[SchemaElement], leaves: Sequence[Leaf]) -> CorpusFile:
    """Make a file of one row group with a filter on each leaf, and questions about each."""
    values = [[cell.plain for cell in cells if cell.plain is not None] for _, cells in leaves]
    bitsets = [build_filter(plains, BITSET_BYTES, header=b"") for plains in values]
    filters = {(0, index): StoredBytes(build_filter(plains, BITSET_BYTES)) for index, plains in enumerate(values)}
    table = CorpusTable(schema, [[cells for _, cells in leaves]], filters)
    questions: list[Expectation] = []
    for (kind, _), plains, bitset, column in zip(leaves, values, bitsets, table.columns, strict=True):
        absent = [plain for plain in kind.absent(255) if plain not in plains][:ABSENT_VALUES]
        for plain in (*plains[:3], *absent):
            question = question_of(kind, name, plain, stored=plain in plains, answer=answer_of([bitset], plain))
            questions.append(replace(question, column=column.name, path=column.path))
    return CorpusFile(name, about, build_parquet(table), tuple(questions))


def _group(name: str, children: int, repetition: int, logical: LogicalType | None = None, converted: int | None = None) -> SchemaElement:
    return SchemaElement(name=name, num_children=children, repetition_type=repetition, logicalType=logical, converted_type=converted)


def _make_struct() -> CorpusFile:
    cells = [Cell(None, definition=0), Cell(None, definition=1), *(Cell(plain, definition=2) for plain in _INT32.stored(0))]
    schema = [build_root(1), _group("point", 1, OPTIONAL), _INT32.element("x")]
    return _make("nested/struct.parquet", "a field of a struct", schema, [(_INT32, cells)])


def _make_list() -> CorpusFile:
    cells = [Cell(None, definition=0), Cell(None, definition=1), Cell(None, definition=2)]  # null, [], [null]
    cells += [Cell(plain, definition=3, repetition=at % 3 and 1) for at, plain in enumerate(_STRING.stored(0))]
    logical = LogicalType(LIST=ListType())
    groups = [_group("words", 1, OPTIONAL, logical, ConvertedType.LIST), _group("list", 1, REPEATED)]
    return _make("nested/list.parquet", "the elements of a list", [build_root(1), *groups, _STRING.element("element")], [(_STRING, cells)])


def _make_map() -> CorpusFile:
    keys, numbers = _STRING.stored(0), _INT32.stored(0)
    repetitions = [at % 4 and 1 for at in range(len(numbers))]
    key_cells = [Cell(keys[at % len(keys)], 2, repetition) for at, repetition in enumerate(repetitions)]
    value_cells = [Cell(plain, 3, repetition) for plain, repetition in zip(numbers, repetitions, strict=True)]
    empty = [Cell(None, definition=0), Cell(None, definition=1)]
    logical = LogicalType(MAP=MapType())
    schema = [build_root(1), _group("ages", 1, OPTIONAL, logical, ConvertedType.MAP), _group("key_value", 2, REPEATED)]
    schema += [_STRING.element("key", REQUIRED), _INT32.element("value")]
    leaves = [(_STRING, [*empty, *key_cells]), (_INT32, [*empty, *value_cells])]
    return _make("nested/map.parquet", "the keys and the values of a map", schema, leaves)


def _make_variant() -> CorpusFile:
    logical = LogicalType(VARIANT=VariantType(specification_version=1))
    metadata = b"\x01\x00\x00"
    integers = [b"\x14" + plain for plain in _INT32.stored(0)]
    schema = [
        build_root(1),
        _group("anything", 2, REQUIRED, logical),
        _BYTES.element("metadata", REQUIRED),
        _BYTES.element("value", REQUIRED),
    ]
    leaves = [(_BYTES, [Cell(metadata)] * len(integers)), (_BYTES, [Cell(plain) for plain in integers])]
    return _make("nested/variant.parquet", "the parts of a VARIANT, which are bytes to a filter", schema, leaves)


def _make_dotted() -> CorpusFile:
    """Make a top-level column `a.b` beside the field b of a struct a: one reader looked up the filters of both by `a.b`."""
    dotted, field = _INT32.stored(0), _INT32.stored(1)
    schema = [build_root(2), _INT32.element("a.b"), _group("a", 1, OPTIONAL), _INT32.element("b")]
    leaves = [(_INT32, [Cell(plain) for plain in dotted]), (_INT32, [Cell(plain, definition=2) for plain in field[: len(dotted)]])]
    about = "a column `a.b` and the field b of a struct a: two filters with the same dotted name"
    return _make("nested/dotted-name.parquet", about, schema, leaves)


def _make_unicode() -> CorpusFile:
    schema = [build_root(1), _INT32.element("Gr\u00f6\u00dfe \u6e29\u5ea6")]
    return _make("nested/unicode-name.parquet", "a name that is not ASCII", schema, [(_INT32, [Cell(plain) for plain in _INT32.stored(0)])])
