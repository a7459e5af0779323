"""The structs of a footer: the row groups and column chunks are parsed one by one when they are looked at, or all in advance.

The first way needs the index that `_compact.c` makes (`chunk_index`). Encrypted footers, unusual ones, and installations without the
extension use the second way. Both state the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.chunk_index import index_chunks
from sbbf_tool.parquet.idl.ttypes import ColumnChunk, FileMetaData, RowGroup
from sbbf_tool.parquet.structs import parse_struct

_FEW_CHUNKS = 256
LEAST_SHARE = 16
"""If more than one in so many chunks is looked at, looking at them one by one takes longer than at all at once."""


class FooterStructs:
    """A `FileMetaData` without its row groups as `metadata`, and its row groups.

    Methods that look at chunks may only be used if all row groups have the same number of them.
    """

    def __init__(self, raw: bytes, *, whole: bool = False) -> None:
        """Parse the struct; with `whole`, all chunks at once. Raises UnreadableError, also if there is no list of row groups."""
        self.raw = raw
        self.index = None if whole else index_chunks(raw)
        """The positions of the column chunks in `raw`, if they are known."""
        self.metadata = parse_struct(FileMetaData, raw if self.index is None else self.index.without_row_groups())
        self._parsed: list[RowGroup] | None = None if self.index is not None else self.metadata.row_groups
        # They are looked up in one way only, or code that works for a parsed footer would see no row groups in an indexed one.
        self.metadata.row_groups = None
        if not self.metadata.schema or (self.index is None and self._parsed is None):
            raise UnreadableError("the footer has no schema or no list of row groups")
        self._row_groups: dict[int, RowGroup] = {}
        self._chunks: dict[tuple[int, int], ColumnChunk] = {}
        self._numbers: dict[tuple[tuple[str, ...], bool], tuple[Sequence[int], ...]] = {}

    @property
    def num_row_groups(self) -> int:
        return len(self._all()) if self.index is None else self.index.num_row_groups

    @property
    def has_encrypted_chunks(self) -> bool:
        """Whether a column chunk is encrypted with any key, or has no metadata."""
        if self.index is not None:
            return False
        chunks = (chunk for row_group in self._all() for chunk in row_group.columns)
        return any(
            chunk.meta_data is None or chunk.crypto_metadata is not None or chunk.encrypted_column_metadata is not None for chunk in chunks
        )

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
            self._row_groups[number] = parse_struct(RowGroup, self.index.without_chunks(number))
        return self._row_groups[number]

    def column_chunk(self, row_group: int, column: int) -> ColumnChunk:
        """Return the struct of a column chunk."""
        chunk = self._chunks.get((row_group, column))
        if chunk is None:
            if self._parsed is not None:
                return self._parsed[row_group].columns[column]
            assert self.index is not None
            if len(self._chunks) >= max(_FEW_CHUNKS, self.index.num_chunks // LEAST_SHARE):
                self._parsed = parse_struct(FileMetaData, self.raw).row_groups
                self._chunks.clear()
                return self.column_chunk(row_group, column)
            chunk = self._chunks[row_group, column] = parse_struct(ColumnChunk, self.index.chunk(row_group, column))
        return chunk

    def column_chunks(self, row_group: int) -> Iterator[ColumnChunk]:
        """Iterate over the structs of a row group's column chunks, in the columns' order."""
        if self._parsed is not None:
            return iter(self._parsed[row_group].columns)
        assert self.index is not None
        return iter(parse_struct(RowGroup, self.index.row_group(row_group)).columns)

    def numbers(self, *names: str, presence: bool = False) -> tuple[Sequence[int], ...]:
        """Return, for each field of `ColumnChunk` or `ColumnMetaData`, its numbers in all chunks, row group by row group.

        The number is 0 for a chunk that does not state the field; for text it is 0 only if the text is empty; with `presence` it is 1 for
        each chunk that states the field. Much faster than looking at each chunk.
        """
        if self.index is None:
            return tuple([int(value is not None) if presence else _as_number(value) for value in self._values(name)] for name in names)
        # Eight bytes per chunk and field are kept, so that the footer is read once for each set of fields.
        numbers = self._numbers.get((names, presence))
        if numbers is None:
            numbers = self._numbers[names, presence] = self.index.numbers(names, presence=presence)
        return numbers

    def _values(self, name: str) -> Iterator[Any]:
        is_outer = hasattr(ColumnChunk(), name)
        for row_group in self._all():
            for chunk in row_group.columns:
                yield getattr(chunk if is_outer else chunk.meta_data, name, None)

    def _all(self) -> list[RowGroup]:
        assert self._parsed is not None
        return self._parsed


def _as_number(value: int | str | None) -> int:
    return len(value) if isinstance(value, str) else value or 0
