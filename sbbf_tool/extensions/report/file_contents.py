"""`describe_contents`: the numbers of one file that only pictures need: bytes by content, folds of its filters, bits set per block."""

from __future__ import annotations

from collections.abc import Iterator

from sbbf_tool.bloom.block_bits import count_blocks_by_bits
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import AuthenticationError, UnreadableError
from sbbf_tool.extensions.report.contents import FilterDetail, FoldSize, StoredPart
from sbbf_tool.file.layout import METADATA_COPY, PAGES, OwnedRange, owned_ranges, ranges_between
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.footer import MAGIC

FILTER, UNREFERENCED, FOOTER, FURTHER, DICTIONARY = "filter", "unreferenced", "footer", "other", "dictionary page"


def describe_contents(file: ParquetFile, *, detailed: bool = True) -> tuple[tuple[FilterDetail, ...], tuple[StoredPart, ...]]:
    """Describe the filters that can be read and, if `detailed`, their blocks and every byte of the file."""
    file.expect_filters(file.footer.columns, whole=True)
    stored_filters: list[StoredFilter] = []
    details = tuple(_describe_filters(file, stored_filters, detailed=detailed))
    return details, tuple(_list_parts(file, stored_filters)) if detailed else ()


def _describe_filters(file: ParquetFile, stored_filters: list[StoredFilter], *, detailed: bool) -> Iterator[FilterDetail]:
    """Yield the numbers of each filter that can be read; append all filters whose header can be read to `stored_filters`."""
    places = file.footer.filter_places({column.index for column in file.footer.columns})
    for row_group in range(file.footer.num_row_groups) if places else ():
        for column in file.footer.columns:
            if (row_group, column.index) not in places or file.encryption_of(row_group, column):
                continue
            try:
                stored = file.stored_filter(row_group, column)
                if stored is None:
                    continue
                stored_filters.append(stored)
                if not stored.header.unsupported_reason:
                    yield _describe_filter(file, stored, column, detailed=detailed)
            except AuthenticationError:
                raise
            except UnreadableError:
                continue  # `inspect` reports it


def _describe_filter(file: ParquetFile, stored: StoredFilter, column: Column, *, detailed: bool) -> FilterDetail:
    bloom = BloomFilter(file.read_bitset(stored))
    return FilterDetail(
        row_group=stored.row_group,
        column=column.name,
        values=file.footer.chunk_meta(stored.row_group, column.index).non_null_values,
        sizes=tuple(FoldSize(fold.num_bytes, fold.fpp) for fold in bloom.folds()),
        blocks_by_bits=tuple(count_blocks_by_bits(bloom)) if detailed else (),
    )


def _list_parts(file: ParquetFile, stored_filters: list[StoredFilter]) -> Iterator[StoredPart]:
    """Yield every part of the file once, in order; where parts overlap, as in a damaged file, the first has the bytes."""
    position = 0
    for part in sorted(_find_parts(file, stored_filters), key=lambda part: (part.offset, -part.length)):
        start, end = max(part.offset, position), min(part.offset + part.length, file.source.size)
        if start > position:
            yield StoredPart(position, start - position, FURTHER, "bytes whose content the footer does not state")
        if end > start:
            yield StoredPart(start, end - start, part.kind, part.name, part.column, part.row_group)
            position = end
    if position < file.source.size:
        yield StoredPart(position, file.source.size - position, FURTHER, "bytes whose content the footer does not state")


def _find_parts(file: ParquetFile, stored_filters: list[StoredFilter]) -> Iterator[StoredPart]:
    footer, names = file.footer, [column.name for column in file.footer.columns]
    yield StoredPart(0, len(MAGIC), FURTHER, "magic")
    yield StoredPart(footer.start, footer.stored_bytes, FOOTER, "footer")
    end = footer.start + footer.stored_bytes
    yield StoredPart(end, file.source.size - end, FURTHER, "length of the footer, and magic")
    for owned in owned_ranges(footer):
        yield from _split_pages(file, owned, names[owned.column])
    for stored in stored_filters:
        column = names[stored.column]
        name = f"filter of {column}, row group {stored.row_group}"
        yield StoredPart(stored.place.offset, stored.length, FILTER, name, column, stored.row_group)
    for gap in ranges_between(file, stored_filters):
        kind = FURTHER if gap.kind == METADATA_COPY else UNREFERENCED
        yield StoredPart(gap.start, gap.length, kind, gap.kind if kind == FURTHER else f"unreferenced: {gap.kind}")


def _split_pages(file: ParquetFile, owned: OwnedRange, column: str) -> Iterator[StoredPart]:
    """Yield the parts of pages or of an index; a dictionary page before the data pages is a part of its own."""
    place = f"{column}, row group {owned.row_group}"
    data = file.footer.chunk_meta(owned.row_group, owned.column).first_data_page if owned.kind == PAGES else None
    if data is not None and owned.start < data < owned.end:
        yield StoredPart(owned.start, data - owned.start, DICTIONARY, f"dictionary of {place}", column, owned.row_group)
        yield StoredPart(data, owned.end - data, PAGES, f"pages of {place}", column, owned.row_group)
    else:
        yield StoredPart(owned.start, owned.length, owned.kind, f"{owned.kind} of {place}", column, owned.row_group)
