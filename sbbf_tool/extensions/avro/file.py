"""Avro object container files (Avro 1.11 specification, "Object Container Files"): manifests of
Paimon and Iceberg, data files of Paimon.

    Obj 01
    map of bytes   avro.schema, avro.codec, ...
    16 bytes       the sync marker
    blocks         number of values, size in bytes, the (compressed) values, the sync marker again

Only one block is held in memory. Its unpacked size is limited, so that a small file cannot take
much memory.
"""

from __future__ import annotations

import bz2
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from io import BytesIO
from typing import Any

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.avro.schema import Encoding, Schema, open_values, parse_schema
from sbbf_tool.frozen import Frozen, field, replace
from sbbf_tool.parquet.compact import read_varint

MAGIC = b"Obj\x01"
MAX_BLOCK = 64 << 20
"""Maximum number of unpacked bytes in a block."""

WRITABLE_CODECS = frozenset(("null", "deflate", "zstandard"))

_SYNC = 16
_BLOCK = 64 << 10
"""Bytes of values after which a block is written."""
_PART = 1 << 20
_RAW_DEFLATE = -15
"""`wbits` of zlib for deflate without header and checksum, as Avro has it."""
_INFLATERS: dict[str, Callable[[], Any]] = {
    "deflate": partial(zlib.decompressobj, wbits=_RAW_DEFLATE),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}
_META: Schema = {"type": "map", "values": "bytes"}


class AvroHeader(Frozen):
    """Header of a file: its schema, the codec of its blocks, and where these begin."""

    schema_text: str
    schema: Schema
    """The schema, parsed."""
    codec: str
    sync: bytes
    blocks_at: int
    """Offset of the first block."""
    metadata: Mapping[str, bytes] = field(factory=dict)
    """The metadata of the file other than schema and codec."""

    def renew(self, **changes: Any) -> AvroHeader:
        """Return the header of a new file, with a new sync marker and a codec that can be written.

        `changes` are the fields with other values.
        """
        codec = self.codec if self.codec in WRITABLE_CODECS else "deflate"
        return replace(self, codec=codec, sync=os.urandom(_SYNC), **changes)


def parse_header(data: bytes) -> AvroHeader:
    """Parse the header of an Avro file. Raises UnreadableError if `data` is not an Avro file."""
    if not data.startswith(MAGIC):
        raise UnreadableError("not an Avro file: the magic bytes differ", place="offset 0")
    stream = open_values(data)
    stream.seek(len(MAGIC))
    meta = Encoding(_META).read(stream)
    sync = data[stream.tell() : stream.tell() + _SYNC]
    if len(sync) < _SYNC:
        raise UnreadableError(
            "the Avro file ends inside its header", place=f"offset {stream.tell()}"
        )
    try:
        text = meta["avro.schema"].decode()
        codec = meta.get("avro.codec", b"null").decode()
    except (KeyError, UnicodeDecodeError):
        raise UnreadableError("the Avro file has no readable schema", place="offset 4") from None
    metadata = {name: meta[name] for name in meta if name not in ("avro.schema", "avro.codec")}
    blocks_at = stream.tell() + _SYNC
    return AvroHeader(text, parse_schema(text), codec, sync, blocks_at, metadata)


def iter_values(
    data: bytes, header: AvroHeader, *, raw_strings: bool = False, limit: int = sys.maxsize
) -> Iterator[Any]:
    """Yield the values of a file; with `raw_strings` a string may hold any bytes.

    See `Encoding.read`. Raises UnreadableError, with the block's offset, if the bytes contradict
    the format, the codec is not an Avro codec, or the blocks decompress to more than `limit` bytes.
    """
    encoding = Encoding(header.schema)
    number = Encoding("long")
    stream = BytesIO(data)
    stream.seek(header.blocks_at)
    total = 0
    while (start := stream.tell()) < len(data):
        try:
            count = number.read(stream)
            block = _read_block(stream, number.read(stream), len(data), header)
            total += len(block)
            if total > limit:
                raise UnreadableError(f"the blocks decompress to more than {limit:,} bytes")
            if not 0 <= count <= len(block):
                raise UnreadableError(
                    f"the block states {count} values, but has {len(block)} bytes"
                )
            values = open_values(block)
            for _ in range(count):
                yield encoding.read(values, raw_strings=raw_strings)
            if values.tell() != len(block):
                raise UnreadableError(
                    f"{len(block) - values.tell()} bytes remain after the last value"
                )
        except UnreadableError as error:
            raise UnreadableError(error.message, place=f"block at offset {start}") from None


def _read_block(stream: BytesIO, size: int, end: int, header: AvroHeader) -> bytes:
    """Read the block of `size` bytes that begins here, and its sync marker; return it unpacked."""
    remaining = end - stream.tell()
    if not 0 <= size <= remaining - _SYNC:
        raise UnreadableError(f"the block states {size} bytes, but {remaining} remain in the file")
    block = unpack(stream.read(size), header.codec)
    if stream.read(_SYNC) != header.sync:
        raise UnreadableError("the block does not end with the sync marker")
    return block


def build_file(header: AvroHeader, values: Iterable[Any], *, validate_first: bool = True) -> bytes:
    """Build a file of these values with the schema, codec, metadata and sync marker of a header.

    The text of the schema is unchanged, and the codec is one of WRITABLE_CODECS. Raises UsageError
    for a value that does not fit the schema; see `Encoding.build`.
    """
    meta = {
        **header.metadata,
        "avro.schema": header.schema_text.encode(),
        "avro.codec": header.codec.encode(),
    }
    encoding = Encoding(header.schema)
    parts = [MAGIC + Encoding(_META).build(meta) + header.sync]
    datums = []
    size = 0
    for value in values:
        datum = encoding.build(value, validate_first=validate_first)
        datums.append(datum)
        size += len(datum)
        if size >= _BLOCK:
            parts.append(_build_block(datums, header))
            datums = []
            size = 0
    if datums:
        parts.append(_build_block(datums, header))
    return b"".join(parts)


def _build_block(datums: list[bytes], header: AvroHeader) -> bytes:
    block = pack(b"".join(datums), header.codec)
    number = Encoding("long")
    return number.build(len(datums)) + number.build(len(block)) + block + header.sync


def pack(block: bytes, codec: str) -> bytes:
    """Compress the bytes of a block with a codec, which the header of an Avro file names. Raises
    UsageError for a codec that is not one of WRITABLE_CODECS."""
    if codec == "null":
        return block
    if codec == "deflate":
        deflater = zlib.compressobj(wbits=_RAW_DEFLATE)
        return deflater.compress(block) + deflater.flush()
    if codec == "zstandard":
        import pyarrow as pa

        # The codec that Avro names "zstandard".
        compressed: bytes = pa.Codec("zstd").compress(block, asbytes=True)
        return compressed
    raise UsageError(f"cannot write Avro codec {codec!r:.40}; supported: deflate, null, zstandard")


def unpack(block: bytes, codec: str) -> bytes:
    """Decompress the bytes of a block.

    Raises UnreadableError when they are corrupt, or unpack to more than MAX_BLOCK bytes.
    """
    if codec == "null":
        return block
    try:
        if codec == "snappy":
            return _unsnap(block)
        unpacked = _unzstd(block) if codec == "zstandard" else _inflate(block, codec)
    except (OSError, zlib.error, lzma.LZMAError, EOFError, IndexError, ValueError):
        raise UnreadableError(f"the block cannot be decompressed with {codec}") from None
    if len(unpacked) > MAX_BLOCK:
        raise UnreadableError(f"the block decompresses to more than {MAX_BLOCK} bytes")
    return unpacked


def _inflate(block: bytes, codec: str) -> bytes:
    if codec not in _INFLATERS:
        raise UnreadableError(
            f"cannot read Avro codec {codec!r:.40}; supported: bzip2, deflate, null, snappy, xz, "
            "zstandard"
        )
    inflater = _INFLATERS[codec]()
    unpacked: bytes = inflater.decompress(block, MAX_BLOCK + 1)
    if not inflater.eof and len(unpacked) <= MAX_BLOCK:
        raise EOFError
    return unpacked


def _unzstd(block: bytes) -> bytes:
    import pyarrow as pa

    # Read in parts: pyarrow allocates all the bytes that a read requests, and most blocks are
    # small.
    unpacked = bytearray()
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        while len(unpacked) <= MAX_BLOCK and (part := stream.read(_PART)):
            unpacked += part
    return bytes(unpacked)


def _unsnap(block: bytes) -> bytes:
    """Decompress raw snappy, which states its unpacked size.

    A CRC-32 of the unpacked bytes follows.
    """
    import pyarrow as pa

    size = 0
    if len(block) >= 5:
        size, _ = read_varint(block, 0)
    if size > MAX_BLOCK or len(block) < 5:
        raise UnreadableError(
            f"the snappy block has {len(block)} bytes and states {size} decompressed bytes"
        )
    packed = block[:-4]
    checksum = int.from_bytes(block[-4:], "big")
    unpacked: bytes = pa.Codec("snappy").decompress(packed, size, asbytes=True)
    if zlib.crc32(unpacked) != checksum:
        raise UnreadableError("the checksum of the snappy block does not match")
    return unpacked
