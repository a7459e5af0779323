"""The end of a Parquet file and the `FileMetaData` in it (parquet-format README, "File format";
parquet.thrift).

    ... pages ... | FileMetaData (Thrift compact) | u32 LE length of FileMetaData | "PAR1"

A changed footer is spliced from its own bytes (`splice`), so everything that this package does not
know is kept. A footer that is encrypted or signed has a `Cipher`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, product, starmap
from typing import NamedTuple

from sbbf_tool.errors import NotParquetError, UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.columns import PHYSICAL_TYPES, UNKNOWN, Column, leaf_columns, with_readings
from sbbf_tool.parquet.footer_structs import LEAST_SHARE, FooterStructs
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, SchemaElement
from sbbf_tool.parquet.pages import ChunkMeta, page_range
from sbbf_tool.parquet.splice import ChunkKey, Cipher, FilterPlace, set_filters

MAGIC = b"PAR1"
MAGIC_ENCRYPTED = b"PARE"
TAIL_BYTES = 8


Leaves = Callable[[Sequence[SchemaElement]], tuple[Column, ...]]
"""Function that lists the leaf columns of a schema, such as `leaf_columns`."""


class Tail(NamedTuple):
    """Position of the footer: bytes `start` to `start + length` of the file, before the length word
    and the magic."""

    start: int
    length: int
    encrypted: bool


_HINT = "write or copy it again"
"""What to do about a file that was not written or copied as a whole, which is the usual cause of a
footer that cannot be read."""


class Footer(FooterStructs):
    """A `FileMetaData` with its bytes and its position in the file.

    For an encrypted or signed footer, `raw` is the plaintext struct, and `stored_bytes` its length
    as stored in the file.
    """

    def __init__(
        self,
        raw: bytes,
        start: int,
        *,
        stored_bytes: int | None = None,
        cipher: Cipher | None = None,
        leaves: Leaves = leaf_columns,
    ) -> None:
        try:
            # The metadata of encrypted chunks are replaced when they are decrypted, so these
            # footers have all their chunks as objects.
            super().__init__(raw, whole=cipher is not None)
            if not self.num_row_groups and (self.metadata.num_rows or 0) > 0:
                raise UnreadableError(
                    f"the footer states {self.metadata.num_rows:,} rows, but has no row group"
                )
        except UnreadableError as error:
            error.hint = error.hint or _HINT
            raise
        self.start = start
        self.stored_bytes = len(raw) if stored_bytes is None else stored_bytes
        self.cipher = cipher
        self.file_name: str | None = None
        """Name of the file in its folder, by which its own chunks may name it."""
        self.columns: tuple[Column, ...] = with_readings(
            leaves(self.metadata.schema), self.metadata
        )
        """Leaf columns in the schema's order; a column's `index` is its position in every row
        group."""
        for number in range(self.num_row_groups):
            num_chunks = self.num_chunks(number)
            if num_chunks != len(self.columns):
                raise UnreadableError(
                    f"the row group has {num_chunks or 0} column chunks, but the schema has "
                    f"{len(self.columns)} leaf columns",
                    place=f"row group {number}",
                )

    @property
    def end(self) -> int:
        """Bytes of the file up to and including this footer, its length word and its magic."""
        return self.start + self.stored_bytes + TAIL_BYTES

    @property
    def is_writable(self) -> bool:
        """Whether a changed footer can replace this one; a signed footer must be signed again,
        which requires its key."""
        if self.cipher is None:
            return self.metadata.encryption_algorithm is None
        return self.cipher.can_write

    def is_locked(self, row_group: int, column: int) -> bool:
        """Return whether the full metadata of a column chunk are encrypted with a key that is
        missing."""
        if self.column_chunk(row_group, column).encrypted_column_metadata is None:
            return False
        return self.cipher is None or not self.cipher.has_key((row_group, column))

    def num_rows(self, row_group: int) -> int | None:
        """Return the rows of a row group as stated."""
        rows: int | None = self.row_group(row_group).num_rows
        return rows

    def first_rows(self) -> list[int]:
        """Return the number in the file of the first row of each row group, and of all rows."""
        counts = map(self.num_rows, range(self.num_row_groups))
        return list(accumulate((max(count or 0, 0) for count in counts), initial=0))

    def chunk_meta(self, row_group: int, column: int) -> ChunkMeta:
        """Return what the footer states about a column chunk."""
        return ChunkMeta(self.column_chunk(row_group, column))

    def chunk_metas(self, row_group: int) -> Iterator[ChunkMeta]:
        """Iterate over what the footer states about each column chunk of a row group, in the
        columns' order."""
        return map(ChunkMeta, self.column_chunks(row_group))

    def chunk(self, row_group: int, column: int) -> ColumnMetaData | None:
        """Return the struct with the metadata of a column chunk, for readers of its pages; None if
        it is locked."""
        return self.column_chunk(row_group, column).meta_data

    def open_chunks(self) -> list[ColumnMetaData]:
        """Return the metadata of all column chunks that are not locked."""
        chunks = starmap(self.chunk, product(range(self.num_row_groups), range(len(self.columns))))
        return [chunk for chunk in chunks if chunk is not None]

    def stored(self, raw: bytes) -> tuple[bytes, bytes]:
        """Build the end of a file with the footer `raw`: the footer, encrypted or signed as this
        one, then length and magic."""
        if self.cipher is None:
            return raw, build_tail(raw)
        stored, magic = self.cipher.encrypt_footer(raw)
        return stored, build_tail(stored, magic)

    def ensure_type(self, row_group: int, column: Column) -> None:
        """Ensure that a chunk states the physical type of its column; another type would decode to
        other values. Raises UnreadableError."""
        if column.physical == UNKNOWN:
            raise UnreadableError(column.doubt or "")
        meta = self.chunk(row_group, column.index)
        stated_type = _type_name(None if meta is None else meta.type)
        if stated_type == column.physical:
            return
        raise UnreadableError(
            f"the schema states {column.physical}, but the column chunk states {stated_type}",
            hint="the file is damaged: write it again",
        )

    def ensure_counts(self, row_group: int, column: Column) -> None:
        """Ensure that the footer does not contradict itself on the number of values in a chunk:
        otherwise a reader might stop early, and a filter would miss the rest. Raises
        UnreadableError.
        """
        rows = self.num_rows(row_group)
        meta = self.chunk(row_group, column.index)
        values = None if meta is None else meta.num_values
        may_repeat = column.max_repetition > 0
        if not _are_counts_of_a_chunk(values, rows, may_repeat=may_repeat):
            counts = f"{_format_stated(values)} values in {_format_stated(rows)} rows"
            raise UnreadableError(f"the footer states {counts}")

    def ensure_own_pages(self) -> None:
        """Ensure that chunks do not share pages, which a small file could state a million times.
        Raises UnreadableError."""
        if self._bytes_of_chunks > 4 * self.start:  # some writers state too many bytes
            raise UnreadableError(
                f"column chunks of {self._bytes_of_chunks:,} bytes share the {self.start:,} "
                "bytes before the footer"
            )

    @cached_property
    def _bytes_of_chunks(self) -> int:
        (sizes,) = self.numbers("total_compressed_size")
        return sum(min(max(0, size), self.start) for size in sizes)

    def elsewhere(self, row_group: int, column: int) -> str | None:
        """Return the path of the other file that holds a chunk, as in a `_metadata` file; None if
        this file holds it."""
        path = self.chunk_meta(row_group, column).external
        if path is None or path.removeprefix("./") == self.file_name:
            return None
        return path

    def end_of_pages(self, meta: ColumnMetaData) -> int:
        """Return the first byte after a chunk's first data page at which something else begins,
        whatever size the chunk states."""
        names = (
            "data_page_offset",
            "dictionary_page_offset",
            "bloom_filter_offset",
            "column_index_offset",
            "offset_index_offset",
        )
        first_byte = max(page_range(meta)[0], meta.data_page_offset or 0)
        offsets = chain.from_iterable(self.numbers(*names))
        later_offsets = (offset for offset in offsets if offset > first_byte)
        return min(later_offsets, default=self.start)

    def filter_place(self, row_group: int, column: int) -> FilterPlace | None:
        """Return the position of this chunk's filter in this file, or None. Offsets of 0 or less,
        by parquet-mr before 1.12, mean none."""
        meta = self.chunk(row_group, column)
        if meta is None or meta.bloom_filter_offset is None or meta.bloom_filter_offset <= 0:
            return None
        if self.elsewhere(row_group, column) is not None:
            return None
        return FilterPlace(meta.bloom_filter_offset, meta.bloom_filter_length)

    def filter_places(self, columns: Collection[int] | None = None) -> dict[ChunkKey, FilterPlace]:
        """Return the position of every filter of these columns, or of all, by row group and column,
        in this order."""
        if columns is None:
            return dict(self._places)
        if len(columns) * LEAST_SHARE >= len(self.columns):
            return {key: place for key, place in self._places.items() if key[1] in columns}
        places = {}
        for key in product(range(self.num_row_groups), sorted(columns)):
            place = self.filter_place(*key)
            if place is not None:
                places[key] = place
        return places

    @cached_property
    def _places(self) -> dict[ChunkKey, FilterPlace]:
        offsets, lengths, paths = self.numbers(
            "bloom_filter_offset", "bloom_filter_length", "file_path"
        )
        if not any(offsets):
            return {}
        (has_length,) = self.numbers("bloom_filter_length", presence=True)
        places = {}
        for at, offset in enumerate(offsets):
            if offset <= 0:
                continue
            key = divmod(at, len(self.columns))
            if paths[at] and self.elsewhere(*key):
                continue
            length = lengths[at] if has_length[at] else None
            places[key] = FilterPlace(offset, length)
        return places

    def recorded_chunks(self) -> set[ChunkKey]:
        """Return the chunks that are not locked for which a filter offset or length is stated,
        valid or not."""
        fields = self.numbers("bloom_filter_offset", "bloom_filter_length", presence=True)
        presence = enumerate(zip(*fields, strict=True))
        chunks = {divmod(at, len(self.columns)) for at, flags in presence if any(flags)}
        if not self.has_encrypted_chunks:
            return chunks
        return {key for key in chunks if not self.is_locked(*key)}

    def has_locked_chunks(self) -> bool:
        """Return whether the metadata of a chunk are encrypted with a key that was not given."""
        if not self.has_encrypted_chunks:
            return False
        chunks = product(range(self.num_row_groups), range(len(self.columns)))
        return any(self.is_locked(*key) for key in chunks)

    def set_filters(
        self, places: Mapping[ChunkKey, FilterPlace | None], *, leave_decrypted: bool = False
    ) -> bytes:
        """Return the struct with these filters: see the function `set_filters`."""
        return set_filters(
            self.raw, places, self.cipher, leave_decrypted=leave_decrypted, index=self.index
        )


def _type_name(stated_type: int | None) -> str:
    if stated_type is None:
        return "no type"
    if 0 <= stated_type < len(PHYSICAL_TYPES):
        return PHYSICAL_TYPES[stated_type]
    return f"type {stated_type}"


def _are_counts_of_a_chunk(values: int | None, rows: int | None, *, may_repeat: bool) -> bool:
    """Return whether a chunk can have as many values in as many rows: one in each, or more if the
    column is in a list. Nulls count as values."""
    if values is None or rows is None or rows < 0:
        return False
    return values == rows or (values > rows > 0 and may_repeat)


def _format_stated(count: int | None) -> str:
    return "no" if count is None else f"{count:,}"


def parse_tail(last_bytes: bytes, file_size: int) -> Tail:
    """Locate the footer from the last eight bytes of a file of `file_size` bytes."""
    if file_size < len(MAGIC) + TAIL_BYTES or len(last_bytes) < TAIL_BYTES:
        size = format_count(file_size, "byte")
        raise NotParquetError(
            f"not a Parquet file: it has {size}, and the smallest possible file has 12", hint=_HINT
        )
    magic = last_bytes[-4:]
    if magic not in (MAGIC, MAGIC_ENCRYPTED):
        raise NotParquetError(
            "not a Parquet file, or truncated: it does not end with PAR1",
            place=f"byte {file_size - 4:,}",
            hint=_HINT,
        )
    length = int.from_bytes(last_bytes[-8:-4], "little")
    start = file_size - TAIL_BYTES - length
    if start < len(MAGIC):
        raise UnreadableError(
            f"the stated footer of {length:,} bytes does not fit into the file of {file_size:,}",
            place=f"byte {file_size - 8:,}",
            hint=_HINT,
        )
    return Tail(start, length, magic == MAGIC_ENCRYPTED)


def build_tail(stored: bytes, magic: bytes = MAGIC) -> bytes:
    """Build the bytes after a stored footer: its length and the magic."""
    return len(stored).to_bytes(4, "little") + magic
