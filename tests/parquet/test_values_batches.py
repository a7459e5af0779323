"""The number of rows per batch, and the page headers that are read where the footer does not suffice."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.idl.ttypes import (
    PageType,
)
from sbbf_tool.parquet.pages import page_range, read_pages
from support.tables import each


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
