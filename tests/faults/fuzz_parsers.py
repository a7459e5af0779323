"""The targets of fuzzing: footer and the index of its chunks, filter header, page header, column
chunk, the splice that writes footers; Paimon's containers and manifests; key material.

Each target takes any bytes and raises only the package's own errors; parsed input must also have
the properties that it asserts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sbbf_tool.encryption.keys import parse_material, parse_material_file
from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.extensions.paimon.bloom64 import KIND, parse_bloom64
from sbbf_tool.extensions.paimon.index_container import build_container, parse_container
from sbbf_tool.extensions.paimon.manifest import parse_manifest
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import FilterHeader, build_header, parse_header
from sbbf_tool.parquet.footer import Footer, parse_tail
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, CompressionCodec
from sbbf_tool.parquet.pages import ChunkPages, read_page, read_pages
from sbbf_tool.parquet.plain_page import PlainPage
from sbbf_tool.parquet.plain_pages import NotPlainError, PlainChunk
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from support.footer_index import assert_index_agrees

CORPUS = Path(__file__).with_name("corpus")


def footer(data: bytes) -> None:
    """A footer that parses can also be spliced; the result has the new places of filters and is
    otherwise unchanged."""
    parsed_footer = Footer(data, 4)
    for number in range(parsed_footer.num_row_groups):
        for column in parsed_footer.columns:
            parsed_footer.filter_place(number, column.index)
    chunks = [
        (number, column.index)
        for number in range(parsed_footer.num_row_groups)
        for column in parsed_footer.columns
        if parsed_footer.chunk(number, column.index) is not None
        and parsed_footer.elsewhere(number, column.index) is None
    ][:8]
    places = {key: FilterPlace(1000 + at, 47) for at, key in enumerate(chunks)}
    fresh = Footer(set_filters(data, places), 4)
    for key, place in places.items():
        assert fresh.filter_place(*key) == place
    no_filters = dict.fromkeys(chunks)
    assert set_filters(fresh.raw, no_filters) == set_filters(data, no_filters)


def indexed_footer(data: bytes) -> None:
    """A footer whose chunks are indexed states what the whole footer states, or is refused for the
    same reason; so do its parts."""
    assert_index_agrees(data)


def tail(data: bytes) -> None:
    parse_tail(data[-8:], len(data))


def filter_header(data: bytes) -> None:
    header = parse_header(data)
    assert 0 < header.length <= len(data)
    assert 32 <= header.num_bytes < 1 << 31
    if header.unsupported_reason is None:
        assert parse_header(build_header(header.num_bytes)) == FilterHeader(
            len(build_header(header.num_bytes)), header.num_bytes
        )


def page_header(data: bytes) -> None:
    def read(offset: int, length: int) -> bytes:
        return data[max(0, offset) : offset + max(0, length)]

    assert 0 < read_page(read, 0, len(data)).header_bytes <= len(data)
    for _, page in zip(
        range(1000),
        read_pages(read, ColumnMetaData(data_page_offset=0, total_compressed_size=len(data))),
        strict=False,
    ):
        assert page.size >= 0


CODECS = (
    CompressionCodec.UNCOMPRESSED,
    CompressionCodec.SNAPPY,
    CompressionCodec.GZIP,
    CompressionCodec.BROTLI,
    CompressionCodec.ZSTD,
    CompressionCodec.LZ4_RAW,
)
SHAPES = (
    ("INT64", 0, 0),
    ("INT64", 1, 0),
    ("BYTE_ARRAY", 1, 0),
    ("BYTE_ARRAY", 3, 1),
    ("DOUBLE", 1, 0),
    ("FIXED_LEN_BYTE_ARRAY", 2, 0),
)
"""Physical type, highest definition level and highest repetition level."""


def chunk(data: bytes) -> None:
    """A column chunk after two bytes: one for codec and shape, one for the number of values."""
    if len(data) < 2:
        raise UnreadableError("no codec, no shape")
    physical, definition, repetition = SHAPES[data[0] // len(CODECS) % len(SHAPES)]
    column = Column(
        0,
        ("c",),
        ("c",),
        physical,
        6 if physical == "FIXED_LEN_BYTE_ARRAY" else 0,
        None,
        definition,
        repetition,
    )
    meta = ColumnMetaData(
        codec=CODECS[data[0] % len(CODECS)],
        num_values=data[1],
        data_page_offset=2,
        total_compressed_size=len(data) - 2,
    )
    try:
        chunk = ChunkPages(meta, lambda offset, length: data[offset : offset + length], open)
        for page in PlainChunk(chunk, column).pages():
            rows, numbers = (page.rows, page) if isinstance(page, PlainPage) else page()
            assert rows is None or len(rows()) == len(numbers)
    except NotPlainError:
        raise UnreadableError("for a decoder") from None


def compact_struct(data: bytes) -> None:
    """The two walkers of the compact protocol agree on where a struct ends."""
    try:
        fields, stop = compact.fields(data, 0)
        assert compact.skip(data, 0, compact.STRUCT) == stop + 1
        assert all(field.start < field.value <= field.end <= stop for field in fields)
    except IndexError:
        # The module's error for bytes that end too soon; its callers turn it into a message.
        return


def container(data: bytes) -> None:
    """The indexes of a Paimon file index that parses come back, and its filters are within its
    bounds."""
    parsed_container = parse_container(data)
    assert (
        parse_container(build_container(parsed_container.bodies)).bodies == parsed_container.bodies
    )
    for kinds in parsed_container.indexes.values():
        for index in kinds.values():
            body = parsed_container.body_of(index)
            assert len(body) == index.length or index.empty
            if index.kind == KIND and body:
                assert 0 <= parse_bloom64(body).fill_ratio <= 1


def manifest(data: bytes) -> None:
    """Avro, the format of Paimon's manifests."""
    for entry in parse_manifest(data):
        assert "/" not in entry.file.name


def key_material(data: bytes) -> None:
    """Key metadata, or the file of key metadata beside a Parquet file. A wrapping key has both a
    name and bytes, or neither."""
    single = parse_material(data, lambda reference: data)
    materials = (
        [single]
        if single is not None
        else [
            parse_material(each, lambda reference: None)
            for each in parse_material_file(data).values()
        ]
    )
    for material in filter(None, materials):
        assert (material.wrapping_key_id is None) == (material.wrapped_wrapping_key is None)


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        footer,
        indexed_footer,
        tail,
        filter_header,
        page_header,
        chunk,
        compact_struct,
        container,
        manifest,
        key_material,
    )
}


def feed(target: Callable[[bytes], None], data: bytes) -> None:
    """Accept the package's own errors; any other exception fails the target."""
    with suppress(SbbfError):
        target(data)


def corpus_of(name: str) -> Path:
    """Return the folder of a target's corpus. Targets for structs share the corpus of footers."""
    return CORPUS / ("footer" if name in ("compact_struct", "indexed_footer") else name)


def seeds(name: str) -> list[bytes]:
    """Return the corpus of a target, the smallest file first."""
    return sorted((path.read_bytes() for path in corpus_of(name).iterdir()), key=len)
