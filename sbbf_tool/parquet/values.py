"""The values of one column chunk as the bytes that a Bloom filter hashes (parquet-format BloomFilter.md and Encodings.md, "Plain").

What is hashed is the PLAIN form of the *physical* type. pyarrow decodes the pages, but would turn decimals, timestamps, UUIDs or
narrow integers into its own types; so it is given a footer of one column, whose schema has lost its logical types and in which INT96
is called FIXED_LEN_BYTE_ARRAY(12). What arrives then is what the pages hold. Batches are small, so memory stays flat.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory
from thrift.transport.TTransport import TMemoryBuffer

from sbbf_tool.bloom import hashing
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.footer import MAGIC, Footer, build_tail
from sbbf_tool.parquet.idl.ttypes import ColumnChunk, FileMetaData, RowGroup, SchemaElement, Type

BATCH_BYTES = 4 << 20
MAX_BATCH_ROWS = 128 << 10
# A dictionary page can hold one long value that every row of a batch repeats once it is decoded.
MAX_BATCH_ROWS_OF_DICTIONARY = 8 << 10
STREAM_BUFFER_BYTES = 1 << 20

_FLOATS = {"FLOAT": "<f4", "DOUBLE": "<f8"}
_ZEROS_AND_NANS = {
    "<f2": (("0000", "0080"), ("007e", "00fe")),
    "<f4": (("00000000", "00000080"), ("0000c07f", "0000c0ff")),
    "<f8": (("00" * 8, "00" * 7 + "80"), ("000000000000f87f", "000000000000f8ff")),
}


class PlainValues:
    """A run of non-null values of a column; `len` of it is their count."""

    def __init__(self, column: Column, array: pa.Array) -> None:
        self.column = column
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, position: int) -> bytes:
        """The plain bytes of one value."""
        width = self.column.width
        if width is not None:
            return bytes(self._fixed(width)[position * width : (position + 1) * width])
        return bytes(self._array[position].as_buffer())

    def hashes(self) -> hashing.Hashes:
        """XXH64 of every value, in order."""
        width = self.column.width
        if width is not None:
            return hashing.hash_fixed(self._fixed(width), width)
        _, offsets, data = self._array.buffers()
        large = pa.types.is_large_binary(self._array.type)
        size = 8 if large else 4
        start = self._array.offset * size
        window = memoryview(offsets)[start : start + (len(self) + 1) * size]
        return hashing.hash_variable(memoryview(data) if data is not None else b"", window, size)

    def equals_of_stored(self) -> list[bytes]:
        """Plain bytes that are not stored here and that SQL calls equal to one that is: the other zero, and the two canonical NaNs.

        A reader that asks for one zero must find the other (parquet-format issue 407), so a builder inserts these too.
        """
        dtype = "<f2" if self.column.logical is not None and self.column.logical.kind == "FLOAT16" else _FLOATS.get(self.column.physical)
        if dtype is None or self.column.width != np.dtype(dtype).itemsize:
            return []
        numbers = np.frombuffer(self._fixed(self.column.width), dtype=dtype)
        zeros, nans = _ZEROS_AND_NANS[dtype]
        found = zeros if bool((numbers == 0).any()) else ()
        if bool(np.isnan(numbers).any()):
            found += nans
        return [bytes.fromhex(form) for form in found]

    def _fixed(self, width: int) -> memoryview:
        start = self._array.offset * width
        return memoryview(self._array.buffers()[1])[start : start + len(self) * width]


def read_chunk(open_file: Callable[[], pa.NativeFile], footer: Footer, row_group: int, column: Column) -> Iterator[PlainValues]:
    """All non-null values of a column chunk, batch by batch. Raises UnreadableError where its pages cannot be decoded.

    `open_file` answers with a new stream over the whole file; only the chunk's own bytes are read from it.
    """
    place = f"column {column.name}, row group {row_group}"
    if not footer.metadata.row_groups[row_group].num_rows:
        return
    try:
        metadata = pq.read_metadata(pa.BufferReader(_narrow_file(footer, row_group, column)))
        with open_file() as stream:
            reader = pq.ParquetFile(stream, metadata=metadata, buffer_size=STREAM_BUFFER_BYTES, pre_buffer=False)
            for batch in reader.iter_batches(_batch_rows(footer, row_group, column), use_threads=False):
                array = _leaves(batch.column(0))
                if len(array):
                    yield PlainValues(column, array)
    except (pa.ArrowException, OSError, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise UnreadableError(f"the pages cannot be decoded ({reason})", place=place) from error


def _batch_rows(footer: Footer, row_group: int, column: Column) -> int:
    meta = footer.metadata.row_groups[row_group].columns[column.index].meta_data
    rows = max(1, footer.metadata.row_groups[row_group].num_rows)
    bytes_per_row = max(1, max(meta.total_uncompressed_size or 0, 4 * (meta.num_values or 0)) // rows)
    most = MAX_BATCH_ROWS if meta.dictionary_page_offset is None or column.width else MAX_BATCH_ROWS_OF_DICTIONARY
    return max(1, min(most, BATCH_BYTES // bytes_per_row))


def _leaves(array: pa.Array) -> pa.Array:
    """The leaf values below lists and structs, without nulls. A leaf under a null parent is itself null, and goes with them."""
    while pa.types.is_nested(array.type):
        array = array.field(0) if pa.types.is_struct(array.type) else array.flatten()
    return array.drop_null() if array.null_count else array


def _narrow_file(footer: Footer, row_group: int, column: Column) -> bytes:
    """A file of a footer and nothing else, which knows one column in one row group, and its values as raw physical ones."""
    source = footer.metadata.row_groups[row_group]
    chunk = source.columns[column.index]
    meta = copy.copy(chunk.meta_data)
    meta.statistics = meta.bloom_filter_offset = meta.bloom_filter_length = meta.key_value_metadata = None
    meta.size_statistics = meta.geospatial_statistics = None
    if meta.type == Type.INT96:
        meta.type = Type.FIXED_LEN_BYTE_ARRAY
    narrow = FileMetaData(
        version=footer.metadata.version,
        schema=_narrow_schema(footer.metadata.schema, column),
        num_rows=source.num_rows,
        row_groups=[
            RowGroup(
                columns=[ColumnChunk(file_offset=chunk.file_offset, meta_data=meta)],
                total_byte_size=source.total_byte_size,
                num_rows=source.num_rows,
            )
        ],
        created_by=footer.metadata.created_by,
    )
    buffer = TMemoryBuffer()
    narrow.write(TCompactProtocolAcceleratedFactory().getProtocol(buffer))
    raw = buffer.getvalue()
    return MAGIC + raw + build_tail(raw)


def _narrow_schema(schema: list[Any], column: Column) -> list[Any]:
    """Root and the groups on the way to one leaf, each with one child and without annotations, then the leaf."""
    narrow = []
    pos, leaf = 0, 0
    parents: list[list[Any]] = []  # [element, children still to come]
    for pos, element in enumerate(schema):
        if pos and not element.num_children:
            if leaf == column.index:
                narrow = [parent for parent, _ in parents] + [element]
                break
            leaf += 1
        if pos:
            parents[-1][1] -= 1
        if not pos or element.num_children:
            parents.append([element, element.num_children or 0])
        while parents and not parents[-1][1]:
            parents.pop()
    return [_bare(element, is_leaf=element is narrow[-1]) for element in narrow]


def _bare(element: Any, *, is_leaf: bool) -> SchemaElement:
    if not is_leaf:
        return SchemaElement(name=element.name, repetition_type=element.repetition_type, num_children=1)
    is_int96 = element.type == Type.INT96
    return SchemaElement(
        name=element.name,
        repetition_type=element.repetition_type,
        type=Type.FIXED_LEN_BYTE_ARRAY if is_int96 else element.type,
        type_length=12 if is_int96 else element.type_length,
    )
