"""The structs of a footer: the row groups and column chunks are parsed one by one when they are
looked at, or all in advance.

The first way needs the index of positions that `_compact.c` makes, and documents: parsing a footer
into objects takes some 100 times as long as walking over its bytes. Encrypted footers, unusual
ones, and installations without the extension use the second way. Both state the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.idl.ttypes import (
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    KeyValue,
    RowGroup,
)
from sbbf_tool.parquet.large_footers import Cuts, ListSizes, plan_cuts, read_pairs
from sbbf_tool.parquet.structs import KINDS, parse_struct

try:
    from sbbf_tool.parquet import _compact
except ImportError:
    has_walker = False
else:
    has_walker = True

_SLOTS = 32
_SLOT_BYTES = 4
_PRESENCE = 0x80
_EMPTY_LIST = bytes([compact.STRUCT])


class _RowGroupAt(NamedTuple):
    start: int
    list_start: int
    list_end: int
    end: int
    first_chunk: int
    num_chunks: int


class ChunkIndex:
    """The positions in one footer. All of its bytes are known to be readable; nothing in it is
    encrypted."""

    def __init__(
        self,
        raw: bytes,
        list_start: int,
        list_end: int,
        row_groups: bytes,
        chunks: bytes,
        sizes: tuple[int, int, int, int],
    ) -> None:
        self.raw = raw
        self.sizes = ListSizes(*sizes)
        self._list_start = list_start
        self._list_end = list_end
        self._row_groups = memoryview(row_groups).cast("q")
        self._chunks = memoryview(chunks).cast("q")

    @property
    def num_row_groups(self) -> int:
        return len(self._row_groups) // len(_RowGroupAt._fields)

    @property
    def num_chunks(self) -> int:
        """The number of chunks in all row groups."""
        return len(self._chunks)

    def num_chunks_in(self, row_group: int) -> int:
        return self._at(row_group).num_chunks

    @property
    def without_row_groups(self) -> compact.Splice:
        """The edit of the `FileMetaData` that makes its list of row groups empty."""
        return compact.Splice(self._list_start, self._list_end, _EMPTY_LIST)

    def without_chunks(self, row_group: int) -> bytes:
        """Return a `RowGroup` with an empty list of column chunks."""
        at = self._at(row_group)
        before = self.raw[at.start : at.list_start]
        after = self.raw[at.list_end : at.end]
        return before + _EMPTY_LIST + after

    def row_group(self, number: int) -> bytes:
        """Return a `RowGroup`."""
        at = self._at(number)
        return self.raw[at.start : at.end]

    def chunk(self, row_group: int, column: int) -> bytes:
        """Return a `ColumnChunk`."""
        at = self._at(row_group)
        number = at.first_chunk + column
        is_last = column + 1 == at.num_chunks
        end = at.list_end if is_last else self._chunks[number + 1]
        return self.raw[self._chunks[number] : end]

    def chunk_start(self, row_group: int, column: int) -> int | None:
        """Return the position of a `ColumnChunk`; None if there is none."""
        if not 0 <= row_group < self.num_row_groups:
            return None
        at = self._at(row_group)
        if not 0 <= column < at.num_chunks:
            return None
        return self._chunks[at.first_chunk + column]

    def numbers(
        self, names: tuple[str, ...], *, presence: bool = False
    ) -> tuple[Sequence[int], ...]:
        """Read the fields with these names, of `ColumnChunk` or `ColumnMetaData`, of all chunks,
        row group by row group.

        The number is 0 if a chunk does not state the field, and the length of text; with `presence`
        it is 1 if the chunk states the field.
        """
        flag = _PRESENCE if presence else 0
        fields = bytearray()
        for name in names:
            field_id, kind = _field_ids()[name]
            fields += bytes([field_id, kind | flag])
        columns = _compact.numbers(self.raw, self._chunks, bytes(fields))
        return tuple([memoryview(numbers).cast("q") for numbers in columns])

    def _at(self, row_group: int) -> _RowGroupAt:
        width = len(_RowGroupAt._fields)
        start = row_group * width
        return _RowGroupAt(*self._row_groups[start : start + width])


def index_chunks(raw: bytes) -> ChunkIndex | None:
    """Find the row groups and column chunks of a footer; None if it must be parsed as a whole, or
    if the extension was not built."""
    if not has_walker:
        return None
    positions = _compact.walk(raw, table_of_structs())
    return None if positions is None else ChunkIndex(raw, *positions)


def describe() -> str:
    """Describe in one line how footers are read."""
    if has_walker:
        return "footers: indexed"
    return "footers: parsed as a whole, so that wide ones take longer (no extension _compact)"


@cache
def table_of_structs() -> bytes:
    """Build the table of the structs in a `FileMetaData` that `_compact.c` takes, from the specs of
    the generated classes."""
    numbers: dict[type[Any], int] = {FileMetaData: 0}
    table = bytearray()
    pending: list[type[Any]] = [FileMetaData]
    for cls in pending:
        assert len(cls.thrift_spec) <= _SLOTS
        for spec in cls.thrift_spec:
            if spec is None:
                table += bytes(_SLOT_BYTES)
            else:
                table += _slot(KINDS[spec[1]], spec[3], numbers, pending)
        table += bytes(_SLOT_BYTES * (_SLOTS - len(cls.thrift_spec)))
    return bytes(table)


def _slot(
    kind: int, arguments: Any, numbers: dict[type[Any], int], pending: list[type[Any]]
) -> bytes:
    """Build the entry of one field; a struct that has no number yet gets one, and is appended to
    `pending`."""
    element = compact.STOP
    nested = 0
    if kind == compact.LIST:
        element = KINDS[arguments[0]]
        arguments = arguments[1]
    if compact.STRUCT in (kind, element):
        cls = arguments[0]
        if cls not in numbers:
            numbers[cls] = len(numbers)
            pending.append(cls)
        nested = numbers[cls]
    return bytes([kind, element]) + nested.to_bytes(2, "little")


@cache
def _field_ids() -> dict[str, tuple[int, int]]:
    """Map the names of a chunk's fields to id and kind; ids of fields of `ColumnMetaData` come
    after those of `ColumnChunk`."""
    field_ids = {}
    for first, cls in ((0, ColumnChunk), (_SLOTS, ColumnMetaData)):
        for spec in filter(None, cls.thrift_spec):
            field_id, kind, name = spec[:3]
            field_ids[name] = (first + field_id, KINDS[kind])
    return field_ids


_FEW_CHUNKS = 256
LEAST_SHARE = 16
"""If more than one in so many chunks is looked at, looking at them one by one takes longer than at
all at once."""


class FooterStructs:
    """A `FileMetaData` without its row groups as `metadata`, and its row groups.

    Methods that look at chunks may only be used if all row groups have the same number of them.
    """

    def __init__(self, raw: bytes, *, whole: bool = False) -> None:
        """Parse the struct; with `whole`, all chunks at once. Raises UnreadableError, also if there
        is no list of row groups."""
        self.raw = raw
        self.index = None if whole else index_chunks(raw)
        """The positions of the column chunks in `raw`, if they are known."""
        if self.index is not None and self.index.sizes.are_usual(len(raw)):
            self._cuts = Cuts()
        else:
            self._cuts = plan_cuts(raw, table_of_structs())
        self._parsed: list[RowGroup] | None = None
        if self.index is not None:
            self.metadata = self._parse(self.index.without_row_groups)
        else:
            self.metadata = self._parse()
            self._parsed = self.metadata.row_groups
        # They are looked up in one way only, or code that works for a parsed footer would see no
        # row groups in an indexed one.
        self.metadata.row_groups = None
        if not self.metadata.schema or (self.index is None and self._parsed is None):
            raise UnreadableError("the footer has no schema or no list of row groups")
        self._row_groups: dict[int, RowGroup] = {}
        self._chunks: dict[tuple[int, int], ColumnChunk] = {}
        self._numbers: dict[tuple[tuple[str, ...], bool], tuple[Sequence[int], ...]] = {}

    def _parse(self, *splices: compact.Splice) -> FileMetaData:
        """Parse the struct after these edits, without what takes memory and is not read."""
        splices += self._cuts.splices
        raw = compact.apply(self.raw, splices) if splices else self.raw
        return parse_struct(FileMetaData, raw)

    def key_values(self) -> Iterator[KeyValue]:
        """Iterate over all key-values; `metadata` has those that are looked up by name."""
        if self._cuts.pairs is not None:
            return read_pairs(self.raw, self._cuts.pairs)
        return iter(self.metadata.key_value_metadata or ())

    @property
    def num_row_groups(self) -> int:
        return len(self._all()) if self.index is None else self.index.num_row_groups

    @property
    def has_encrypted_chunks(self) -> bool:
        """Whether a column chunk is encrypted with any key, or has no metadata."""
        if self.index is not None:
            return False
        return any(any(map(_is_encrypted, row_group.columns)) for row_group in self._all())

    def num_chunks(self, row_group: int) -> int | None:
        """Return the number of column chunks; None if there is no list of them."""
        if self.index is not None:
            return self.index.num_chunks_in(row_group)
        columns = self._all()[row_group].columns
        return None if columns is None else len(columns)

    def row_group(self, number: int) -> RowGroup:
        """Return the struct of a row group, which may lack its column chunks."""
        if self.index is None:
            return self._all()[number]
        if number not in self._row_groups:
            raw = self.index.without_chunks(number)
            self._row_groups[number] = parse_struct(RowGroup, raw)
        return self._row_groups[number]

    def column_chunk(self, row_group: int, column: int) -> ColumnChunk:
        """Return the struct of a column chunk."""
        chunk = self._chunks.get((row_group, column))
        if chunk is not None:
            return chunk
        if self._parsed is None and self._has_looked_at_many():
            self._parsed = self._parse().row_groups
            self._chunks.clear()
        if self._parsed is not None:
            return self._parsed[row_group].columns[column]
        assert self.index is not None
        chunk = parse_struct(ColumnChunk, self.index.chunk(row_group, column))
        self._chunks[row_group, column] = chunk
        return chunk

    def _has_looked_at_many(self) -> bool:
        assert self.index is not None
        many = max(_FEW_CHUNKS, self.index.num_chunks // LEAST_SHARE)
        return len(self._chunks) >= many

    def column_chunks(self, row_group: int) -> Iterator[ColumnChunk]:
        """Iterate over the structs of a row group's column chunks, in the columns' order."""
        if self._parsed is not None:
            return iter(self._parsed[row_group].columns)
        assert self.index is not None
        return iter(parse_struct(RowGroup, self.index.row_group(row_group)).columns)

    def numbers(self, *names: str, presence: bool = False) -> tuple[Sequence[int], ...]:
        """Return, for each field of `ColumnChunk` or `ColumnMetaData`, its numbers in all chunks,
        row group by row group.

        The number is 0 for a chunk that does not state the field; for text it is 0 only if the text
        is empty; with `presence` it is 1 for each chunk that states the field. Much faster than
        looking at each chunk.
        """
        if self.index is None:
            number_of = _as_presence if presence else _as_number
            return tuple(list(map(number_of, self._values(name))) for name in names)
        # Eight bytes per chunk and field are kept, so that the footer is read once for each set of
        # fields.
        numbers = self._numbers.get((names, presence))
        if numbers is None:
            numbers = self.index.numbers(names, presence=presence)
            self._numbers[names, presence] = numbers
        return numbers

    def _values(self, name: str) -> Iterator[Any]:
        is_outer = hasattr(ColumnChunk(), name)
        for row_group in self._all():
            for chunk in row_group.columns:
                parent = chunk if is_outer else chunk.meta_data
                yield getattr(parent, name, None)

    def _all(self) -> list[RowGroup]:
        assert self._parsed is not None
        return self._parsed


def _is_encrypted(chunk: ColumnChunk) -> bool:
    return (
        chunk.meta_data is None
        or chunk.crypto_metadata is not None
        or chunk.encrypted_column_metadata is not None
    )


def _as_presence(value: int | str | None) -> int:
    return int(value is not None)


def _as_number(value: int | str | None) -> int:
    if isinstance(value, str):
        return len(value)
    return value or 0
