"""Sound files: every type, sizes and headers at their limits, places, zeros and NaNs, empty,
saturated, folded and missing filters."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from sbbf_tool.bloom import spec
from sbbf_tool.extensions.conformance.corpus import (
    ABSENT,
    CANNOT_SAY,
    COMPARISON,
    FORMAT,
    MAYBE,
    Expectation,
)
from sbbf_tool.extensions.conformance.corpus_file import (
    ABSENT_VALUES,
    CorpusFile,
    FileMaker,
    answer_of,
    make_file,
    question_of,
)
from sbbf_tool.extensions.conformance.kinds import BITSET_BYTES, BOOLEAN, BY_NAME, KINDS, Kind
from sbbf_tool.extensions.conformance.parquet_writer import (
    AFTER_ROW_GROUP,
    BACKWARDS,
    BEFORE_PAGES,
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
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.idl.ttypes import (
    ConvertedType,
    ListType,
    LogicalType,
    MapType,
    SchemaElement,
    VariantType,
)

LARGE = "sizes/134217728-bytes.parquet"
_INT64 = BY_NAME["int64"]
_SIZES = {
    32: "one block, the least size; Impala reads past its end",
    64: "two blocks, the least size of most writers",
    96: "three blocks: not a power of two, which Arrow C++ and Impala require",
    1000: "31 blocks and 8 unused bytes, as parquet-java writes a given number of bytes",
    8160: "the largest filter before the header has 17 bytes",
    8192: "the smallest filter whose header has 17 bytes",
    1 << 20: "1 MiB: the smallest filter whose header has 18 bytes",
}


def make_types() -> Iterator[CorpusFile]:
    for kind in KINDS:
        file = make_file(
            f"types/{kind.name}.parquet", f"a column of {kind.column.type_name}", FileMaker(kind)
        )
        if kind.physical == "INT96":
            file = replace(file, questions=tuple(_open(question) for question in file.questions))
        yield file


def _open(question: Expectation) -> Expectation:
    """Accept any answer for an absent INT96: an instant has several forms, and a filter excludes
    only the one that is looked up."""
    return question if question.stored else replace(question, answer=CANNOT_SAY)


def make_sizes() -> Iterator[CorpusFile]:
    for num_bytes, about in _SIZES.items():
        values = _INT64.stored(0)[:4] if num_bytes < 64 else None
        maker = FileMaker(
            _INT64, num_bytes, None if values is None else [values, _INT64.stored(1)[:4]]
        )
        yield make_file(
            f"sizes/{num_bytes}-bytes.parquet", f"bitsets of {num_bytes:,} bytes: {about}", maker
        )


def make_large() -> CorpusFile:
    """Make the file of one filter of 128 MiB, which takes most of the time of a corpus."""
    about = "a bitset of 128 MiB: the largest that most readers take; its header has 19 bytes"
    return make_file(LARGE, about, FileMaker(_INT64, 1 << 27, [_INT64.stored(0)]))


def make_headers() -> Iterator[CorpusFile]:
    """Make headers of the format in a form that no writer chooses, but that a Thrift parser
    reads."""
    maker = FileMaker(_INT64)
    usual = build_header(BITSET_BYTES)
    size = usual[1:3]
    forms = {
        "long-field-headers": (
            b"\x05\x02"
            + size
            + b"\x0c\x04\x0c\x02\x00\x00\x0c\x06\x0c\x02\x00\x00\x0c\x08\x0c\x02\x00\x00\x00",
            "the ids of the header's fields are written in full, not as differences",
        ),
        "unknown-field": (
            usual[:-1] + b"\x15\x54\x00",
            "the header has a field of a later version of the format, which is skipped",
        ),
        "padded-varint": (
            b"\x15" + size[:-1] + bytes([size[-1] | 0x80]) + b"\x80\x00" + usual[3:],
            "numBytes is a varint with more bytes than it needs",
        ),
    }
    for name, (header, about) in forms.items():
        filters = {
            number: StoredBytes(header + bitset) for number, bitset in maker.bitsets().items()
        }
        yield make_file(f"headers/{name}.parquet", about, replace(maker, filters=filters))
    filters = {
        number: replace(stored, has_length=False)
        for number, stored in maker.sound_filters().items()
    }
    about = (
        "bloom_filter_length is missing, as in files of parquet-java before 1.14, Trino and Impala"
    )
    yield make_file("headers/without-length.parquet", about, replace(maker, filters=filters))


def make_places() -> Iterator[CorpusFile]:
    """Make files with filters at each place that the format allows, and without filters."""
    maker = FileMaker(_INT64)
    for name, place in (
        ("before-pages", BEFORE_PAGES),
        ("after-row-group", AFTER_ROW_GROUP),
        ("backwards", BACKWARDS),
    ):
        yield make_file(
            f"places/{name}.parquet", f"filters are {place}", replace(maker, place=place)
        )
    about = "only the first row group has a filter: every value may be in the second"
    yield make_file(
        "places/some-row-groups.parquet",
        about,
        replace(maker, filters={0: maker.sound_filters()[0]}),
        MAYBE,
    )
    about = "no row group has a filter: every value may be stored"
    yield make_file("places/no-filter.parquet", about, replace(maker, filters={}), MAYBE)


def make_contents() -> Iterator[CorpusFile]:
    """Make files whose filters have no bit, every bit, or were folded."""
    kind = BY_NAME["string"]
    name = "contents/only-nulls.parquet"
    nulls = FileMaker(kind, values=[[], []])
    absent = tuple(
        question_of(kind, name, plain, stored=False, answer=ABSENT)
        for plain in (*kind.stored(0)[:2], *kind.extremes[:2])
    )
    yield CorpusFile(
        name,
        "row groups of nulls: nulls are never inserted, so that the filters have no bit",
        nulls.build(),
        absent,
    )
    name = "contents/no-row-groups.parquet"
    empty = FileMaker(kind, values=[])
    absent = tuple(replace(question, file=name) for question in absent)
    yield CorpusFile(
        name, "a file without row groups: every value is absent", empty.build(), absent
    )
    full = FileMaker(
        kind, filters={at: StoredBytes(build_header(64) + b"\xff" * 64) for at in (0, 1)}
    )
    yield make_file(
        "contents/saturated.parquet",
        "filters with every bit set: every value may be stored",
        full,
        MAYBE,
    )
    maker = FileMaker(_INT64)
    folded = {}
    for number, values in enumerate(maker.stored()):
        bitset: bytes | bytearray = build_bitset(values, 16 * BITSET_BYTES)
        while len(bitset) > BITSET_BYTES:
            bitset = spec.fold(bitset, len(bitset) // spec.BLOCK_BYTES)
        folded[number] = StoredBytes(build_header(len(bitset)) + bytes(bitset))
    about = (
        "filters built with 4,096 bytes and folded to 256, as arrow-rs and Arrow C++ do: "
        "the same as filters built with 256"
    )
    yield make_file("contents/folded.parquet", about, replace(maker, filters=folded))


def make_floats() -> Iterator[CorpusFile]:
    """Make files of zeros and NaNs: equal values with different bits."""
    for name, layout, nans in (
        ("float16", "<e", (b"\x00\x7e", b"\x01\x7e", b"\x00\xfe")),
        ("float", "<f", (b"\x00\x00\xc0\x7f", b"\x01\x00\xc0\x7f", b"\x00\x00\xc0\xff")),
        (
            "double",
            "<d",
            (b"\0\0\0\0\0\0\xf8\x7f", b"\1\0\0\0\0\0\xf8\x7f", b"\0\0\0\0\0\0\xf8\xff"),
        ),
    ):
        kind = BY_NAME[name]
        positive, negative = struct.pack(layout, 0.0), struct.pack(layout, -0.0)
        more = kind.stored(0)[:4]
        for stem, about, values, inserted in (
            ("both-zeros", "both zeros are in the filter", [positive], [positive, negative]),
            ("positive-zero", "the filter has +0 alone, the stored zero", [positive], [positive]),
            ("negative-zero", "the filter has -0 alone, the stored zero", [negative], [negative]),
            ("nan", "a canonical NaN is stored", nans[:1], nans[:1]),
            (
                "nan-payload",
                "a NaN with a payload is stored, and only it is in the filter",
                nans[1:2],
                nans[1:2],
            ),
        ):
            yield _make_equal(kind, f"floats/{name}-{stem}", about, values, inserted, more)


def _make_equal(
    kind: Kind,
    stem: str,
    about: str,
    values: Sequence[bytes],
    inserted: Sequence[bytes],
    more: Sequence[bytes],
) -> CorpusFile:
    """Make a file with one row group. Each value equals a stored one: whether the filter has its
    bits or not, it must not be excluded."""
    name = f"{stem}.parquet"
    stored = FileMaker(kind, values=[[*more, *values]])
    filters = {0: StoredBytes(build_filter([*more, *inserted], BITSET_BYTES))}
    layout = {2: "<e", 4: "<f", 8: "<d"}[len(values[0])]
    (number,) = struct.unpack(layout, values[0])
    forms = [struct.pack(layout, zero) for zero in (0.0, -0.0)] if number == 0 else [values[0]]
    questions = [
        replace(
            question_of(kind, name, form, stored=True, answer=MAYBE),
            basis=FORMAT if form in inserted and number == 0 else COMPARISON,
        )
        for form in forms
    ]
    bitset = build_bitset([*more, *inserted], BITSET_BYTES)
    questions += [
        question_of(kind, name, plain, stored=plain in more, answer=answer_of([bitset], plain))
        for plain in (more[0], *kind.absent(2))
    ]
    return CorpusFile(name, about, replace(stored, filters=filters).build(), tuple(questions))


def make_booleans() -> Iterator[CorpusFile]:
    """Make filters of BOOLEAN columns, whose hash the format does not define: a plain boolean is
    one bit."""
    for name, inserted, about in (
        ("empty", [], "a filter with no bit although values are stored, as parquet-java writes it"),
        ("bytes", [b"\0", b"\1"], "a filter of the bytes 0 and 1, as arrow-rs writes it"),
    ):
        path = f"booleans/{name}.parquet"
        filters = {0: StoredBytes(build_filter(inserted, 64))}
        maker = FileMaker(BOOLEAN, values=[[b"\1", b"\0", b"\1"]], filters=filters)
        questions = tuple(
            replace(question_of(BOOLEAN, path, plain, stored=True, answer=CANNOT_SAY), value=text)
            for plain, text in ((b"\0", "false"), (b"\1", "true"))
        )
        yield CorpusFile(path, f"BOOLEAN: {about}; no reader may use it", maker.build(), questions)


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
    bitsets = [build_bitset(plains, BITSET_BYTES) for plains in values]
    filters = {
        (0, index): StoredBytes(build_filter(plains, BITSET_BYTES))
        for index, plains in enumerate(values)
    }
    table = CorpusTable(schema, [[cells for _, cells in leaves]], filters)
    questions: list[Expectation] = []
    for (kind, _), plains, bitset, column in zip(
        leaves, values, bitsets, table.columns, strict=True
    ):
        absent = [plain for plain in kind.absent(255) if plain not in plains][:ABSENT_VALUES]
        for plain in (*plains[:3], *absent):
            question = question_of(
                kind, name, plain, stored=plain in plains, answer=answer_of([bitset], plain)
            )
            questions.append(replace(question, column=column.name, path=column.path))
    return CorpusFile(name, about, build_parquet(table), tuple(questions))


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
    cells = [
        Cell(None, definition=0),
        Cell(None, definition=1),
        *(Cell(plain, definition=2) for plain in _INT32.stored(0)),
    ]
    schema = [build_root(1), _group("point", 1, OPTIONAL), _INT32.element("x")]
    return _make("nested/struct.parquet", "a field of a struct", schema, [(_INT32, cells)])


def _make_list() -> CorpusFile:
    cells = [
        Cell(None, definition=0),
        Cell(None, definition=1),
        Cell(None, definition=2),
    ]  # null, [], [null]
    cells += [
        Cell(plain, definition=3, repetition=at % 3 and 1)
        for at, plain in enumerate(_STRING.stored(0))
    ]
    logical = LogicalType(LIST=ListType())
    groups = [
        _group("words", 1, OPTIONAL, logical, ConvertedType.LIST),
        _group("list", 1, REPEATED),
    ]
    return _make(
        "nested/list.parquet",
        "the elements of a list",
        [build_root(1), *groups, _STRING.element("element")],
        [(_STRING, cells)],
    )


def _make_map() -> CorpusFile:
    keys, numbers = _STRING.stored(0), _INT32.stored(0)
    repetitions = [at % 4 and 1 for at in range(len(numbers))]
    key_cells = [
        Cell(keys[at % len(keys)], 2, repetition) for at, repetition in enumerate(repetitions)
    ]
    value_cells = [
        Cell(plain, 3, repetition) for plain, repetition in zip(numbers, repetitions, strict=True)
    ]
    empty = [Cell(None, definition=0), Cell(None, definition=1)]
    logical = LogicalType(MAP=MapType())
    schema = [
        build_root(1),
        _group("ages", 1, OPTIONAL, logical, ConvertedType.MAP),
        _group("key_value", 2, REPEATED),
    ]
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
    leaves = [
        (_BYTES, [Cell(metadata)] * len(integers)),
        (_BYTES, [Cell(plain) for plain in integers]),
    ]
    return _make(
        "nested/variant.parquet",
        "the parts of a VARIANT, which are bytes to a filter",
        schema,
        leaves,
    )


def _make_dotted() -> CorpusFile:
    """Make a top-level column `a.b` beside the field b of a struct a: one reader looked up the
    filters of both by `a.b`."""
    dotted, field = _INT32.stored(0), _INT32.stored(1)
    schema = [build_root(2), _INT32.element("a.b"), _group("a", 1, OPTIONAL), _INT32.element("b")]
    leaves = [
        (_INT32, [Cell(plain) for plain in dotted]),
        (_INT32, [Cell(plain, definition=2) for plain in field[: len(dotted)]]),
    ]
    about = "a column `a.b` and the field b of a struct a: two filters with the same dotted name"
    return _make("nested/dotted-name.parquet", about, schema, leaves)


def _make_unicode() -> CorpusFile:
    schema = [build_root(1), _INT32.element("Gr\u00f6\u00dfe \u6e29\u5ea6")]
    return _make(
        "nested/unicode-name.parquet",
        "a name that is not ASCII",
        schema,
        [(_INT32, [Cell(plain) for plain in _INT32.stored(0)])],
    )
