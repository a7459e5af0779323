"""Sound files: every type, sizes and headers at their limits, places, zeros and NaNs, empty, saturated, folded and missing filters."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sbbf_tool.bloom import spec
from sbbf_tool.extensions.conformance.corpus_file import CorpusFile, FileMaker, answer_of, make_file, question_of
from sbbf_tool.extensions.conformance.kinds import BITSET_BYTES, BOOLEAN, BY_NAME, KINDS, Kind
from sbbf_tool.extensions.conformance.manifest import ABSENT, CANNOT_SAY, COMPARISON, FORMAT, MAYBE, Expectation
from sbbf_tool.extensions.conformance.parquet_writer import AFTER_ROW_GROUP, BACKWARDS, BEFORE_PAGES, StoredBytes, build_filter
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
        file = make_file(f"types/{kind.name}.parquet", f"a column of {kind.column.type_name}", FileMaker(kind))
        if kind.physical == "INT96":
            file = replace(file, questions=tuple(_open(question) for question in file.questions))
        yield file


def _open(question: Expectation) -> Expectation:
    """Accept any answer for an absent INT96: an instant has several forms, and a filter excludes only the one that is looked up."""
    return question if question.stored else replace(question, answer=CANNOT_SAY)


def make_sizes() -> Iterator[CorpusFile]:
    for num_bytes, about in _SIZES.items():
        values = _INT64.stored(0)[:4] if num_bytes < 64 else None
        maker = FileMaker(_INT64, num_bytes, None if values is None else [values, _INT64.stored(1)[:4]])
        yield make_file(f"sizes/{num_bytes}-bytes.parquet", f"bitsets of {num_bytes:,} bytes: {about}", maker)


def make_large() -> CorpusFile:
    """Make the file of one filter of 128 MiB, which takes most of the time of a corpus."""
    about = "a bitset of 128 MiB: the largest that most readers take; its header has 19 bytes"
    return make_file(LARGE, about, FileMaker(_INT64, 1 << 27, [_INT64.stored(0)]))


def make_headers() -> Iterator[CorpusFile]:
    """Make headers of the format in a form that no writer chooses, but that a Thrift parser reads."""
    maker = FileMaker(_INT64)
    usual = build_header(BITSET_BYTES)
    size = usual[1:3]
    forms = {
        "long-field-headers": (
            b"\x05\x02" + size + b"\x0c\x04\x0c\x02\x00\x00\x0c\x06\x0c\x02\x00\x00\x0c\x08\x0c\x02\x00\x00\x00",
            "the ids of the header's fields are written in full, not as differences",
        ),
        "unknown-field": (usual[:-1] + b"\x15\x54\x00", "the header has a field of a later version of the format, which is skipped"),
        "padded-varint": (
            b"\x15" + size[:-1] + bytes([size[-1] | 0x80]) + b"\x80\x00" + usual[3:],
            "numBytes is a varint with more bytes than it needs",
        ),
    }
    for name, (header, about) in forms.items():
        filters = {number: StoredBytes(header + bitset) for number, bitset in maker.bitsets().items()}
        yield make_file(f"headers/{name}.parquet", about, replace(maker, filters=filters))
    filters = {number: replace(stored, has_length=False) for number, stored in maker.sound_filters().items()}
    about = "bloom_filter_length is missing, as in files of parquet-java before 1.14, Trino and Impala"
    yield make_file("headers/without-length.parquet", about, replace(maker, filters=filters))


def make_places() -> Iterator[CorpusFile]:
    """Make files with filters at each place that the format allows, and without filters."""
    maker = FileMaker(_INT64)
    for name, place in (("before-pages", BEFORE_PAGES), ("after-row-group", AFTER_ROW_GROUP), ("backwards", BACKWARDS)):
        yield make_file(f"places/{name}.parquet", f"filters are {place}", replace(maker, place=place))
    name = "places/some-row-groups.parquet"
    some = replace(maker, filters={0: maker.sound_filters()[0]})
    questions = some.questions(name, MAYBE)
    about = "only the first row group has a filter: every value may be in the second"
    yield CorpusFile(name, about, some.build(), questions)
    name = "places/no-filter.parquet"
    none = replace(maker, filters={})
    yield CorpusFile(name, "no row group has a filter: every value may be stored", none.build(), none.questions(name, MAYBE))


def make_contents() -> Iterator[CorpusFile]:
    """Make files whose filters have no bit, every bit, or were folded."""
    kind = BY_NAME["string"]
    name = "contents/only-nulls.parquet"
    nulls = FileMaker(kind, values=[[], []])
    absent = tuple(question_of(kind, name, plain, stored=False, answer=ABSENT) for plain in (*kind.stored(0)[:2], *kind.extremes[:2]))
    yield CorpusFile(name, "row groups of nulls: nulls are never inserted, so that the filters have no bit", nulls.build(), absent)
    name = "contents/no-row-groups.parquet"
    empty = FileMaker(kind, values=[])
    absent = tuple(replace(question, file=name) for question in absent)
    yield CorpusFile(name, "a file without row groups: every value is absent", empty.build(), absent)
    name = "contents/saturated.parquet"
    full = FileMaker(kind, filters={at: StoredBytes(build_header(64) + b"\xff" * 64) for at in (0, 1)})
    yield CorpusFile(name, "filters with every bit set: every value may be stored", full.build(), full.questions(name, MAYBE))
    maker = FileMaker(_INT64)
    folded = {}
    for number, values in enumerate(maker.stored()):
        bitset: bytes | bytearray = build_filter(values, 16 * BITSET_BYTES, header=b"")
        while len(bitset) > BITSET_BYTES:
            bitset = spec.fold(bitset, len(bitset) // spec.BLOCK_BYTES)
        folded[number] = StoredBytes(build_header(len(bitset)) + bytes(bitset))
    about = "filters built with 4,096 bytes and folded to 256, as arrow-rs and Arrow C++ do: the same as filters built with 256"
    yield make_file("contents/folded.parquet", about, replace(maker, filters=folded))


def make_floats() -> Iterator[CorpusFile]:
    """Make files of zeros and NaNs: equal values with different bits."""
    for name, layout, nans in (
        ("float16", "<e", (b"\x00\x7e", b"\x01\x7e", b"\x00\xfe")),
        ("float", "<f", (b"\x00\x00\xc0\x7f", b"\x01\x00\xc0\x7f", b"\x00\x00\xc0\xff")),
        ("double", "<d", (b"\0\0\0\0\0\0\xf8\x7f", b"\1\0\0\0\0\0\xf8\x7f", b"\0\0\0\0\0\0\xf8\xff")),
    ):
        kind = BY_NAME[name]
        positive, negative = struct.pack(layout, 0.0), struct.pack(layout, -0.0)
        more = kind.stored(0)[:4]
        for stem, about, values, inserted in (
            ("both-zeros", "both zeros are in the filter", [positive], [positive, negative]),
            ("positive-zero", "the filter has +0 alone, the stored zero", [positive], [positive]),
            ("negative-zero", "the filter has -0 alone, the stored zero", [negative], [negative]),
            ("nan", "a canonical NaN is stored", nans[:1], nans[:1]),
            ("nan-payload", "a NaN with a payload is stored, and only it is in the filter", nans[1:2], nans[1:2]),
        ):
            yield _make_equal(kind, f"floats/{name}-{stem}", about, values, inserted, more)


def _make_equal(kind: Kind, stem: str, about: str, values: Sequence[bytes], inserted: Sequence[bytes], more: Sequence[bytes]) -> CorpusFile:
    """Make a file with one row group. Each value equals a stored one: whether the filter has its bits or not, it must not be excluded."""
    name = f"{stem}.parquet"
    stored = FileMaker(kind, values=[[*more, *values]])
    filters = {0: StoredBytes(build_filter([*more, *inserted], BITSET_BYTES))}
    layout = {2: "<e", 4: "<f", 8: "<d"}[len(values[0])]
    (number,) = struct.unpack(layout, values[0])
    forms = [struct.pack(layout, zero) for zero in (0.0, -0.0)] if number == 0 else [values[0]]
    questions = [
        replace(question_of(kind, name, form, stored=True, answer=MAYBE), basis=FORMAT if form in inserted and number == 0 else COMPARISON)
        for form in forms
    ]
    bitset = build_filter([*more, *inserted], BITSET_BYTES, header=b"")
    questions += [
        question_of(kind, name, plain, stored=plain in more, answer=answer_of([bitset], plain)) for plain in (more[0], *kind.absent(2))
    ]
    return CorpusFile(name, about, replace(stored, filters=filters).build(), tuple(questions))


def make_booleans() -> Iterator[CorpusFile]:
    """Make filters of BOOLEAN columns, whose hash the format does not define: a plain boolean is one bit."""
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
