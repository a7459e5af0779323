"""The row groups of a footer and their column chunks: parsed one by one when they are looked at, or all in advance.

The first way needs the index that `_compact.c` makes (`chunk_index`). Encrypted footers, unusual ones, and installations without the
extension use the second way. Both state the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from sbbf_tool.parquet.chunk_index import ChunkIndex, index_chunks
from sbbf_tool.parquet.idl.ttypes import ColumnChunk, FileMetaData, RowGroup
from sbbf_tool.parquet.structs import parse_struct

_FEW_CHUNKS = 256
LEAST_SHARE = 16
"""If more than one in so many chunks is looked at, looking at them one by one takes longer than at all at once."""


class RowGroups(Protocol):
    """The row groups of a footer. `chunk` and `chunks` may only be used if all row groups have the same number of chunks."""

    @property
    def has_encrypted_chunks(self) -> bool:
        """Whether a chunk is encrypted with any key, or has no metadata."""

    @property
    def index(self) -> ChunkIndex | None:
        """The positions of the chunks, if they are known."""

    def __len__(self) -> int: ...

    def num_chunks(self, row_group: int) -> int | None:
        """Return the number of column chunks; None if there is no list of them."""

    def row_group(self, number: int) -> RowGroup:
        """Return a row group, which may lack its chunks."""

    def chunk(self, row_group: int, column: int) -> ColumnChunk: ...

    def chunks(self, row_group: int) -> Iterator[ColumnChunk]:
        """Iterate over the chunks of a row group."""

    def numbers(self, *names: str) -> tuple[Sequence[int], ...]:
        """Return, for each field of `ColumnChunk` or `ColumnMetaData`, its numbers in all chunks, row group by row group.

        The number is 0 for a chunk that does not state the field; for text it is 0 only if the text is empty.
        """

    def presence(self, *names: str) -> tuple[Sequence[int], ...]:
        """Return, as `numbers` does, 1 for each chunk that states the field, and 0 for each other one."""


def parse_metadata(raw: bytes, *, whole: bool = False) -> tuple[FileMetaData, RowGroups | None]:
    """Parse a `FileMetaData` without its row groups, and return them apart; None if there is no list of them. Raises UnreadableError.

    With `whole`, all chunks are parsed now.
    """
    index = None if whole else index_chunks(raw)
    metadata = parse_struct(FileMetaData, raw if index is None else index.without_row_groups())
    row_groups: list[RowGroup] | None = metadata.row_groups
    # They are looked up in one way only, or code that works for a parsed footer would see no row groups in an indexed one.
    metadata.row_groups = None
    if index is not None:
        return metadata, IndexedRowGroups(index)
    return metadata, None if row_groups is None else ParsedRowGroups(row_groups)


class ParsedRowGroups:
    """Row groups that are all parsed."""

    index = None

    def __init__(self, row_groups: list[RowGroup]) -> None:
        self._row_groups = row_groups

    @property
    def has_encrypted_chunks(self) -> bool:
        chunks = (chunk for row_group in self._row_groups for chunk in row_group.columns)
        return any(
            chunk.meta_data is None or chunk.crypto_metadata is not None or chunk.encrypted_column_metadata is not None for chunk in chunks
        )

    def __len__(self) -> int:
        return len(self._row_groups)

    def num_chunks(self, row_group: int) -> int | None:
        columns = self._row_groups[row_group].columns
        return None if columns is None else len(columns)

    def row_group(self, number: int) -> RowGroup:
        return self._row_groups[number]

    def chunk(self, row_group: int, column: int) -> ColumnChunk:
        return self._row_groups[row_group].columns[column]

    def chunks(self, row_group: int) -> Iterator[ColumnChunk]:
        return iter(self._row_groups[row_group].columns)

    def numbers(self, *names: str) -> tuple[Sequence[int], ...]:
        return tuple([_as_number(value) for value in self._values(name)] for name in names)

    def presence(self, *names: str) -> tuple[Sequence[int], ...]:
        return tuple([int(value is not None) for value in self._values(name)] for name in names)

    def _values(self, name: str) -> Iterator[int | str | None]:
        is_outer = hasattr(ColumnChunk(), name)
        for row_group in self._row_groups:
            for chunk in row_group.columns:
                yield getattr(chunk if is_outer else chunk.meta_data, name, None)


def _as_number(value: int | str | None) -> int:
    return len(value) if isinstance(value, str) else value or 0


class IndexedRowGroups:
    """Row groups whose chunks are parsed when they are looked at; all at once if many are."""

    has_encrypted_chunks = False

    def __init__(self, index: ChunkIndex) -> None:
        self.index: ChunkIndex | None = index
        self._index = index
        self._row_groups: dict[int, RowGroup] = {}
        self._chunks: dict[tuple[int, int], ColumnChunk] = {}
        self._most_chunks = max(_FEW_CHUNKS, index.num_chunks // LEAST_SHARE)
        self._whole: ParsedRowGroups | None = None
        self._fields: dict[tuple[str, bool], Sequence[int]] = {}

    def __len__(self) -> int:
        return self._index.num_row_groups

    def num_chunks(self, row_group: int) -> int | None:
        return self._index.num_chunks_in(row_group)

    def row_group(self, number: int) -> RowGroup:
        if number not in self._row_groups:
            self._row_groups[number] = parse_struct(RowGroup, self._index.without_chunks(number))
        return self._row_groups[number]

    def chunk(self, row_group: int, column: int) -> ColumnChunk:
        if self._whole is not None:
            return self._whole.chunk(row_group, column)
        chunk = self._chunks.get((row_group, column))
        if chunk is None:
            if len(self._chunks) >= self._most_chunks:
                self._whole = ParsedRowGroups(parse_struct(FileMetaData, self._index.raw).row_groups)
                self._chunks.clear()
                return self._whole.chunk(row_group, column)
            chunk = self._chunks[row_group, column] = parse_struct(ColumnChunk, self._index.chunk(row_group, column))
        return chunk

    def chunks(self, row_group: int) -> Iterator[ColumnChunk]:
        if self._whole is not None:
            return self._whole.chunks(row_group)
        return iter(parse_struct(RowGroup, self._index.row_group(row_group)).columns)

    def numbers(self, *names: str) -> tuple[Sequence[int], ...]:
        return self._numbers(names, presence=False)

    def presence(self, *names: str) -> tuple[Sequence[int], ...]:
        return self._numbers(names, presence=True)

    def _numbers(self, names: Sequence[str], *, presence: bool) -> tuple[Sequence[int], ...]:
        # Eight bytes per chunk and field are kept, so that the footer is read once for each set of fields.
        missing = [name for name in names if (name, presence) not in self._fields]
        if missing:
            self._fields |= zip(((name, presence) for name in missing), self._index.numbers(missing, presence=presence), strict=True)
        return tuple(self._fields[name, presence] for name in names)
