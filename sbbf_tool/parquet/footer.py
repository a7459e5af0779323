"""The end of a Parquet file and the `FileMetaData` in it (parquet-format README, "File format"; parquet.thrift).

    ... pages ... | FileMetaData (Thrift compact) | u32 LE length of FileMetaData | "PAR1"

`set_filters` splices fields 14 and 15 of the selected column chunks into the footer's own bytes, so everything that this package does not
know is kept. A footer that is encrypted or signed has a `Cipher`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from sbbf_tool.errors import LockedError, NotParquetError, UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.chunk_index import ChunkIndex, index_chunks
from sbbf_tool.parquet.chunk_meta import ChunkMeta
from sbbf_tool.parquet.columns import PHYSICAL_TYPES, UNKNOWN, Column, leaf_columns, with_readings
from sbbf_tool.parquet.idl.ttypes import ColumnChunk, ColumnMetaData, RowGroup, SchemaElement
from sbbf_tool.parquet.pages import page_range
from sbbf_tool.parquet.row_groups import LEAST_SHARE, parse_metadata

MAGIC = b"PAR1"
MAGIC_ENCRYPTED = b"PARE"
TAIL_BYTES = 8

# Field ids in parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META_DATA, _ENCRYPTED_META_DATA = 4, 1, 3, 9
_BLOOM_FILTER_OFFSET, _BLOOM_FILTER_LENGTH = 14, 15


ChunkKey = tuple[int, int]
"""Row group and leaf column."""

Leaves = Callable[[Sequence[SchemaElement]], tuple[Column, ...]]
"""Function that lists the leaf columns of a schema, such as `leaf_columns`."""


class Tail(NamedTuple):
    """Position of the footer: bytes `start` to `start + length` of the file, before the length word and the magic."""

    start: int
    length: int
    encrypted: bool


_HINT = "write or copy it again"
"""What to do about a file that was not written or copied as a whole, which is the usual cause of a footer that cannot be read."""


_DECOMPRESS, _EXTRACT = "decompress it first", "extract it first"
_AS_PARQUET = "only Parquet files can have filters: write its data as Parquet"
_OF_AN_ERROR = "look at its text, which may be the answer to a failed download"
OTHER_KINDS: dict[bytes, tuple[str, str]] = {
    b"version https://git-lfs.github.com/spec/": ("a Git LFS pointer, which stands for the file", "fetch the file: git lfs pull"),
    b"\x1f\x8b": ("a file compressed by gzip", _DECOMPRESS),
    b"\x28\xb5\x2f\xfd": ("a file compressed by Zstandard", _DECOMPRESS),
    b"BZh": ("a file compressed by bzip2", _DECOMPRESS),
    b"\xfd7zXZ\0": ("a file compressed by xz", _DECOMPRESS),
    b"\x04\x22\x4d\x18": ("a file compressed by LZ4", _DECOMPRESS),
    b"\xff\x06\0\0sNaPpY": ("a file compressed by Snappy", _DECOMPRESS),
    b"PK\x03\x04": ("a ZIP archive, such as an Excel workbook", _EXTRACT),
    b"7z\xbc\xaf\x27\x1c": ("a 7-Zip archive", _EXTRACT),
    b"ORC": ("an ORC file", _AS_PARQUET),
    b"Obj\x01": ("an Avro file", _AS_PARQUET),
    b"ARROW1": ("an Arrow file", _AS_PARQUET),
    b"\xff\xff\xff\xff": ("a stream of Arrow", _AS_PARQUET),
    b"FEA1": ("a Feather file", _AS_PARQUET),
    b"SEQ": ("a Hadoop SequenceFile", _AS_PARQUET),
    b"RCF": ("an RCFile", _AS_PARQUET),
    b"\x89HDF\r\n": ("an HDF5 file", _AS_PARQUET),
    b"SQLite format 3\0": ("a SQLite database", _AS_PARQUET),
    b"PFA1": ("a Puffin file", _AS_PARQUET),
    b"%PDF-": ("a PDF document", _AS_PARQUET),
}
"""First bytes of other kinds of file, their names, and what to do."""


def name_other_kind(start: bytes) -> tuple[str, str] | None:
    """Name the kind of file that begins with these bytes and is not Parquet, and say what to do; None if it is not known."""
    for first, kind in OTHER_KINDS.items():
        if start.startswith(first):
            return kind
    if start[8:12] == b"DUCK":
        return "a DuckDB database", _AS_PARQUET
    if start[257:262] == b"ustar":
        return "a tar archive", _EXTRACT
    if start and not start.strip(b"\0"):
        return "a file of zero bytes, which was never written or was cut off", _HINT
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"<":
        return "a document of HTML or XML", _OF_AN_ERROR
    if text[:1] in (b"{", b"["):
        return "a file of JSON", f"{_AS_PARQUET}; or {_OF_AN_ERROR}"
    # Cut in the middle of a character, the last bytes may be invalid.
    is_text = not re.search(rb"[\0-\x08\x0e-\x1f]", text) and len(text.decode(errors="ignore").encode()) > len(text) - 4
    first_line = text.split(b"\n")[0]
    if is_text and text and re.search(rb"[,;\t|]", first_line) and b"\n" in text:
        return "a file of text, such as CSV", _AS_PARQUET
    return ("a file of text", _OF_AN_ERROR) if is_text and text else None


class FilterPlace(NamedTuple):
    """The position of a filter as the footer states it: first byte of its header; bytes of header and bitset (None if not stated)."""

    offset: int
    length: int | None


class Cipher(Protocol):
    """The keys of one file, as far as its footer needs them: see the package `encryption`."""

    @property
    def can_write(self) -> bool:
        """Whether the key of the footer is known."""

    def has_key(self, chunk: ChunkKey) -> bool: ...
    def decrypt_metadata(self, chunk: ChunkKey, ciphertext: bytes) -> bytes: ...
    def encrypt_metadata(self, chunk: ChunkKey, plain: bytes) -> bytes: ...
    def encrypt_footer(self, raw: bytes) -> tuple[bytes, bytes]:
        """Encrypt or sign the footer; return it as stored, and the magic after it."""


class Footer:
    """A `FileMetaData` with its bytes and its position in the file. `metadata` has all but the row groups, which methods return.

    For an encrypted or signed footer, `raw` is the plaintext struct, and `stored_bytes` its length as stored in the file.
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
        self.raw = raw
        self.start = start
        self.stored_bytes = len(raw) if stored_bytes is None else stored_bytes
        self.cipher = cipher
        self.file_name: str | None = None
        """Name of the file in its folder, by which its own chunks may name it."""
        # The metadata of encrypted chunks are replaced when they are decrypted, so these footers have all their chunks as objects.
        try:
            self.metadata, row_groups = parse_metadata(raw, whole=cipher is not None)
            if not self.metadata.schema or row_groups is None:
                raise UnreadableError("the footer has no schema or no list of row groups")
            self.row_groups = row_groups
            if not len(row_groups) and (self.metadata.num_rows or 0) > 0:
                raise UnreadableError(f"the footer states {self.metadata.num_rows:,} rows, but has no row group")
        except UnreadableError as error:
            error.hint = error.hint or _HINT
            raise
        self.columns: tuple[Column, ...] = with_readings(leaves(self.metadata.schema), self.metadata)
        """Leaf columns in the schema's order; a column's `index` is its position in every row group."""
        for number in range(len(row_groups)):
            num_chunks = row_groups.num_chunks(number)
            if num_chunks != len(self.columns):
                raise UnreadableError(
                    f"the row group has {num_chunks or 0} column chunks, but the schema has {len(self.columns)} leaf columns",
                    place=f"row group {number}",
                )

    @property
    def end(self) -> int:
        """Bytes of the file up to and including this footer, its length word and its magic."""
        return self.start + self.stored_bytes + TAIL_BYTES

    @property
    def num_row_groups(self) -> int:
        return len(self.row_groups)

    @property
    def is_writable(self) -> bool:
        """Whether a changed footer can replace this one; a signed footer must be signed again, which requires its key."""
        return self.cipher.can_write if self.cipher is not None else self.metadata.encryption_algorithm is None

    @property
    def index(self) -> ChunkIndex | None:
        """The positions of the column chunks in `raw`, if they are known."""
        return self.row_groups.index

    @property
    def has_encrypted_chunks(self) -> bool:
        """Whether a column chunk is encrypted with any key, or has no metadata."""
        return self.row_groups.has_encrypted_chunks

    def is_locked(self, row_group: int, column: int) -> bool:
        """Return whether the full metadata of a column chunk are encrypted with a key that is missing."""
        ciphertext = self.column_chunk(row_group, column).encrypted_column_metadata
        return ciphertext is not None and not (self.cipher is not None and self.cipher.has_key((row_group, column)))

    def row_group(self, number: int) -> RowGroup:
        """Return the struct of a row group, which may lack its column chunks."""
        return self.row_groups.row_group(number)

    def num_rows(self, row_group: int) -> int | None:
        """Return the rows of a row group as stated."""
        rows: int | None = self.row_group(row_group).num_rows
        return rows

    def chunk_meta(self, row_group: int, column: int) -> ChunkMeta:
        """Return what the footer states about a column chunk."""
        return ChunkMeta(self.column_chunk(row_group, column))

    def chunk_metas(self, row_group: int) -> Iterator[ChunkMeta]:
        """Iterate over what the footer states about each column chunk of a row group, in the columns' order."""
        return map(ChunkMeta, self.row_groups.chunks(row_group))

    def column_chunk(self, row_group: int, column: int) -> ColumnChunk:
        """Return the struct of a column chunk."""
        return self.row_groups.chunk(row_group, column)

    def chunk(self, row_group: int, column: int) -> ColumnMetaData | None:
        """Return the struct with the metadata of a column chunk, for readers of its pages; None if it is locked."""
        return self.column_chunk(row_group, column).meta_data

    def numbers(self, *names: str) -> tuple[Sequence[int], ...]:
        """Return, for each field of `ColumnChunk` or `ColumnMetaData`, its numbers in all chunks, row group by row group.

        The number is 0 for a chunk that does not state the field; for text it is 0 only if the text is empty. Much faster than `chunk`.
        """
        return self.row_groups.numbers(*names)

    def presence(self, *names: str) -> tuple[Sequence[int], ...]:
        """Return, as `numbers` does, 1 for each chunk that states the field, and 0 for each other one."""
        return self.row_groups.presence(*names)

    def stored(self, raw: bytes) -> tuple[bytes, bytes]:
        """Build the end of a file with the footer `raw`: the footer, encrypted or signed as this one, then length and magic."""
        if self.cipher is None:
            return raw, build_tail(raw)
        stored, magic = self.cipher.encrypt_footer(raw)
        return stored, build_tail(stored, magic)

    def ensure_type(self, row_group: int, column: Column) -> None:
        """Ensure that a chunk states the physical type of its column; another type would decode to other values. Raises UnreadableError."""
        if column.physical == UNKNOWN:
            raise UnreadableError(column.doubt or "")
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

    def elsewhere(self, row_group: int, column: int) -> str | None:
        """Return the path of the other file that holds a chunk, as in a `_metadata` file; None if this file holds it."""
        path = self.chunk_meta(row_group, column).external
        return None if path is None or path.removeprefix("./") == self.file_name else path

    def end_of_pages(self, meta: ColumnMetaData) -> int:
        """Return the first byte after a chunk's first data page at which something else begins, whatever size the chunk states."""
        names = ("data_page_offset", "dictionary_page_offset", "bloom_filter_offset", "column_index_offset", "offset_index_offset")
        first_byte = max(page_range(meta)[0], meta.data_page_offset or 0)
        return min((offset for offsets in self.numbers(*names) for offset in offsets if offset > first_byte), default=self.start)

    def filter_place(self, row_group: int, column: int) -> FilterPlace | None:
        """Return the position of this chunk's filter in this file, or None. Offsets of 0 or less, by parquet-mr before 1.12, mean none."""
        meta = self.chunk(row_group, column)
        if meta is None or meta.bloom_filter_offset is None or meta.bloom_filter_offset <= 0:
            return None
        if self.elsewhere(row_group, column) is not None:
            return None
        return FilterPlace(meta.bloom_filter_offset, meta.bloom_filter_length)

    def filter_places(self, columns: Collection[int] | None = None) -> dict[ChunkKey, FilterPlace]:
        """Return the position of every filter of these columns, or of all, by row group and column, in this order."""
        if columns is not None and len(columns) * LEAST_SHARE < len(self.columns):
            keys = ((row_group, column) for row_group in range(self.num_row_groups) for column in sorted(columns))
            return {key: place for key in keys if (place := self.filter_place(*key)) is not None}
        offsets, lengths, paths = self.numbers("bloom_filter_offset", "bloom_filter_length", "file_path")
        if not any(offsets):
            return {}
        (has_length,) = self.presence("bloom_filter_length")
        places = {
            divmod(at, len(self.columns)): FilterPlace(offset, lengths[at] if has_length[at] else None)
            for at, offset in enumerate(offsets)
            if offset > 0 and not (paths[at] and self.elsewhere(*divmod(at, len(self.columns))))
        }
        return places if columns is None else {key: place for key, place in places.items() if key[1] in columns}

    def recorded_chunks(self) -> set[ChunkKey]:
        """Return the chunks that are not locked for which a filter offset or length is stated, valid or not."""
        presence = zip(*self.presence("bloom_filter_offset", "bloom_filter_length"), strict=True)
        chunks = {divmod(at, len(self.columns)) for at, flags in enumerate(presence) if any(flags)}
        return {key for key in chunks if not self.is_locked(*key)} if self.has_encrypted_chunks else chunks

    def has_locked_chunks(self) -> bool:
        """Return whether the metadata of a chunk are encrypted with a key that was not given."""
        keys = ((row_group, column.index) for row_group in range(self.num_row_groups) for column in self.columns)
        return self.has_encrypted_chunks and any(self.is_locked(*key) for key in keys)

    def set_filters(self, places: Mapping[ChunkKey, FilterPlace | None], *, leave_decrypted: bool = False) -> bytes:
        """Return the struct with these filters: see the function `set_filters`."""
        return set_filters(self.raw, places, self.cipher, leave_decrypted=leave_decrypted, index=self.index)


def parse_tail(last_bytes: bytes, file_size: int) -> Tail:
    """Locate the footer from the last eight bytes of a file of `file_size` bytes."""
    if file_size < len(MAGIC) + TAIL_BYTES or len(last_bytes) < TAIL_BYTES:
        size = format_count(file_size, "byte")
        raise NotParquetError(f"not a Parquet file: it has {size}, and the smallest possible file has 12", hint=_HINT)
    magic = last_bytes[-4:]
    if magic not in (MAGIC, MAGIC_ENCRYPTED):
        raise NotParquetError("not a Parquet file, or truncated: it does not end with PAR1", place=f"byte {file_size - 4:,}", hint=_HINT)
    length = int.from_bytes(last_bytes[-8:-4], "little")
    start = file_size - TAIL_BYTES - length
    if start < len(MAGIC):
        raise UnreadableError(
            f"the stated footer of {length:,} bytes does not fit into the file of {file_size:,}",
            place=f"byte {file_size - 8:,}",
            hint=_HINT,
        )
    return Tail(start, length, magic == MAGIC_ENCRYPTED)


def set_filters(
    raw: bytes,
    places: Mapping[ChunkKey, FilterPlace | None],
    cipher: Cipher | None = None,
    *,
    leave_decrypted: bool = False,
    index: ChunkIndex | None = None,
) -> bytes:
    """Set the filters of these (row group, leaf column) in `raw`, or remove those that are None; all other fields are kept.

    If a chunk's metadata are encrypted, `cipher` decrypts and encrypts them; `leave_decrypted` leaves them in plaintext, for comparison.
    `index` is that of `raw`, if the caller has it.
    Raises UnreadableError if a chunk is missing or has no metadata to change, LockedError if its key is missing.
    """

    def change(key: ChunkKey, meta: bytes, position: int) -> compact.Edit:
        place = places[key]
        offset = None if place is None else compact.build_int(place.offset)
        length = None if place is None or place.length is None else compact.build_int(place.length)
        return compact.set_fields(
            meta, position, {_BLOOM_FILTER_OFFSET: (compact.I64, offset), _BLOOM_FILTER_LENGTH: (compact.I32, length)}
        )

    return _edit_metadata(raw, places, change, cipher, leave_decrypted, index)


def decrypt_metadata(raw: bytes, chunks: Iterable[ChunkKey], cipher: Cipher | None) -> bytes:
    """Decrypt the encrypted metadata of these chunks in `raw`, and change nothing else: the counterpart of `leave_decrypted`."""
    return _edit_metadata(raw, chunks, None, cipher, True)


_Change = Callable[[ChunkKey, bytes, int], compact.Edit]


def _edit_metadata(
    raw: bytes,
    chunks: Iterable[ChunkKey],
    change: _Change | None,
    cipher: Cipher | None,
    leave_decrypted: bool,
    index: ChunkIndex | None = None,
) -> bytes:
    """Apply `change` to every `ColumnMetaData` of these chunks in `raw`: the plain one, the encrypted one, or both."""
    keys = set(chunks)
    edits: list[compact.Edit] = []
    num_edited = 0
    try:
        for key, chunk in _chunk_positions(raw, keys, index):
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
    raw: bytes, key: ChunkKey, field: compact.Field, change: _Change | None, cipher: Cipher, leave_decrypted: bool
) -> compact.Edit:
    if not cipher.has_key(key):
        raise LockedError("the metadata of a column is encrypted", hint="give its key")
    length, start = compact.read_varint(raw, field.value)
    plain = cipher.decrypt_metadata(key, raw[start : start + length])
    if change is not None:
        plain = compact.apply(plain, [change(key, plain, 0)])
    if not leave_decrypted:
        plain = cipher.encrypt_metadata(key, plain)
    return compact.Edit(field.value, field.end, compact.build_varint(len(plain)) + plain)


def _chunk_positions(raw: bytes, chunks: set[ChunkKey], index: ChunkIndex | None) -> list[tuple[ChunkKey, int]]:
    """Locate the `ColumnChunk` struct of each of these chunks in the footer's bytes."""
    if index is None:
        index = index_chunks(raw)
    if index is None:
        return walk_to_chunks(raw, chunks)
    return [(key, start) for key in sorted(chunks) if (start := index.chunk_start(*key)) is not None]


def walk_to_chunks(raw: bytes, chunks: set[ChunkKey]) -> list[tuple[ChunkKey, int]]:
    """Locate these chunks as the index does, in any footer. Raises UnreadableError, IndexError."""
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
