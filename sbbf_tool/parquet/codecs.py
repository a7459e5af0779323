"""The codecs that compress pages (parquet-format Compression.md), without pyarrow."""

from __future__ import annotations

from collections.abc import Callable

import cramjam

from sbbf_tool.parquet.idl.ttypes import CompressionCodec


def _decompress_lz4(stored: bytes | memoryview, plain: memoryview) -> int:
    """Decompress what is named LZ4: either blocks of Hadoop, or one block as in LZ4_RAW; only the
    lengths in it show which.

    Hadoop's streams state one uncompressed length, big-endian, and then compressed blocks, each
    after its length, until it is reached.
    """
    try:
        position = written = 0
        while position < len(stored):
            end = written + _length_at(stored, position)
            position += 4
            while written < end <= len(plain):
                length = _length_at(stored, position)
                position += 4
                if not 0 < length <= len(stored) - position:
                    raise ValueError("no blocks of Hadoop")
                block = stored[position : position + length]
                written += _decompress_lz4_block(block, plain[written:end])
                position += length
        if written == len(plain) and position == len(stored):
            return written
    except (ValueError, cramjam.DecompressionError):
        pass
    return _decompress_lz4_block(stored, plain)


def _length_at(stored: bytes | memoryview, position: int) -> int:
    return int.from_bytes(stored[position : position + 4], "big")


def _decompress_lz4_block(stored: bytes | memoryview, plain: memoryview) -> int:
    return int(cramjam.lz4.decompress_block_into(stored, plain, output_len=len(plain)))


CODECS: dict[int, Callable[[bytes | memoryview, memoryview], int]] = {
    CompressionCodec.SNAPPY: cramjam.snappy.decompress_raw_into,
    CompressionCodec.GZIP: cramjam.gzip.decompress_into,
    CompressionCodec.BROTLI: cramjam.brotli.decompress_into,
    CompressionCodec.LZ4: _decompress_lz4,
    CompressionCodec.ZSTD: cramjam.zstd.decompress_into,
    CompressionCodec.LZ4_RAW: _decompress_lz4_block,
}
"""Functions that decompress into memory of the stated size and return the number of bytes written,
without numpy or pyarrow."""


COMPILED_CODECS = (
    None,
    None,
    cramjam.gzip.decompress_into,
    None,
    cramjam.brotli.decompress_into,
    None,
    cramjam.zstd.decompress_into,
)
"""The same by number, where the function itself is that of an extension: C calls these for pages
that it reads. It needs none for Snappy."""
