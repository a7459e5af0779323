"""Parquet files with handwritten pages, whose headers state wrong or excessive sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cramjam

from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.footer import MAGIC, build_tail
from sbbf_tool.parquet.idl.ttypes import (
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    DataPageHeader,
    DataPageHeaderV2,
    DictionaryPageHeader,
    Encoding,
    FieldRepetitionType,
    FileMetaData,
    PageEncodingStats,
    PageHeader,
    PageType,
    RowGroup,
    SchemaElement,
    Type,
)
from sbbf_tool.parquet.structs import build_struct

BITSET_BYTES = 64


class Page(NamedTuple):
    """A page as stored in the file; its header states `stated_size` uncompressed bytes."""

    kind: int
    encoding: int
    values: int
    stored: bytes
    stated_size: int

    def header(self) -> PageHeader:
        header = PageHeader(
            type=self.kind,
            compressed_page_size=len(self.stored),
            uncompressed_page_size=self.stated_size,
        )
        if self.kind == PageType.DICTIONARY_PAGE:
            header.dictionary_page_header = DictionaryPageHeader(
                num_values=self.values, encoding=self.encoding
            )
        elif self.kind == PageType.DATA_PAGE:
            header.data_page_header = DataPageHeader(
                num_values=self.values,
                encoding=self.encoding,
                definition_level_encoding=Encoding.RLE,
                repetition_level_encoding=Encoding.RLE,
            )
        else:
            header.data_page_header_v2 = DataPageHeaderV2(
                num_values=self.values,
                num_nulls=0,
                num_rows=self.values,
                encoding=self.encoding,
                definition_levels_byte_length=0,
                repetition_levels_byte_length=0,
            )
        return header


def write_pages(path: Path, codec: int, pages: Sequence[Page], physical: int = Type.INT64) -> Path:
    """Write a file of one required column `v` with these pages, and a filter with every bit set,
    which has no false negatives."""
    chunk = b"".join(build_struct(page.header()) + page.stored for page in pages)
    header = build_header(BITSET_BYTES)
    body = MAGIC + chunk + header + b"\xff" * BITSET_BYTES
    first, has_dictionary = pages[0], pages[0].kind == PageType.DICTIONARY_PAGE
    values = sum(page.values for page in pages if page.kind != PageType.DICTIONARY_PAGE)
    meta = ColumnMetaData(
        type=physical,
        encodings=sorted(
            {page.encoding for page in pages} - ({Encoding.PLAIN} if has_dictionary else set())
        ),
        path_in_schema=["v"],
        codec=codec,
        num_values=values,
        total_uncompressed_size=sum(page.stated_size for page in pages),
        total_compressed_size=len(chunk),
        dictionary_page_offset=len(MAGIC) if has_dictionary else None,
        data_page_offset=len(MAGIC)
        + (len(build_struct(first.header())) + len(first.stored) if has_dictionary else 0),
        bloom_filter_offset=len(MAGIC) + len(chunk),
        bloom_filter_length=len(header) + BITSET_BYTES,
        encoding_stats=[
            PageEncodingStats(page_type=page.kind, encoding=page.encoding, count=1)
            for page in pages
        ],
    )
    schema = [
        SchemaElement(name="schema", num_children=1),
        SchemaElement(name="v", type=physical, repetition_type=FieldRepetitionType.REQUIRED),
    ]
    group = RowGroup(
        columns=[ColumnChunk(file_offset=0, meta_data=meta)],
        total_byte_size=len(chunk),
        num_rows=values,
    )
    footer = build_struct(
        FileMetaData(
            version=2, schema=schema, num_rows=values, row_groups=[group], created_by="by hand"
        )
    )
    path.write_bytes(body + footer + build_tail(footer))
    return path


def compress(codec: int, plain: bytes) -> bytes:
    if codec == CompressionCodec.SNAPPY:
        return bytes(cramjam.snappy.compress_raw(plain))
    if codec == CompressionCodec.GZIP:
        return bytes(cramjam.gzip.compress(plain))
    if codec == CompressionCodec.BROTLI:
        return bytes(cramjam.brotli.compress(plain, level=5))
    if codec == CompressionCodec.ZSTD:
        return bytes(cramjam.zstd.compress(plain))
    if codec == CompressionCodec.LZ4_RAW:
        return bytes(cramjam.lz4.compress_block(plain, store_size=False))
    return plain


def zstd_zeros(size: int, block: int = 128 << 10) -> bytes:
    """Build a Zstandard frame of `size` zero bytes with 4 bytes per block (RFC 8878, RLE_Block),
    without allocating them."""
    frame = bytearray(b"\x28\xb5\x2f\xfd\x00\x38")  # no content size; a window of 128 KiB
    for start in range(0, size, block):
        length = min(block, size - start)
        is_last = start + length == size
        frame += (length << 3 | 1 << 1 | is_last).to_bytes(3, "little") + b"\0"
    return bytes(frame)
