"""The number of rows per batch, and the page headers that are read where the footer does not suffice."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.batches import MOST_BYTES, MOST_INDICES, MOST_VALUES, USUAL_BYTES, Batches, plan_batches
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import (
    ColumnMetaData,
    DataPageHeader,
    Encoding,
    PageEncodingStats,
    PageHeader,
    PageType,
    SizeStatistics,
)
from sbbf_tool.parquet.pages import Page, page_range, read_pages
from sbbf_tool.parquet.values import read_chunk
from support.tables import each

TEXT = Column(0, ("v",), ("v",), "BYTE_ARRAY", 0, None, 0, 0)
GIB = 1 << 30


def fixed(width: int) -> Column:
    return Column(0, ("v",), ("v",), "FIXED_LEN_BYTE_ARRAY", width, None, 0, 0)


def meta(
    values: int, *, size: int = 0, decoded_size: int | None = None, encodings: Iterable[int] = (), all_encodings: Iterable[int] = ()
) -> Any:
    """Metadata of a chunk; `encodings` are those of its data pages, where the footer has them; `all_encodings` is the older list of all."""
    return ColumnMetaData(
        num_values=values,
        total_uncompressed_size=size,
        encodings=list(all_encodings),
        encoding_stats=[PageEncodingStats(page_type=PageType.DATA_PAGE, encoding=encoding, count=1) for encoding in encodings] or None,
        size_statistics=SizeStatistics(unencoded_byte_array_data_bytes=decoded_size),
    )


def page_of(is_dictionary: bool, encoding: int, values: int, size: int) -> Page:
    header = PageHeader(type=PageType.DICTIONARY_PAGE if is_dictionary else PageType.DATA_PAGE)
    header.data_page_header = None if is_dictionary else DataPageHeader(num_values=values, encoding=encoding)
    header.uncompressed_page_size = size
    return Page(0, 0, header)


def never() -> Any:
    raise AssertionError("the footer says enough")


def test_fixed_widths_need_no_more_than_arithmetic() -> None:
    assert plan_batches(fixed(16), meta(10**9), 10**9, never, never) == Batches(MOST_VALUES)
    assert plan_batches(fixed(1 << 20), meta(10**9), 10**9, never, never) == Batches(USUAL_BYTES >> 20)
    assert plan_batches(fixed(1 << 30), meta(10), 10, never, never) == Batches(1)
    assert plan_batches(fixed(16), meta(10**9), 10**6, never, never) == Batches(MOST_VALUES // 1000)


@each(
    "chunk",
    [
        meta(10**6, encodings=[Encoding.RLE_DICTIONARY]),
        meta(10**6, encodings=[Encoding.PLAIN_DICTIONARY]),
        meta(10**6, all_encodings=[Encoding.PLAIN_DICTIONARY, Encoding.RLE, Encoding.BIT_PACKED]),
    ],
)
def test_a_chunk_of_references_only_is_never_expanded(chunk: Any) -> None:
    assert plan_batches(TEXT, chunk, 10**6, never, never) == Batches(MOST_INDICES, as_dictionary=True)


def test_references_to_a_dictionary_with_repeated_entries_are_expanded_in_batches_for_its_longest_value() -> None:
    dictionary, by_reference = page_of(True, Encoding.PLAIN, 3, 50_000), page_of(False, Encoding.RLE_DICTIONARY, 10_000, 1000)
    chunk = meta(10**6, encodings=[Encoding.RLE_DICTIONARY])
    plan = plan_batches(TEXT, chunk, 10**6, lambda: [dictionary, by_reference], lambda: 40_000, expand_dictionary=True)
    assert plan == Batches(MOST_BYTES // 40_000)


@each(
    "chunk",
    [
        meta(10**6, decoded_size=MOST_BYTES, encodings=[Encoding.RLE_DICTIONARY, Encoding.PLAIN]),
        meta(10**6, decoded_size=MOST_BYTES, encodings=[Encoding.DELTA_BYTE_ARRAY]),
        meta(10**6, size=MOST_BYTES, encodings=[Encoding.PLAIN]),
        meta(10**6, size=MOST_BYTES, all_encodings=[Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.RLE]),
    ],
)
def test_little_in_all_is_little_in_any_batch(chunk: Any) -> None:
    plan = plan_batches(TEXT, chunk, 10**6, never, never)

    assert not plan.as_dictionary
    assert plan.rows == min(MOST_VALUES, int(USUAL_BYTES / (MOST_BYTES / 10**6)))


def test_much_is_taken_page_by_page() -> None:
    """So few rows that the worst page, and the longest value in the dictionary, cannot make a batch large."""

    def rows(pages: list[Page], longest: int = 0, **options: Any) -> int:
        plan = plan_batches(TEXT, meta(10**6, **options), 10**6, lambda: pages, lambda: longest)
        assert not plan.as_dictionary
        return plan.rows

    mixed = [Encoding.RLE_DICTIONARY, Encoding.PLAIN]
    dictionary, by_reference = page_of(True, Encoding.PLAIN, 3, 50_000), page_of(False, Encoding.RLE_DICTIONARY, 10_000, 1000)
    plain, long = page_of(False, Encoding.PLAIN, 1000, 20_000), page_of(False, Encoding.PLAIN, 2, 1 << 20)
    delta = page_of(False, Encoding.DELTA_BYTE_ARRAY, 100_000, 1 << 20)

    assert rows([plain, long, plain], size=2 * GIB, encodings=[Encoding.PLAIN]) == MOST_BYTES >> 19
    assert rows([dictionary, by_reference, plain], longest=40_000, decoded_size=GIB, encodings=mixed) == MOST_BYTES // 40_000
    assert rows([dictionary, by_reference, long], longest=40_000, decoded_size=GIB, encodings=mixed) == MOST_BYTES >> 19
    assert rows([dictionary, plain, by_reference], longest=0, decoded_size=GIB, encodings=mixed) == MOST_BYTES // 50_000
    assert rows([delta], size=MOST_BYTES, encodings=[Encoding.DELTA_BYTE_ARRAY]) == MOST_BYTES >> 20
    assert rows([plain], size=1000, all_encodings=[Encoding.PLAIN, Encoding.RLE, Encoding.RLE_DICTIONARY]) == MOST_VALUES
    assert rows([], size=2 * GIB, encodings=[Encoding.PLAIN]) >= 1


@pytest.fixture
def file_of_many_pages(tmp_path: Path) -> Path:
    path = tmp_path / "f.parquet"
    values = pa.array(["long " * 40_000, *(f"value {n}" for n in range(5000))])
    pq.write_table(pa.table({"v": values}), path, data_page_size=2000, write_batch_size=100, dictionary_pagesize_limit=210_000)
    return path


def test_page_headers_are_read_and_pages_are_not(file_of_many_pages: Path) -> None:
    with ParquetFile.open(file_of_many_pages) as file:
        chunk = file.footer.chunk(0, 0)
        assert chunk is not None
        pages = list(read_pages(file.source.read_up_to, chunk))
        read = file.source.bytes_read

    counts = {entry.encoding: entry.count for entry in chunk.encoding_stats if entry.page_type == PageType.DATA_PAGE}
    assert pages[0].is_dictionary
    assert pages[0].size > 200_000
    assert {encoding: sum(page.data.encoding == encoding for page in pages[1:]) for encoding in counts} == counts
    assert sum(page.values for page in pages[1:]) == chunk.num_values
    assert read < 1000 * len(pages)


def test_a_header_that_holds_long_statistics_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"v": ["a" * 3000, "b" * 3000]}), path, use_dictionary=False, data_page_version="1.0", compression="none")
    with ParquetFile.open(path) as file:
        chunk = file.footer.chunk(0, 0)
        assert chunk is not None
        (page,) = read_pages(file.source.read_up_to, chunk)

    assert (page.data.encoding, page.values) == (Encoding.PLAIN, 2)


@each("junk", [b"\xff" * 64, b"\x00" * 64, b"\x1c\x1c"])
def test_an_invalid_page_header_is_reported_with_its_place(file_of_many_pages: Path, junk: bytes) -> None:
    with ParquetFile.open(file_of_many_pages) as file:
        chunk = file.footer.chunk(0, 0)
        assert chunk is not None
        start, end = page_range(chunk)
    content = bytearray(file_of_many_pages.read_bytes())
    content[start : start + len(junk)] = junk

    with pytest.raises(UnreadableError) as caught:
        list(read_pages(lambda offset, length: bytes(content[offset : min(offset + length, end)]), chunk))
    assert caught.value.place == f"page header at byte {start:,}"


@each("values, longest", [(["x", "x" * 5000, None, "x" * 300], 5000), ([None, None], 0)])
def test_the_longest_value_is_measured_in_the_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[str | None], longest: int
) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"v": pa.array(values, pa.string())}), path)
    lengths = []

    def plan_and_measure(column: Column, meta: Any, num_rows: int, pages: Any, longest_in_dictionary: Any) -> Batches:
        lengths.append(longest_in_dictionary())
        return plan_batches(column, meta, num_rows, pages, longest_in_dictionary)

    monkeypatch.setattr("sbbf_tool.parquet.values.plan_batches", plan_and_measure)
    with ParquetFile.open(path) as file:
        list(read_chunk(file.source.open_arrow, file.footer, 0, file.footer.columns[0]))
    assert lengths == [longest]
