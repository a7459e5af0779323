"""Sound files of nested columns and of unusual names: the leaves of structs, lists, maps and
VARIANT, each with a filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.extensions.conformance.corpus import Expectation
from sbbf_tool.extensions.conformance.corpus_file import (
    ABSENT_VALUES,
    CorpusFile,
    answer_of,
    question_of,
)
from sbbf_tool.extensions.conformance.kinds import BITSET_BYTES, BY_NAME, Kind
from sbbf_tool.extensions.conformance.parquet_writer import (
    OPTIONAL,
    REPEATED,
    REQUIRED,
    Cell,
    CorpusTable,
    StoredBytes,
    build_bitset,
    build_filter,
    build_parquet,
    build_root,
)
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import (
    ConvertedType,
    ListType,
    LogicalType,
    MapType,
    SchemaElement,
    VariantType,
)

_INT32 = BY_NAME["int32"]
_STRING = BY_NAME["string"]
_BYTES = BY_NAME["byte-array"]

Leaf = tuple[Kind, Sequence[Cell]]
"""A type, and the cells of the only row group."""


def make_nested() -> Iterator[CorpusFile]:
    yield _make_struct()
    yield _make_list()
    yield _make_map()
    yield _make_variant()
    yield _make_dotted()
    yield _make_unicode()


def _make(name: str, about: str, schema: list[SchemaElement], leaves: Sequence[Leaf]) -> CorpusFile:
    """Make a file of one row group with a filter on each leaf, and questions about each."""
    values = []
    filters = {}
    for index, (_, cells) in enumerate(leaves):
        plains = [cell.plain for cell in cells if cell.plain is not None]
        values.append(plains)
        filters[0, index] = StoredBytes(build_filter(plains, BITSET_BYTES))
    table = CorpusTable(schema, [[cells for _, cells in leaves]], filters)
    questions: list[Expectation] = []
    for (kind, _), plains, column in zip(leaves, values, table.columns, strict=True):
        questions += _questions_of(name, kind, plains, column)
    return CorpusFile(name, about, build_parquet(table), tuple(questions))


def _questions_of(
    name: str, kind: Kind, plains: Sequence[bytes], column: Column
) -> Iterator[Expectation]:
    """Yield questions about a leaf with these values: some stored ones, and some absent ones."""
    bitset = build_bitset(plains, BITSET_BYTES)
    absent = [plain for plain in kind.absent(255) if plain not in plains]
    for plain in (*plains[:3], *absent[:ABSENT_VALUES]):
        answer = answer_of([bitset], plain)
        question = question_of(kind, name, plain, stored=plain in plains, answer=answer)
        yield replace(question, column=column.name, path=column.path)


def _group(
    name: str,
    children: int,
    repetition: int,
    logical: LogicalType | None = None,
    converted: int | None = None,
) -> SchemaElement:
    return SchemaElement(
        name=name,
        num_children=children,
        repetition_type=repetition,
        logicalType=logical,
        converted_type=converted,
    )


def _make_struct() -> CorpusFile:
    cells = [Cell(None, definition=0), Cell(None, definition=1)]
    cells += (Cell(plain, definition=2) for plain in _INT32.stored(0))
    schema = [build_root(1), _group("point", 1, OPTIONAL), _INT32.element("x")]
    return _make("nested/struct.parquet", "a field of a struct", schema, [(_INT32, cells)])


def _make_list() -> CorpusFile:
    # null, [], [null], and then lists of three elements
    cells = [Cell(None, definition=0), Cell(None, definition=1), Cell(None, definition=2)]
    for at, plain in enumerate(_STRING.stored(0)):
        cells.append(Cell(plain, definition=3, repetition=1 if at % 3 else 0))
    schema = [
        build_root(1),
        _group("words", 1, OPTIONAL, LogicalType(LIST=ListType()), ConvertedType.LIST),
        _group("list", 1, REPEATED),
        _STRING.element("element"),
    ]
    return _make("nested/list.parquet", "the elements of a list", schema, [(_STRING, cells)])


def _make_map() -> CorpusFile:
    keys = _STRING.stored(0)
    # null, {}, and then maps of four entries
    key_cells = [Cell(None, definition=0), Cell(None, definition=1)]
    value_cells = [Cell(None, definition=0), Cell(None, definition=1)]
    for at, plain in enumerate(_INT32.stored(0)):
        repetition = 1 if at % 4 else 0
        key_cells.append(Cell(keys[at % len(keys)], 2, repetition))
        value_cells.append(Cell(plain, 3, repetition))
    schema = [
        build_root(1),
        _group("ages", 1, OPTIONAL, LogicalType(MAP=MapType()), ConvertedType.MAP),
        _group("key_value", 2, REPEATED),
        _STRING.element("key", REQUIRED),
        _INT32.element("value"),
    ]
    leaves = [(_STRING, key_cells), (_INT32, value_cells)]
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
    leaves = [
        (_BYTES, [Cell(metadata)] * len(integers)),
        (_BYTES, [Cell(plain) for plain in integers]),
    ]
    about = "the parts of a VARIANT, which are bytes to a filter"
    return _make("nested/variant.parquet", about, schema, leaves)


def _make_dotted() -> CorpusFile:
    """Make a top-level column `a.b` beside the field b of a struct a: one reader looked up the
    filters of both by `a.b`."""
    dotted = _INT32.stored(0)
    field = _INT32.stored(1)
    schema = [build_root(2), _INT32.element("a.b"), _group("a", 1, OPTIONAL), _INT32.element("b")]
    leaves = [
        (_INT32, [Cell(plain) for plain in dotted]),
        (_INT32, [Cell(plain, definition=2) for plain in field[: len(dotted)]]),
    ]
    about = "a column `a.b` and the field b of a struct a: two filters with the same dotted name"
    return _make("nested/dotted-name.parquet", about, schema, leaves)


def _make_unicode() -> CorpusFile:
    schema = [build_root(1), _INT32.element("Gr\u00f6\u00dfe \u6e29\u5ea6")]
    cells = [Cell(plain) for plain in _INT32.stored(0)]
    about = "a name that is not ASCII"
    return _make("nested/unicode-name.parquet", about, schema, [(_INT32, cells)])
