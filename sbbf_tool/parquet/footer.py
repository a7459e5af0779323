"""The tail of a Parquet file and the `FileMetaData` in it (parquet-format README, "File format"; parquet.thrift).

    ... pages ... | FileMetaData (Thrift compact) | u32 LE length of it | "PAR1"

`parse_*` read, `set_filters` writes: a footer is changed by splicing fields 14 and 15 of the chosen columns into its own bytes,
so all that this package does not know about comes back as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.columns import Column, leaf_columns
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, FileMetaData
from sbbf_tool.parquet.structs import parse_struct

MAGIC = b"PAR1"
MAGIC_ENCRYPTED = b"PARE"
TAIL_BYTES = 8

# Ids in parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_BLOOM_FILTER_OFFSET, _BLOOM_FILTER_LENGTH = 14, 15


class Tail(NamedTuple):
    """Where the footer is: bytes `start` to `start + length` of the file, before the length word and the magic."""

    start: int
    length: int
    encrypted: bool


class FilterPlace(NamedTuple):
    """What the footer says of one filter: first byte of its header in the file; bytes of header and bitset (None: not said)."""

    offset: int
    length: int | None


class Footer:
    """A parsed `FileMetaData` with the bytes it came from and its place in the file."""

    def __init__(self, raw: bytes, start: int) -> None:
        self.raw = raw
        self.start = start
        self.metadata: FileMetaData = parse_struct(FileMetaData, raw)
        if not self.metadata.schema or self.metadata.row_groups is None:
            raise UnreadableError("the footer has no schema or no list of row groups")
        self.columns: tuple[Column, ...] = leaf_columns(self.metadata.schema)
        """Leaf columns in the schema's order; a column's `index` is its position in every row group."""
        for number, row_group in enumerate(self.metadata.row_groups):
            if row_group.columns is None or len(row_group.columns) != len(self.columns):
                found = len(row_group.columns or ())
                raise UnreadableError(f"{found} column chunks for {len(self.columns)} leaf columns", place=f"row group {number}")

    @property
    def end(self) -> int:
        """Bytes of the file up to and including this footer, its length word and its magic."""
        return self.start + len(self.raw) + TAIL_BYTES

    @property
    def num_row_groups(self) -> int:
        return len(self.metadata.row_groups)

    def chunk(self, row_group: int, column: int) -> ColumnMetaData | None:
        """Metadata of a column chunk; None where it is encrypted with the column's own key."""
        return self.metadata.row_groups[row_group].columns[column].meta_data

    def filter_place(self, row_group: int, column: int) -> FilterPlace | None:
        """Where this chunk's filter is. Offsets of 0 and below mean none: builds before parquet-mr 1.12 wrote such."""
        meta = self.chunk(row_group, column)
        if meta is None or meta.bloom_filter_offset is None or meta.bloom_filter_offset <= 0:
            return None
        return FilterPlace(meta.bloom_filter_offset, meta.bloom_filter_length)


def parse_tail(last_bytes: bytes, file_size: int) -> Tail:
    """Where the footer is, from the last eight bytes of a file of `file_size` bytes."""
    if file_size < len(MAGIC) + TAIL_BYTES or len(last_bytes) < TAIL_BYTES:
        raise UnreadableError(f"not a Parquet file: {file_size:,} bytes, and the smallest has 12")
    magic = last_bytes[-4:]
    if magic not in (MAGIC, MAGIC_ENCRYPTED):
        raise UnreadableError(
            "not a Parquet file, or cut short: it does not end in PAR1", place=f"byte {file_size - 4}", hint="write or copy it again"
        )
    length = int.from_bytes(last_bytes[-8:-4], "little")
    start = file_size - TAIL_BYTES - length
    if start < len(MAGIC):
        raise UnreadableError(f"a footer of {length:,} bytes cannot be in a file of {file_size:,}", place=f"byte {file_size - 8}")
    return Tail(start, length, magic == MAGIC_ENCRYPTED)


def set_filters(raw: bytes, places: Mapping[tuple[int, int], FilterPlace | None]) -> bytes:
    """`raw` with the filters of these (row group, leaf column) set, or taken away where None; every other byte as it was.

    Raises UnreadableError where a chunk is not there or has no metadata in the clear.
    """
    try:
        edits = [
            compact.set_fields(
                raw,
                position,
                {
                    _BLOOM_FILTER_OFFSET: (compact.I64, None if place is None else compact.build_int(place.offset)),
                    _BLOOM_FILTER_LENGTH: (
                        compact.I32,
                        None if place is None or place.length is None else compact.build_int(place.length),
                    ),
                },
            )
            for position, place in _metadata_positions(raw, places)
        ]
    except IndexError:
        raise UnreadableError("the footer ends in the middle of a value") from None
    if len(edits) != len(places):
        raise UnreadableError("a chosen column chunk has no metadata in this footer")
    return compact.apply(raw, edits)


def _metadata_positions(raw: bytes, places: Mapping[tuple[int, int], FilterPlace | None]) -> list[tuple[int, FilterPlace | None]]:
    """Where the `ColumnMetaData` struct of each of these chunks starts in the footer's bytes, with the chunk's place."""
    wanted: dict[int, set[int]] = {}
    for row_group, column in places:
        wanted.setdefault(row_group, set()).add(column)
    found = []
    ends: compact.Ends = {}
    for number, row_group in _struct_list(raw, 0, _ROW_GROUPS, wanted, ends):
        for index, chunk in _struct_list(raw, row_group, _COLUMNS, wanted[number], ends):
            meta = compact.last_field(compact.fields(raw, chunk, ends)[0], _META_DATA, compact.STRUCT)
            if meta is not None:
                found.append((meta.value, places[number, index]))
    return found


def _struct_list(
    raw: bytes, struct: int, field_id: int, wanted: Mapping[int, object] | set[int], ends: compact.Ends
) -> list[tuple[int, int]]:
    """(number, start) of the wanted elements of a list of structs that is a field of the struct at `struct`."""
    field = compact.last_field(compact.fields(raw, struct, ends)[0], field_id, compact.LIST)
    if field is None:
        return []
    kind, count, pos = compact.list_header(raw, field.value)
    found = []
    for number in range(count):
        if number in wanted:
            found.append((number, pos))
            if len(found) == len(wanted):
                break
        pos = compact.skip(raw, pos, kind, 1, ends)
    return found


def build_tail(raw: bytes) -> bytes:
    """What follows a footer's bytes in a plain file: its length and the magic."""
    return len(raw).to_bytes(4, "little") + MAGIC
