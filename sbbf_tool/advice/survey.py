"""What `advise` collects before it reads data: facts from the footer and the filters of each file,
which `totals` adds up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sbbf_tool.advice.queries import Query, QueryCounts, count_query
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.doubts import doubt_of_filter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import row_group_bytes
from sbbf_tool.parquet.arrow_schema import arrow_type
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.pages import ChunkMeta, page_range, read_page
from sbbf_tool.parquet.statistics import Bounds, bounds

_PAGE_HEADER_BYTES = 64


class ChunkSurvey(NamedTuple):
    """A chunk that holds values."""

    values: int
    """Number of non-null values; nulls are included if the footer does not count them."""
    bytes: int
    row_group_bytes: int
    dictionary: int | None
    """Entries of a dictionary that holds all values, at most one per value; -1 if the dictionary
    does not state its length."""
    bounds: Bounds | None
    has_filter: bool = False
    value_bytes: int = 0
    """Uncompressed bytes of the pages, unless a dictionary has each value only once."""


class FilterSurvey(NamedTuple):
    bytes: int
    sizes: tuple[tuple[int, float], ...]
    """Bytes and false-positive rate of the bitset, and of its folds to every half of its size;
    empty if the filter cannot be read."""

    @property
    def fpp(self) -> float | None:
        return self.sizes[0][1] if self.sizes else None


@dataclass(frozen=True, slots=True)
class ColumnSurvey:
    column: Column
    chunks: tuple[ChunkSurvey, ...]
    filters: tuple[FilterSurvey, ...]
    obstacle: str | None
    """Why no filter can be added."""
    arrow_type: str | None = None
    """The column's type in the file's ARROW:schema, for types that some engine treats
    differently."""
    has_nulls: bool = False
    """Whether a row group holds only nulls."""
    is_geometry: bool = False
    """Whether the file's key `geo` names the column (GeoParquet)."""


@dataclass(frozen=True, slots=True)
class FileSurvey:
    file: str
    bytes: int
    footer_bytes: int
    row_groups: int
    columns: tuple[ColumnSurvey, ...]
    queries: tuple[QueryCounts, ...]


def survey(file: ParquetFile, queries: Sequence[Query]) -> FileSurvey:
    """Read the footer, the header of each dictionary page and the filters; for queries, also the
    dictionaries of the queried columns."""
    file.source.prefetch(_list_dictionary_headers(file))
    file.expect_filters(file.footer.columns, whole=True)
    geometries = _list_geometries(file)
    group_bytes = [row_group_bytes(file, number) for number in range(file.footer.num_row_groups)]
    columns = []
    for column in file.footer.columns:
        column_survey = _survey_column(file, column, group_bytes, geometries)
        columns.append(column_survey)
    return FileSurvey(
        file=file.name,
        bytes=file.source.size,
        footer_bytes=file.source.size - file.footer.start,
        row_groups=file.footer.num_row_groups,
        columns=tuple(columns),
        queries=tuple(count_query(file, query) for query in queries),
    )


def _survey_column(
    file: ParquetFile, column: Column, group_bytes: Sequence[int], geometries: frozenset[str]
) -> ColumnSurvey:
    obstacle = None if file.footer.is_writable else "the footer is signed"
    chunks = []
    filters = []
    has_nulls = False
    for number in range(file.footer.num_row_groups):
        meta = file.footer.chunk_meta(number, column.index)
        encrypted = file.encryption_of(number, column)
        if encrypted:
            obstacle = obstacle or encrypted
        elif meta.external:
            obstacle = obstacle or "its pages are in another file"
        elif meta.has_only_nulls:
            has_nulls = has_nulls or meta.values != 0
        else:
            filter_survey = _survey_filter(file, number, column)
            if filter_survey is not None:
                filters.append(filter_survey)
            chunk = _survey_chunk(file, number, column, meta, group_bytes[number])
            chunks.append(chunk._replace(has_filter=filter_survey is not None))
    is_geometry = len(column.path) == 1 and column.path[0] in geometries
    return ColumnSurvey(
        column,
        tuple(chunks),
        tuple(filters),
        obstacle,
        arrow_type(file.footer, column),
        has_nulls,
        is_geometry,
    )


def _list_geometries(file: ParquetFile) -> frozenset[str]:
    """Return the columns that the key `geo` of GeoParquet names; none if it cannot be read."""
    for entry in file.footer.metadata.key_value_metadata or ():
        if entry.key == "geo":
            return _parse_geometries(entry.value)
    return frozenset()


def _parse_geometries(text: str | None) -> frozenset[str]:
    if text is None:
        return frozenset()
    try:
        columns = json.loads(text)["columns"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return frozenset()
    return frozenset(columns) if isinstance(columns, dict) else frozenset()


def _survey_chunk(
    file: ParquetFile, number: int, column: Column, meta: ChunkMeta, group_bytes: int
) -> ChunkSurvey:
    dictionary = None
    value_bytes = meta.uncompressed_bytes
    if meta.is_dictionary_encoded:
        dictionary = min(_read_dictionary_length(file, number, column), meta.most_values)
        value_bytes = 0
    return ChunkSurvey(
        values=meta.most_values,
        bytes=meta.bytes,
        row_group_bytes=group_bytes,
        dictionary=dictionary,
        bounds=bounds(file.footer, number, column),
        value_bytes=value_bytes,
    )


def _read_dictionary_length(file: ParquetFile, number: int, column: Column) -> int:
    with file.locate_errors(f"column {column.name}, row group {number}"):
        pages = file.pages(number, column)
        page = read_page(pages.read, *page_range(pages.meta)).header.dictionary_page_header
    if page is None or page.num_values is None or page.num_values < 0:
        return -1
    return int(page.num_values)


def _list_dictionary_headers(file: ParquetFile) -> Iterator[tuple[int, int]]:
    for number in range(file.footer.num_row_groups):
        for meta in file.footer.chunk_metas(number):
            if meta.is_dictionary_encoded:
                yield meta.page_range[0], _PAGE_HEADER_BYTES


def _survey_filter(file: ParquetFile, number: int, column: Column) -> FilterSurvey | None:
    try:
        stored = file.stored_filter(number, column)
    except UnreadableError:
        return FilterSurvey(0, ())
    if stored is None:
        return None
    if doubt_of_filter(file, stored):
        return FilterSurvey(stored.length, ())
    bloom = BloomFilter(file.read_bitset(stored))
    return FilterSurvey(stored.length, tuple((fold.num_bytes, fold.fpp) for fold in bloom.folds()))
