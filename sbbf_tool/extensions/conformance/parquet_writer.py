"""A small Parquet writer for the corpus: PLAIN pages without compression, one page per column
chunk, and filters exactly as given.

The bytes depend on nothing but their arguments: no other library writes pages, and the nonces of
encrypted modules are computed from the name of the file (`Encrypter`), which only files with public
keys may do. There is no minimum and maximum, so that only filters prune.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sbbf_tool.bloom import spec
from sbbf_tool.encryption.modules import Module
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.columns import PHYSICAL_TYPES, Column, leaf_columns
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.footer import MAGIC, build_tail
from sbbf_tool.parquet.idl import ttypes
from sbbf_tool.parquet.structs import build_struct

CREATED_BY = "sbbf-conformance"

# Where the filters of a file are.
AT_END = "at the end"
BEFORE_PAGES = "before the pages"
AFTER_ROW_GROUP = "after the row group"
BACKWARDS = "at the end, backwards"

OPTIONAL = ttypes.FieldRepetitionType.OPTIONAL
REQUIRED = ttypes.FieldRepetitionType.REQUIRED
REPEATED = ttypes.FieldRepetitionType.REPEATED

ChunkKey = tuple[int, int]


class Cell(Frozen):
    """A value of a leaf as a page stores it: its levels, and its plain bytes unless it is null."""

    plain: bytes | None
    definition: int = 1
    repetition: int = 0


class StoredBytes(Frozen):
    """A filter as stored, and what the footer states of it: by default its place and its length."""

    data: bytes
    has_length: bool = True
    stated_length: int | None = None
    stated_offset: int | None = None
    """May point anywhere; the bytes are stored all the same place as others."""


class Encrypter(Frozen):
    """The encryption of a file: see `encrypted_files`. `finish` changes the chunks of the footer,
    and `tail` stores the footer."""

    encrypt: Callable[[Module, ChunkKey, bytes, int | None], bytes]
    finish: Callable[[ttypes.FileMetaData], None]
    tail: Callable[[ttypes.FileMetaData], bytes]
    magic: bytes = MAGIC


@dataclass
class CorpusTable:
    """Rows to be written: a schema, root first, and the cells of each leaf in each row group."""

    schema: list[ttypes.SchemaElement]
    row_groups: Sequence[Sequence[Sequence[Cell]]]
    filters: Mapping[ChunkKey, StoredBytes] = field(default_factory=dict)
    place: str = AT_END
    encrypter: Encrypter | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return leaf_columns(self.schema)


def build_root(children: int) -> ttypes.SchemaElement:
    return ttypes.SchemaElement(name="schema", num_children=children)


def build_filter(values: Sequence[bytes], num_bytes: int) -> bytes:
    """Build header and bitset of a filter of these plain values."""
    return build_header(num_bytes) + build_bitset(values, num_bytes)


def build_bitset(values: Sequence[bytes], num_bytes: int) -> bytes:
    """Build the bitset with the plain integers of the specification."""
    bitset = bytearray(num_bytes)
    for value in values:
        spec.filter_insert(bitset, num_bytes // spec.BLOCK_BYTES, spec.xxh64(value))
    return bytes(bitset)


def build_parquet(table: CorpusTable) -> bytes:
    """Build the bytes of a file."""
    return _Writer(table).build()


class _Writer:
    def __init__(self, table: CorpusTable) -> None:
        self._table = table
        self._body = bytearray(MAGIC if table.encrypter is None else table.encrypter.magic)
        self._places: dict[ChunkKey, int] = {}

    def build(self) -> bytes:
        table = self._table
        row_groups = []
        for number, chunks in enumerate(table.row_groups):
            keys = [(number, index) for index in range(len(chunks))]
            if table.place == BEFORE_PAGES:
                self._store_filters(keys)
            row_groups.append(self._write_row_group(number, chunks))
            if table.place == AFTER_ROW_GROUP:
                self._store_filters(keys)
        remaining = [key for key in table.filters if key not in self._places]
        self._store_filters(sorted(remaining, reverse=table.place == BACKWARDS))
        metadata = self._build_metadata(row_groups)
        if table.encrypter is not None:
            table.encrypter.finish(metadata)
            return bytes(self._body) + table.encrypter.tail(metadata)
        raw = build_struct(metadata)
        return bytes(self._body) + raw + build_tail(raw)

    def _build_metadata(self, row_groups: list[ttypes.RowGroup]) -> ttypes.FileMetaData:
        order = ttypes.ColumnOrder(TYPE_ORDER=ttypes.TypeDefinedOrder())
        metadata = ttypes.FileMetaData(
            version=2,
            schema=self._table.schema,
            num_rows=sum(group.num_rows for group in row_groups),
            row_groups=row_groups,
            created_by=CREATED_BY,
            column_orders=[order] * len(self._table.columns),
        )
        for key, stored in self._table.filters.items():
            self._state_filter(metadata, key, stored)
        return metadata

    def _write_row_group(self, number: int, chunks: Sequence[Sequence[Cell]]) -> ttypes.RowGroup:
        columns = [self._write_chunk((number, index), cells) for index, cells in enumerate(chunks)]
        size = sum(chunk.meta_data.total_compressed_size for chunk in columns)
        rows = sum(cell.repetition == 0 for cell in chunks[0])
        return ttypes.RowGroup(
            columns=columns,
            total_byte_size=size,
            num_rows=rows,
            file_offset=columns[0].meta_data.data_page_offset,
            total_compressed_size=size,
            ordinal=number,
        )

    def _write_chunk(self, key: ChunkKey, cells: Sequence[Cell]) -> ttypes.ColumnChunk:
        column = self._table.columns[key[1]]
        offset = len(self._body)
        self._write_page(key, _build_page(column, cells), len(cells))
        size = len(self._body) - offset
        return ttypes.ColumnChunk(
            file_offset=0,
            meta_data=ttypes.ColumnMetaData(
                type=PHYSICAL_TYPES.index(column.physical),
                encodings=[ttypes.Encoding.PLAIN, ttypes.Encoding.RLE],
                path_in_schema=list(column.path),
                codec=ttypes.CompressionCodec.UNCOMPRESSED,
                num_values=len(cells),
                total_uncompressed_size=size,
                total_compressed_size=size,
                data_page_offset=offset,
                statistics=ttypes.Statistics(null_count=sum(cell.plain is None for cell in cells)),
            ),
        )

    def _write_page(self, key: ChunkKey, page: bytes, num_values: int) -> None:
        header = ttypes.PageHeader(
            type=ttypes.PageType.DATA_PAGE,
            uncompressed_page_size=len(page),
            compressed_page_size=len(self._encrypt(Module.DATA_PAGE, key, page)),
            data_page_header=ttypes.DataPageHeader(
                num_values=num_values,
                encoding=ttypes.Encoding.PLAIN,
                definition_level_encoding=ttypes.Encoding.RLE,
                repetition_level_encoding=ttypes.Encoding.RLE,
            ),
        )
        self._body += self._encrypt(Module.DATA_PAGE_HEADER, key, build_struct(header))
        self._body += self._encrypt(Module.DATA_PAGE, key, page)

    def _encrypt(self, module: Module, key: ChunkKey, plain: bytes) -> bytes:
        encrypter = self._table.encrypter
        return plain if encrypter is None else encrypter.encrypt(module, key, plain, 0)

    def _store_filters(self, keys: Sequence[ChunkKey]) -> None:
        for key in keys:
            if key in self._table.filters:
                self._places[key] = len(self._body)
                self._body += self._table.filters[key].data

    def _state_filter(
        self, metadata: ttypes.FileMetaData, key: ChunkKey, stored: StoredBytes
    ) -> None:
        """Give the metadata of a chunk the place and the length of its filter."""
        row_group, index = key
        meta = metadata.row_groups[row_group].columns[index].meta_data
        meta.bloom_filter_offset = self._places[key]
        if stored.stated_offset is not None:
            meta.bloom_filter_offset = stored.stated_offset
        if stored.has_length:
            meta.bloom_filter_length = len(stored.data)
            if stored.stated_length is not None:
                meta.bloom_filter_length = stored.stated_length


def _build_page(column: Column, cells: Sequence[Cell]) -> bytes:
    levels = b""
    if column.max_repetition:
        levels += _build_levels([cell.repetition for cell in cells])
    if column.max_definition:
        levels += _build_levels([cell.definition for cell in cells])
    plains = [cell.plain for cell in cells if cell.plain is not None]
    if column.physical == "BOOLEAN":
        bits = sum(plain[0] << at for at, plain in enumerate(plains))
        return levels + bits.to_bytes(-(-len(plains) // 8), "little")
    if column.physical == "BYTE_ARRAY":
        return levels + b"".join(len(plain).to_bytes(4, "little") + plain for plain in plains)
    return levels + b"".join(plains)


def _build_levels(levels: Sequence[int]) -> bytes:
    """Build levels below 256 in the RLE encoding, with their length, as runs (Encodings.md)."""
    runs = bytearray()
    start = 0
    for at in range(1, len(levels) + 1):
        if at == len(levels) or levels[at] != levels[start]:
            runs += compact.build_varint((at - start) << 1) + bytes([levels[start]])
            start = at
    return len(runs).to_bytes(4, "little") + bytes(runs)
