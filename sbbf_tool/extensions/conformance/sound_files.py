"""Sound files of one column: every type, sizes and headers at their limits, places, zeros and NaNs,
empty, saturated, folded and missing filters."""

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
    StoredBytes,
    build_bitset,
    build_filter,
)
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.filters import build_header

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
        about = f"a column of {kind.column.type_name}"
        file = make_file(f"types/{kind.name}.parquet", about, FileMaker(kind))
        if kind.physical == "INT96":
            file = replace(file, questions=tuple(map(_open, file.questions)))
        yield file


def _open(question: Expectation) -> Expectation:
    """Accept any answer for an absent INT96: an instant has several forms, and a filter excludes
    only the one that is looked up."""
    if question.stored:
        return question
    return replace(question, answer=CANNOT_SAY)


def make_sizes() -> Iterator[CorpusFile]:
    for num_bytes, use in _SIZES.items():
        values = None
        if num_bytes < 64:
            values = [_INT64.stored(0)[:4], _INT64.stored(1)[:4]]
        name = f"sizes/{num_bytes}-bytes.parquet"
        about = f"bitsets of {num_bytes:,} bytes: {use}"
        yield make_file(name, about, FileMaker(_INT64, num_bytes, values))


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
        filters = {}
        for number, bitset in maker.bitsets().items():
            filters[number] = StoredBytes(header + bitset)
        yield make_file(f"headers/{name}.parquet", about, replace(maker, filters=filters))
    filters = {}
    for number, stored in maker.sound_filters().items():
        filters[number] = replace(stored, has_length=False)
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
        about = f"filters are {place}"
        yield make_file(f"places/{name}.parquet", about, replace(maker, place=place))
    first = replace(maker, filters={0: maker.sound_filters()[0]})
    about = "only the first row group has a filter: every value may be in the second"
    yield make_file("places/some-row-groups.parquet", about, first, MAYBE)
    about = "no row group has a filter: every value may be stored"
    yield make_file("places/no-filter.parquet", about, replace(maker, filters={}), MAYBE)


def make_contents() -> Iterator[CorpusFile]:
    """Make files whose filters have no bit, every bit, or were folded."""
    kind = BY_NAME["string"]
    yield _make_without_values(
        "contents/only-nulls.parquet",
        "row groups of nulls: nulls are never inserted, so that the filters have no bit",
        FileMaker(kind, values=[[], []]),
    )
    yield _make_without_values(
        "contents/no-row-groups.parquet",
        "a file without row groups: every value is absent",
        FileMaker(kind, values=[]),
    )
    full = StoredBytes(build_header(64) + b"\xff" * 64)
    maker = FileMaker(kind, filters={0: full, 1: full})
    about = "filters with every bit set: every value may be stored"
    yield make_file("contents/saturated.parquet", about, maker, MAYBE)
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


def _make_without_values(name: str, about: str, maker: FileMaker) -> CorpusFile:
    """Make a file in which every value is absent."""
    kind = maker.kind
    absent = (*kind.stored(0)[:2], *kind.extremes[:2])
    questions = [question_of(kind, name, plain, stored=False, answer=ABSENT) for plain in absent]
    return CorpusFile(name, about, maker.build(), tuple(questions))


_FLOATS = {
    "float16": ("<e", (b"\x00\x7e", b"\x01\x7e")),
    "float": ("<f", (b"\x00\x00\xc0\x7f", b"\x01\x00\xc0\x7f")),
    "double": ("<d", (b"\0\0\0\0\0\0\xf8\x7f", b"\1\0\0\0\0\0\xf8\x7f")),
}
"""The layout of a type, its canonical NaN, and a NaN with a payload."""


def make_floats() -> Iterator[CorpusFile]:
    """Make files of zeros and NaNs: equal values with different bits."""
    for name, (layout, (nan, nan_with_payload)) in _FLOATS.items():
        positive = struct.pack(layout, 0.0)
        negative = struct.pack(layout, -0.0)
        for stem, about, value, inserted in (
            ("both-zeros", "both zeros are in the filter", positive, [positive, negative]),
            ("positive-zero", "the filter has +0 alone, the stored zero", positive, [positive]),
            ("negative-zero", "the filter has -0 alone, the stored zero", negative, [negative]),
            ("nan", "a canonical NaN is stored", nan, [nan]),
            (
                "nan-payload",
                "a NaN with a payload is stored, and only it is in the filter",
                nan_with_payload,
                [nan_with_payload],
            ),
        ):
            path = f"floats/{name}-{stem}.parquet"
            yield _make_equal(BY_NAME[name], path, about, value, inserted)


def _make_equal(
    kind: Kind, name: str, about: str, value: bytes, inserted: Sequence[bytes]
) -> CorpusFile:
    """Make a file with one row group. The value and the values that equal it must not be excluded,
    whether the filter has their bits or not."""
    regular = kind.stored(0)[:4]
    filters = {0: StoredBytes(build_filter([*regular, *inserted], BITSET_BYTES))}
    maker = FileMaker(kind, values=[[*regular, value]], filters=filters)
    layout = {2: "<e", 4: "<f", 8: "<d"}[len(value)]
    (number,) = struct.unpack(layout, value)
    forms = [value]
    if number == 0:
        forms = [struct.pack(layout, 0.0), struct.pack(layout, -0.0)]
    questions = []
    for form in forms:
        question = question_of(kind, name, form, stored=True, answer=MAYBE)
        basis = FORMAT if form in inserted and number == 0 else COMPARISON
        questions.append(replace(question, basis=basis))
    bitset = build_bitset([*regular, *inserted], BITSET_BYTES)
    for plain in (regular[0], *kind.absent(2)):
        is_stored = plain in regular
        answer = answer_of([bitset], plain)
        questions.append(question_of(kind, name, plain, stored=is_stored, answer=answer))
    return CorpusFile(name, about, maker.build(), tuple(questions))


def make_booleans() -> Iterator[CorpusFile]:
    """Make filters of BOOLEAN columns, whose hash the format does not define: a plain boolean is
    one bit."""
    for name, inserted, content in (
        ("empty", [], "a filter with no bit although values are stored, as parquet-java writes it"),
        ("bytes", [b"\0", b"\1"], "a filter of the bytes 0 and 1, as arrow-rs writes it"),
    ):
        path = f"booleans/{name}.parquet"
        filters = {0: StoredBytes(build_filter(inserted, 64))}
        maker = FileMaker(BOOLEAN, values=[[b"\1", b"\0", b"\1"]], filters=filters)
        questions = []
        for plain, text in ((b"\0", "false"), (b"\1", "true")):
            question = question_of(BOOLEAN, path, plain, stored=True, answer=CANNOT_SAY)
            questions.append(replace(question, value=text))
        about = f"BOOLEAN: {content}; no reader may use it"
        yield CorpusFile(path, about, maker.build(), tuple(questions))
