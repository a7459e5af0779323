"""Filters set in the bytes of a footer or removed from them, with all other fields kept as they are
(`compact`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from sbbf_tool.errors import LockedError, UnreadableError
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.footer_structs import ChunkIndex, index_chunks

# Field ids in parquet.thrift.
_ROW_GROUPS = 4
_COLUMNS = 1
_META_DATA = 3
_ENCRYPTED_META_DATA = 9
_BLOOM_FILTER_OFFSET = 14
_BLOOM_FILTER_LENGTH = 15

ChunkKey = tuple[int, int]
"""Row group and leaf column."""


class FilterPlace(NamedTuple):
    """The position of a filter as the footer states it: first byte of its header; bytes of header
    and bitset (None if not stated)."""

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


def set_filters(
    raw: bytes,
    places: Mapping[ChunkKey, FilterPlace | None],
    cipher: Cipher | None = None,
    *,
    leave_decrypted: bool = False,
    index: ChunkIndex | None = None,
) -> bytes:
    """Set the filters of these (row group, leaf column) in `raw`, or remove those that are None;
    all other fields are kept.

    If a chunk's metadata are encrypted, `cipher` decrypts and encrypts them; `leave_decrypted`
    leaves them in plaintext, for comparison. `index` is that of `raw`, if the caller has it. Raises
    UnreadableError if a chunk is missing or has no metadata to change, LockedError if its key is
    missing.
    """

    def change(key: ChunkKey, meta: bytes, position: int) -> compact.Splice:
        place = places[key]
        offset = None
        length = None
        if place is not None:
            offset = compact.build_int(place.offset)
            if place.length is not None:
                length = compact.build_int(place.length)
        changes = {
            _BLOOM_FILTER_OFFSET: (compact.I64, offset),
            _BLOOM_FILTER_LENGTH: (compact.I32, length),
        }
        return compact.set_fields(meta, position, changes)

    return _edit_metadata(raw, places, change, cipher, leave_decrypted, index)


def decrypt_metadata(raw: bytes, chunks: Iterable[ChunkKey], cipher: Cipher | None) -> bytes:
    """Decrypt the encrypted metadata of these chunks in `raw`, and change nothing else: the
    counterpart of `leave_decrypted`."""
    return _edit_metadata(raw, chunks, None, cipher, True)


_Change = Callable[[ChunkKey, bytes, int], compact.Splice]


def _edit_metadata(
    raw: bytes,
    chunks: Iterable[ChunkKey],
    change: _Change | None,
    cipher: Cipher | None,
    leave_decrypted: bool,
    index: ChunkIndex | None = None,
) -> bytes:
    """Apply `change` to every `ColumnMetaData` of these chunks in `raw`: the plain one, the
    encrypted one, or both."""
    keys = set(chunks)
    edits = []
    num_edited = 0
    try:
        for key, chunk in _chunk_positions(raw, keys, index):
            fields, _ = compact.fields(raw, chunk)
            meta = compact.last_field(fields, _META_DATA, compact.STRUCT)
            ciphertext = compact.last_field(fields, _ENCRYPTED_META_DATA, compact.BINARY)
            has_metadata = meta is not None
            if meta is not None and change is not None:
                edits.append(change(key, raw, meta.value))
            if ciphertext is not None and cipher is not None:
                has_metadata = True
                edits.append(_edit_encrypted(raw, key, ciphertext, change, cipher, leave_decrypted))
            num_edited += has_metadata
    except IndexError:
        raise UnreadableError("the footer ends inside a value") from None
    if num_edited != len(keys):
        raise UnreadableError("a column chunk to edit has no metadata in this footer")
    return compact.apply(raw, edits)


def _edit_encrypted(
    raw: bytes,
    key: ChunkKey,
    field: compact.WireField,
    change: _Change | None,
    cipher: Cipher,
    leave_decrypted: bool,
) -> compact.Splice:
    if not cipher.has_key(key):
        raise LockedError("the metadata of a column is encrypted", hint="give its key")
    length, start = compact.read_varint(raw, field.value)
    plain = cipher.decrypt_metadata(key, raw[start : start + length])
    if change is not None:
        plain = compact.apply(plain, [change(key, plain, 0)])
    if not leave_decrypted:
        plain = cipher.encrypt_metadata(key, plain)
    return compact.Splice(field.value, field.end, compact.build_varint(len(plain)) + plain)


def _chunk_positions(
    raw: bytes, chunks: set[ChunkKey], index: ChunkIndex | None
) -> list[tuple[ChunkKey, int]]:
    """Locate the `ColumnChunk` struct of each of these chunks in the footer's bytes."""
    if index is None:
        index = index_chunks(raw)
    if index is None:
        return walk_to_chunks(raw, chunks)
    positions = []
    for key in sorted(chunks):
        start = index.chunk_start(*key)
        if start is not None:
            positions.append((key, start))
    return positions


def walk_to_chunks(raw: bytes, chunks: set[ChunkKey]) -> list[tuple[ChunkKey, int]]:
    """Locate these chunks as the index does, in any footer. Raises UnreadableError, IndexError."""
    columns: dict[int, set[int]] = {}
    for row_group, column in chunks:
        columns.setdefault(row_group, set()).add(column)
    ends: compact.Ends = {}
    positions = []
    for number, row_group in _struct_list(raw, 0, _ROW_GROUPS, columns, ends):
        for index, chunk in _struct_list(raw, row_group, _COLUMNS, columns[number], ends):
            positions.append(((number, index), chunk))
    return positions


def _struct_list(
    raw: bytes,
    struct: int,
    field_id: int,
    numbers: Mapping[int, object] | set[int],
    ends: compact.Ends,
) -> list[tuple[int, int]]:
    """List (number, start) of the elements `numbers` in the list of structs that is field
    `field_id` of the struct at `struct`."""
    fields, _ = compact.fields(raw, struct, ends)
    field = compact.last_field(fields, field_id, compact.LIST)
    if field is None:
        return []
    kind, count, pos = compact.list_header(raw, field.value)
    positions = []
    for number in range(count):
        if number in numbers:
            positions.append((number, pos))
            if len(positions) == len(numbers):
                break
        pos = compact.skip(raw, pos, kind, 0, ends)
    return positions
