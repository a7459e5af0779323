"""One column chunk as the footer describes it (parquet.thrift `ColumnChunk` and `ColumnMetaData`), interpreted in one place.

Writers leave fields out, and damaged footers contain negative numbers. A missing size counts as 0, since sizes are added up and limit
reads. A missing count is None (unknown), since 0 would wrongly mean that there are no values.
"""

from __future__ import annotations

from sbbf_tool.parquet.idl.ttypes import ColumnChunk, ColumnMetaData
from sbbf_tool.parquet.pages import count_of, is_dictionary_encoded, page_range

_UNKNOWN = ColumnMetaData()  # of a locked chunk: it states nothing


class ChunkMeta:
    """A view of one column chunk's structs; it copies nothing and is cheap to make."""

    __slots__ = ("_chunk", "_meta")

    def __init__(self, chunk: ColumnChunk) -> None:
        self._chunk = chunk
        self._meta = chunk.meta_data if chunk.meta_data is not None else _UNKNOWN

    @property
    def is_locked(self) -> bool:
        """Whether the metadata are unknown: they are encrypted with the column's own key, which is missing."""
        return self._chunk.meta_data is None

    @property
    def is_encrypted(self) -> bool:
        """Whether the chunk's pages are encrypted, with any key."""
        return self._chunk.crypto_metadata is not None or self.is_locked

    @property
    def external(self) -> str | None:
        """Path of the other file that contains the chunk's pages; None if they are in this file."""
        return self._chunk.file_path or None

    @property
    def bytes(self) -> int:
        """Compressed bytes of all pages with their headers; 0 if unknown."""
        return count_of(self._meta.total_compressed_size)

    @property
    def uncompressed_bytes(self) -> int:
        """Uncompressed bytes of all pages with their headers; 0 if unknown."""
        return count_of(self._meta.total_uncompressed_size)

    @property
    def values(self) -> int | None:
        """Number of values, nulls included."""
        return _stated_count(self._meta.num_values)

    @property
    def nulls(self) -> int | None:
        """Number of nulls. Writers disagree on whether an empty list counts as a null."""
        return None if self._meta.statistics is None else _stated_count(self._meta.statistics.null_count)

    @property
    def non_null_values(self) -> int | None:
        """Number of values that are not null; None if either count is unknown, or they contradict each other."""
        values, nulls = self.values, self.nulls
        if values == 0:
            return 0
        if values is None or nulls is None or nulls > values:
            return None
        statistics = self._meta.statistics  # `nulls` comes from it
        has_bounds = any(getattr(statistics, name) is not None for name in ("min", "max", "min_value", "max_value"))
        return None if nulls == values and has_bounds else values - nulls

    @property
    def most_values(self) -> int:
        """Upper bound of non-null values, for sizes and estimates: all values if the number of nulls is unknown."""
        return max(0, (self.values or 0) - (self.nulls or 0))

    @property
    def has_only_nulls(self) -> bool:
        """Whether the footer shows that the chunk contains only nulls, or no values."""
        return self.non_null_values == 0

    @property
    def type(self) -> int | None:
        """Physical type, as a number of parquet.thrift's `Type`."""
        kind: int | None = self._meta.type
        return kind

    @property
    def encodings(self) -> frozenset[int]:
        return frozenset(self._meta.encodings or ())

    @property
    def page_types(self) -> frozenset[int]:
        """Types of the pages, if the writer lists them."""
        return frozenset(entry.page_type for entry in self._meta.encoding_stats or ())

    @property
    def is_dictionary_encoded(self) -> bool:
        """Whether all data pages are known to be dictionary-encoded; False if the footer does not show it."""
        return is_dictionary_encoded(self._meta)

    @property
    def page_range(self) -> tuple[int, int]:
        """First byte of the first page, and the byte after the last page; (0, 0) if the metadata are locked."""
        return page_range(self._meta)

    @property
    def first_data_page(self) -> int | None:
        """Offset of the first data page if a dictionary page is before it; None if there is none, or if the metadata are locked."""
        dictionary, data = self._meta.dictionary_page_offset or 0, self._meta.data_page_offset or 0
        return data if 0 < dictionary < data else None

    @property
    def stated_filter(self) -> tuple[int | None, int | None]:
        """`bloom_filter_offset` and `bloom_filter_length` as stated, even if they mean that there is no filter."""
        return self._meta.bloom_filter_offset, self._meta.bloom_filter_length

    @property
    def file_offset(self) -> int | None:
        """`file_offset` as stated: the place of a copy of the metadata, or of the first page, or 0."""
        return _stated_count(self._chunk.file_offset)

    def is_copy(self, other: ColumnMetaData) -> bool:
        """Return whether these metadata describe the same pages; a copy is written before filters and statistics are added.

        Offsets in the copies of older versions of parquet-rs count from the first byte of the chunk, so only their distance is compared.
        """
        names = ("type", "path_in_schema", "codec", "num_values", "total_compressed_size")
        is_same = all(getattr(self._meta, name) == getattr(other, name) for name in names)
        return not self.is_locked and is_same and _dictionary_bytes(self._meta) == _dictionary_bytes(other)


def _dictionary_bytes(meta: ColumnMetaData) -> int | None:
    """Return the distance from dictionary page to first data page; None without a dictionary."""
    return None if meta.dictionary_page_offset is None else meta.data_page_offset - meta.dictionary_page_offset


def _stated_count(number: int | None) -> int | None:
    return None if number is None or number < 0 else number
