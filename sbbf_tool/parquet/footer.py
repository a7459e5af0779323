"""The end of a Parquet file and the `FileMetaData` in it (parquet-format README, "File format"; parquet.thrift).

    ... pages ... | FileMetaData (Thrift compact) | u32 LE length of FileMetaData | "PAR1"

`set_filters` splices fields 14 and 15 of the selected column chunks into the footer's own bytes, so everything that this package does not
know is kept. A footer that is encrypted or signed has a `FileCipher` (`encryption`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.errors import LockedError, NotParquetError, UnreadableError
from sbbf_tool.hints import Hint
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.chunk_meta import ChunkMeta
from sbbf_tool.parquet.columns import PHYSICAL_TYPES, Column, leaf_columns
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, FileMetaData, SchemaElement
from sbbf_tool.parquet.structs import parse_struct

if TYPE_CHECKING:
    from sbbf_tool.parquet.encryption.file_cipher import FileCipher

MAGIC = b"PAR1"
MAGIC_ENCRYPTED = b"PARE"
TAIL_BYTES = 8

# Field ids in parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META_DATA, _ENCRYPTED_META_DATA = 4, 1, 3, 9
_BLOOM_FILTER_OFFSET, _BLOOM_FILTER_LENGTH = 14, 15


Leaves = Callable[[Sequence[SchemaElement]], tuple[Column, ...]]
"""Function that lists the leaf columns of a schema, such as `leaf_columns`."""


class Tail(NamedTuple):
    """Position of the footer: bytes `start` to `start + length` of the file, before the length word and the magic."""

    start: int
    length: int
    encrypted: bool


class FilterPlace(NamedTuple):
    """The position of a filter as the footer states it: first byte of its header; bytes of header and bitset (None if not stated)."""

    offset: int
    length: int | None


class Footer:
    """A parsed `FileMetaData` with its bytes and its position in the file.

    For an encrypted or signed footer, `raw` is the plaintext struct, and `stored_bytes` its length as stored in the file.
    """

    def __init__(
        self,
        raw: bytes,
        start: int,
        *,
        stored_bytes: int | None = None,
        cipher: FileCipher | None = None,
        leaves: Leaves = leaf_columns,
    ) -> None:
        self.raw = raw
        self.start = start
        self.stored_bytes = len(raw) if stored_bytes is None else stored_bytes
        self.cipher = cipher
        self.metadata: FileMetaData = parse_struct(FileMetaData, raw)
        if not self.metadata.schema or self.metadata.row_groups is None:
            raise UnreadableError("the footer has no schema or no list of row groups")
        if not self.metadata.row_groups and (self.metadata.num_rows or 0) > 0:
            raise UnreadableError(f"the footer states {self.metadata.num_rows:,} rows, but has no row group")
        self.columns: tuple[Column, ...] = leaves(self.metadata.schema)
        """Leaf columns in the schema's order; a column's `index` is its position in every row group."""
        for number, row_group in enumerate(self.metadata.row_groups):
            if row_group.columns is None or len(row_group.columns) != len(self.columns):
                num_chunks = len(row_group.columns or ())
                raise UnreadableError(
                    f"the row group has {num_chunks} column chunks, but the schema has {len(self.columns)} leaf columns",
                    place=f"row group {number}",
                )

    @property
    def end(self) -> int:
        """Bytes of the file up to and including this footer, its length word and its magic."""
        return self.start + self.stored_bytes + TAIL_BYTES

    @property
    def num_row_groups(self) -> int:
        return len(self.metadata.row_groups)

    @property
    def is_writable(self) -> bool:
        """Whether a changed footer can replace this one; a signed footer must be signed again, which requires its key."""
        return self.cipher.footer_key is not None if self.cipher is not None else self.metadata.encryption_algorithm is None

    def is_locked(self, row_group: int, column: int) -> bool:
        """Return whether the full metadata of a column chunk are encrypted with a key that is missing."""
        ciphertext = self.metadata.row_groups[row_group].columns[column].encrypted_column_metadata
        return ciphertext is not None and not (self.cipher is not None and self.cipher.has_key((row_group, column)))

    def num_rows(self, row_group: int) -> int | None:
        """Return the rows of a row group as stated."""
        rows: int | None = self.metadata.row_groups[row_group].num_rows
        return rows

    def chunk_meta(self, row_group: int, column: int) -> ChunkMeta:
        """Return what the footer states about a column chunk."""
        return ChunkMeta(self.metadata.row_groups[row_group].columns[column])

    def chunk_metas(self, row_group: int) -> Iterator[ChunkMeta]:
        """Iterate over what the footer states about each column chunk of a row group, in the columns' order."""
        return map(ChunkMeta, self.metadata.row_groups[row_group].columns)

    def chunk(self, row_group: int, column: int) -> ColumnMetaData | None:
        """Return the struct of a column chunk, for readers of its pages; None if it is locked."""
        return self.metadata.row_groups[row_group].columns[column].meta_data

    def stored(self, raw: bytes) -> tuple[bytes, bytes]:
        """Build the end of a file with the footer `raw`: the footer, encrypted or signed as this one, then length and magic."""
        if self.cipher is None:
            return raw, build_tail(raw)
        stored = self.cipher.encrypt_footer(raw)
        return stored, build_tail(stored, MAGIC if self.cipher.crypto is None else MAGIC_ENCRYPTED)

    def ensure_type(self, row_group: int, column: Column) -> None:
        """Ensure that a chunk states the physical type of its column; another type would decode to other values. Raises UnreadableError."""
        meta = self.chunk(row_group, column.index)
        stated_type = meta.type if meta is not None else None
        if stated_type is None or not 0 <= stated_type < len(PHYSICAL_TYPES):
            stated_name = "no type" if stated_type is None else f"type {stated_type}"
        elif (stated_name := PHYSICAL_TYPES[stated_type]) == column.physical:
            return
        raise UnreadableError(
            f"the schema states {column.physical}, but the column chunk states {stated_name}", hint="the file is damaged: write it again"
        )

    def ensure_counts(self, row_group: int, column: Column) -> None:
        """Ensure that the footer does not contradict itself on the number of values in a chunk: otherwise a reader might stop early, and a
        filter would miss the rest. Raises UnreadableError.
        """
        rows, meta = self.num_rows(row_group), self.chunk(row_group, column.index)
        values = meta.num_values if meta is not None else None
        may_have_more = bool(rows) and bool(column.max_repetition)
        if rows is None or values is None or rows < 0 or values < rows or (values > rows and not may_have_more):
            counts = f"{'no' if values is None else f'{values:,}'} values in {'no' if rows is None else f'{rows:,}'} rows"
            raise UnreadableError(f"the footer states {counts}")

    def filter_place(self, row_group: int, column: int) -> FilterPlace | None:
        """Return the position of this chunk's filter, or None. Offsets of 0 or less, by builds before parquet-mr 1.12, mean none."""
        meta = self.chunk(row_group, column)
        if meta is None or meta.bloom_filter_offset is None or meta.bloom_filter_offset <= 0:
            return None
        return FilterPlace(meta.bloom_filter_offset, meta.bloom_filter_length)


def parse_tail(last_bytes: bytes, file_size: int) -> Tail:
    """Locate the footer from the last eight bytes of a file of `file_size` bytes."""
    if file_size < len(MAGIC) + TAIL_BYTES or len(last_bytes) < TAIL_BYTES:
        raise NotParquetError(f"not a Parquet file: it has {file_size:,} bytes, and the smallest possible file has 12")
    magic = last_bytes[-4:]
    if magic not in (MAGIC, MAGIC_ENCRYPTED):
        raise NotParquetError(
            "not a Parquet file, or truncated: it does not end with PAR1", place=f"byte {file_size - 4:,}", hint="write or copy it again"
        )
    length = int.from_bytes(last_bytes[-8:-4], "little")
    start = file_size - TAIL_BYTES - length
    if start < len(MAGIC):
        raise UnreadableError(
            f"the stated footer of {length:,} bytes does not fit into the file of {file_size:,}", place=f"byte {file_size - 8:,}"
        )
    return Tail(start, length, magic == MAGIC_ENCRYPTED)


def set_filters(
    raw: bytes, places: Mapping[tuple[int, int], FilterPlace | None], cipher: FileCipher | None = None, *, leave_decrypted: bool = False
) -> bytes:
    """Set the filters of these (row group, leaf column) in `raw`, or remove those that are None; all other fields are kept.

    If a chunk's metadata are encrypted, `cipher` decrypts and encrypts them; `leave_decrypted` leaves them in plaintext, for comparison.
    Raises UnreadableError if a chunk is missing or has no metadata to change, LockedError if its key is missing.
    """

    def change(key: tuple[int, int], meta: bytes, position: int) -> compact.Edit:
        place = places[key]
        offset = None if place is None else compact.build_int(place.offset)
        length = None if place is None or place.length is None else compact.build_int(place.length)
        return compact.set_fields(
            meta, position, {_BLOOM_FILTER_OFFSET: (compact.I64, offset), _BLOOM_FILTER_LENGTH: (compact.I32, length)}
        )

    return _edit_metadata(raw, places, change, cipher, leave_decrypted)


def decrypt_metadata(raw: bytes, chunks: Iterable[tuple[int, int]], cipher: FileCipher | None) -> bytes:
    """Decrypt the encrypted metadata of these chunks in `raw`, and change nothing else: the counterpart of `leave_decrypted`."""
    return _edit_metadata(raw, chunks, None, cipher, True)


_Change = Callable[[tuple[int, int], bytes, int], compact.Edit]


def _edit_metadata(
    raw: bytes, chunks: Iterable[tuple[int, int]], change: _Change | None, cipher: FileCipher | None, leave_decrypted: bool
) -> bytes:
    """Apply `change` to every `ColumnMetaData` of these chunks in `raw`: the plain one, the encrypted one, or both."""
    keys = set(chunks)
    edits: list[compact.Edit] = []
    num_edited = 0
    try:
        for key, chunk in _chunk_positions(raw, keys):
            fields = compact.fields(raw, chunk)[0]
            meta = compact.last_field(fields, _META_DATA, compact.STRUCT)
            ciphertext = compact.last_field(fields, _ENCRYPTED_META_DATA, compact.BINARY)
            if meta is not None and change is not None:
                edits.append(change(key, raw, meta.value))
            if ciphertext is not None and cipher is not None:
                edits.append(_edit_encrypted(raw, key, ciphertext, change, cipher, leave_decrypted))
            num_edited += meta is not None or (ciphertext is not None and cipher is not None)
    except IndexError:
        raise UnreadableError("the footer ends inside a value") from None
    if num_edited != len(keys):
        raise UnreadableError("a column chunk to edit has no metadata in this footer")
    return compact.apply(raw, edits)


def _edit_encrypted(
    raw: bytes, key: tuple[int, int], field: compact.Field, change: _Change | None, cipher: FileCipher, leave_decrypted: bool
) -> compact.Edit:
    if not cipher.has_key(key):
        raise LockedError("the metadata of a column is encrypted", hint=Hint("give its key with {keys}", keys=...))
    length, start = compact.read_varint(raw, field.value)
    plain = cipher.decrypt_metadata(key, raw[start : start + length])
    if change is not None:
        plain = compact.apply(plain, [change(key, plain, 0)])
    if not leave_decrypted:
        plain = cipher.encrypt_metadata(key, plain)
    return compact.Edit(field.value, field.end, compact.build_varint(len(plain)) + plain)


def _chunk_positions(raw: bytes, chunks: set[tuple[int, int]]) -> list[tuple[tuple[int, int], int]]:
    """Locate the `ColumnChunk` struct of each of these chunks in the footer's bytes."""
    columns: dict[int, set[int]] = {}
    for row_group, column in chunks:
        columns.setdefault(row_group, set()).add(column)
    ends: compact.Ends = {}
    return [
        ((number, index), chunk)
        for number, row_group in _struct_list(raw, 0, _ROW_GROUPS, columns, ends)
        for index, chunk in _struct_list(raw, row_group, _COLUMNS, columns[number], ends)
    ]


def _struct_list(
    raw: bytes, struct: int, field_id: int, numbers: Mapping[int, object] | set[int], ends: compact.Ends
) -> list[tuple[int, int]]:
    """List (number, start) of the elements `numbers` in the list of structs that is field `field_id` of the struct at `struct`."""
    field = compact.last_field(compact.fields(raw, struct, ends)[0], field_id, compact.LIST)
    if field is None:
        return []
    kind, count, pos = compact.list_header(raw, field.value)
    positions = []
    for number in range(count):
        if number in numbers:
            positions.append((number, pos))
            if len(positions) == len(numbers):
                break
        pos = compact.skip(raw, pos, kind, 1, ends)
    return positions


def build_tail(stored: bytes, magic: bytes = MAGIC) -> bytes:
    """Build the bytes after a stored footer: its length and the magic."""
    return len(stored).to_bytes(4, "little") + magic
