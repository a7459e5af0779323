"""What `advise` collects before it reads data: facts from each file's footer and filters, and totals over many files.

The size of a total does not depend on the number of files: it consists of sums, histograms and a random sample of bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sbbf_tool.advice.folds import Folds
from sbbf_tool.advice.overlap import Reservoir, measure_overlap
from sbbf_tool.advice.queries import Query, QueryCounts, count_query
from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.distinct import Distinct, containment
from sbbf_tool.file.doubts import doubt_of_filter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import row_group_bytes
from sbbf_tool.file.table_file import Reuse
from sbbf_tool.parquet.arrow_schema import arrow_type
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.pages import ChunkMeta
from sbbf_tool.parquet.statistics import Bounds, bounds

SAMPLED_FILES, SAMPLED_BOUNDS = 4, 512


class ChunkSurvey(NamedTuple):
    """A chunk that holds values."""

    values: int
    """Number of non-null values; nulls are included if the footer does not count them."""
    bytes: int
    row_group_bytes: int
    dictionary: int | None
    """Entries of a dictionary that holds all values, at most one per value; -1 if the dictionary does not state its length."""
    bounds: Bounds | None
    has_filter: bool = False
    value_bytes: int = 0
    """Uncompressed bytes of the pages, unless a dictionary has each value only once."""


class FilterSurvey(NamedTuple):
    bytes: int
    sizes: tuple[tuple[int, float], ...]
    """Bytes and false-positive rate of the bitset, and of its folds to every half of its size; empty if the filter cannot be read."""

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
    """The column's type in the file's ARROW:schema, for types that some engine treats differently."""
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
    """Read the footer, the header of each dictionary page and the filters; for queries, also the dictionaries of the queried columns."""
    reuse = file.run.reuse or Reuse()
    file.source.prefetch(_list_dictionary_headers(file))
    file.expect_filters(file.footer.columns, whole=True)
    geometries = _list_geometries(file)
    group_bytes = [row_group_bytes(file, number) for number in range(file.footer.num_row_groups)]
    return FileSurvey(
        file=file.name,
        bytes=file.source.size,
        footer_bytes=file.source.size - file.footer.start,
        row_groups=file.footer.num_row_groups,
        columns=tuple(_survey_column(file, column, group_bytes, geometries) for column in file.footer.columns),
        queries=tuple(count_query(file, query, reuse) for query in queries),
    )


def _survey_column(file: ParquetFile, column: Column, group_bytes: Sequence[int], geometries: frozenset[str]) -> ColumnSurvey:
    obstacle = None if file.footer.is_writable else "the footer is signed"
    chunks, filters, has_nulls = [], [], False
    for number in range(file.footer.num_row_groups):
        meta = file.footer.chunk_meta(number, column.index)
        if encrypted := file.encryption_of(number, column):
            obstacle = obstacle or encrypted
        elif meta.external:
            obstacle = obstacle or "its pages are in another file"
        elif meta.has_only_nulls:
            has_nulls = has_nulls or meta.values != 0
        else:
            filters += [] if (filter_survey := _survey_filter(file, number, column)) is None else [filter_survey]
            chunk = _survey_chunk(file, number, column, meta, group_bytes[number])
            chunks.append(chunk._replace(has_filter=filter_survey is not None))
    is_geometry = len(column.path) == 1 and column.path[0] in geometries
    return ColumnSurvey(column, tuple(chunks), tuple(filters), obstacle, arrow_type(file.footer, column), has_nulls, is_geometry)


def _list_geometries(file: ParquetFile) -> frozenset[str]:
    """Return the columns that the key `geo` of GeoParquet names; none if it cannot be read."""
    text = next((entry.value for entry in file.footer.metadata.key_value_metadata or () if entry.key == "geo"), None)
    if text is None:
        return frozenset()
    import json

    try:
        columns = json.loads(text)["columns"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return frozenset()
    return frozenset(columns) if isinstance(columns, dict) else frozenset()


def _survey_chunk(file: ParquetFile, number: int, column: Column, meta: ChunkMeta, group_bytes: int) -> ChunkSurvey:
    return ChunkSurvey(
        values=meta.most_values,
        bytes=meta.bytes,
        row_group_bytes=group_bytes,
        dictionary=min(_read_dictionary_length(file, number, column), meta.most_values) if meta.is_dictionary_encoded else None,
        bounds=bounds(file.footer, number, column),
        value_bytes=0 if meta.is_dictionary_encoded else meta.uncompressed_bytes,
    )


def _read_dictionary_length(file: ParquetFile, number: int, column: Column) -> int:
    from sbbf_tool.parquet.pages import page_range, read_page

    with file.locate_errors(f"column {column.name}, row group {number}"):
        pages = file.pages(number, column)
        page = read_page(pages.read, *page_range(pages.meta)).header.dictionary_page_header
    return -1 if page is None or page.num_values is None or page.num_values < 0 else int(page.num_values)


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


@dataclass(slots=True)
class Totals:
    """A column over all files."""

    column: Column
    folds: Folds
    """What its filters take, and would take at smaller sizes."""
    row_groups: int = 0
    """Row groups in which the column has values."""
    bytes: int = 0
    row_group_bytes: int = 0
    most_values: int = 0
    dictionaries: int = 0
    """Row groups whose dictionary holds all values; `counted_dictionaries` is the number of those whose dictionary states its length."""
    counted_dictionaries: int = 0
    most_in_dictionary: int = 0
    row_groups_by_ndv: Counter[tuple[int, bool]] = field(default_factory=Counter)
    """Row groups by number of distinct values, if a dictionary states it (large ones are rounded up), and by whether they have a filter."""
    row_groups_by_values: Counter[tuple[int, bool]] = field(default_factory=Counter)
    """All other row groups by number of values, and by the same."""
    footer_bytes: int = 0
    """Bytes of the footers of the files in which row groups lack a useful filter."""
    ranges: Reservoir[Bounds] = field(default_factory=lambda: Reservoir(SAMPLED_BOUNDS))
    filters: int = 0
    unreadable_filters: int = 0
    filter_bytes: int = 0
    worst_fpp: float = 0.0
    sum_of_fpp: float = 0.0
    obstacle: str | None = None
    has_nulls: bool = False
    """Whether a row group holds only nulls."""
    values: int = 0
    value_bytes: int = 0
    """Uncompressed bytes of these values."""
    is_geometry: bool = False
    arrow_types: set[str | None] = field(default_factory=set)
    """The column's types in the files' ARROW:schema; None for a file without one."""
    samples: list[Distinct] = field(default_factory=list)
    sample_files: Reservoir[str] = field(default_factory=lambda: Reservoir(SAMPLED_FILES))
    """Random sample of the files that hold values of the column."""

    def add(self, file: str, survey: ColumnSurvey, footer_bytes: int) -> None:
        if survey.chunks:
            self.sample_files.offer(file)
        useful = [each for each in survey.filters if each.fpp is not None and each.fpp <= sizing.SATURATED_FPP]
        self.footer_bytes += footer_bytes if len(useful) < len(survey.chunks) else 0
        self.obstacle = self.obstacle or survey.obstacle
        self.has_nulls = self.has_nulls or survey.has_nulls
        self.is_geometry = self.is_geometry or survey.is_geometry
        self.arrow_types.add(survey.arrow_type)
        for chunk in survey.chunks:
            self.row_groups += 1
            self.bytes += chunk.bytes
            self.values += chunk.values
            self.value_bytes += chunk.value_bytes
            self.row_group_bytes += chunk.row_group_bytes
            self.most_values = max(self.most_values, chunk.values)
            self.dictionaries += chunk.dictionary is not None
            if chunk.dictionary is not None and chunk.dictionary >= 0:
                self.counted_dictionaries += 1
                self.most_in_dictionary = max(self.most_in_dictionary, chunk.dictionary)
                self.row_groups_by_ndv[_round_up(chunk.dictionary), chunk.has_filter] += 1
            else:
                self.row_groups_by_values[_round_up(chunk.values), chunk.has_filter] += 1
            if chunk.bounds is not None:
                self.ranges.offer(chunk.bounds)
        for stored in survey.filters:
            self.filters += 1
            self.filter_bytes += stored.bytes
            self.unreadable_filters += stored.fpp is None
            self.worst_fpp = max(self.worst_fpp, stored.fpp or 0.0)
            self.sum_of_fpp += stored.fpp or 0.0
            if stored.sizes:
                self.folds.add(stored.sizes)

    @property
    def mean_fpp(self) -> float | None:
        readable = self.filters - self.unreadable_filters
        return self.sum_of_fpp / readable if readable else None

    @property
    def share_after_statistics(self) -> float:
        """Share of the row groups that min and max leave to read, for a value in the range of at least one row group."""
        bounded = self.ranges.total
        chance = measure_overlap(self.ranges.items)
        remaining = (1 + (bounded - 1) * chance) if chance is not None else bounded
        return (self.row_groups - bounded + remaining) / self.row_groups if self.row_groups else 0.0

    @property
    def distinct_share(self) -> float | None:
        """Share of distinct values among a row group's values, averaged over the samples; None without samples."""
        most = max((sample.values for sample in self.samples), default=0)
        shares = [sample.ndv / sample.values for sample in self.samples if sample.values and sample.values * 2 >= most]
        return sum(shares) / len(shares) if shares else None

    @property
    def ndv(self) -> float | None:
        """Number of distinct values in the row group with the most."""
        share = self.distinct_share
        if self.row_groups_by_values and share is None:
            return None
        return max(self.most_in_dictionary, share * self.most_values if share is not None and self.row_groups_by_values else 0.0)

    @property
    def repetition(self) -> float | None:
        """Share of one row group's distinct values that another also holds, averaged over the samples; None for fewer than two samples."""
        pairs = [(first, second) for index, first in enumerate(self.samples) for second in self.samples[:index]]
        shares = [share for pair in pairs for first, second in (pair, pair[::-1]) if (share := containment(first, second)) is not None]
        return sum(shares) / len(shares) if shares else None

    def estimate_cost(self, fpp: float) -> tuple[int, int, int] | None:
        """Estimate the bytes of the largest bitset, of all filters with their headers, and of missing ones; None if the NDV is unknown."""
        ndv, share = self.ndv, self.distinct_share or 0.0
        if ndv is None:
            return None
        estimates = [(float(number), has_filter, count) for (number, has_filter), count in self.row_groups_by_ndv.items()]
        estimates += [(number * share, has_filter, count) for (number, has_filter), count in self.row_groups_by_values.items()]
        sums = [0, 0]
        for number, has_filter, count in estimates:
            sums[has_filter] += count * (_HEADER_BYTES + sizing.bytes_for(max(1.0, min(number, ndv)), fpp))
        return sizing.bytes_for(max(1.0, ndv), fpp), sum(sums), sums[False]


_HEADER_BYTES = 16
_STEPS = 1 << 10
_PAGE_HEADER_BYTES = 64


def _round_up(number: int) -> int:
    """Round up by at most a thousandth, so that a histogram has few different numbers."""
    step = max(1, (1 << number.bit_length()) // _STEPS)
    return -(-number // step) * step
