"""A chunk that is all dictionary-encoded is read no further than its dictionary, and what is read there is what the pages mean."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UnreadableError, add_filters
from sbbf_tool.operations.parquet_file import ParquetFile
from sbbf_tool.parquet.dictionary import is_dictionary_encoded, read_dictionary_page
from sbbf_tool.parquet.values import read_chunk

ROWS = 6000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    few = rng.integers(0, 300, ROWS)
    return pa.table(
        {
            "text": few.astype("U"),
            "int64": few,
            "int32": few.astype("i4"),
            "float": pa.array((few - 150) * np.float32(0.5), mask=few % 7 == 0),
            "fixed": pa.array([b"%06d" % value for value in few], pa.binary(6)),
            "list": pa.array([[int(value), None] for value in few]),
            "null": pa.array([None] * ROWS, pa.string()),
            "distinct": np.arange(ROWS).astype("U"),
            "plain": few,
        }
    )


def dictionary_of(file: ParquetFile, row_group: int, column):
    return read_dictionary_page(file.source.read_up_to, column, file.footer.chunk(row_group, column.index))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_the_dictionary_is_the_set_of_values(table, tmp_path, codec, version):
    path = tmp_path / "f.parquet"
    names = ["list.list.element", *(name for name in table.column_names if name != "plain")]
    pq.write_table(
        table, path, compression=codec, data_page_version=version, row_group_size=2500, use_dictionary=names, dictionary_pagesize_limit=8000
    )
    found = set()
    with ParquetFile.open(path) as file:
        for row_group, column in itertools.product(range(3), file.footer.columns):
            meta = file.footer.chunk(row_group, column.index)
            if not is_dictionary_encoded(meta):
                continue
            page = dictionary_of(file, row_group, column)
            stored = {h for run in read_chunk(file.source.open_arrow, file.footer, row_group, column) for h in run.hashes()}
            assert set(page.hashes()) == stored
            assert len(page) == len(stored)
            assert page.stored_bytes == meta.data_page_offset - meta.dictionary_page_offset
            found.add(column.name)
    assert found >= {"text", "int64", "int32", "float", "fixed", "list.list.element"}
    assert "plain" not in found


def test_add_filter_reads_no_more_than_the_dictionaries(table, tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(table.select(["text", "int64"]), path, row_group_size=2500)
    with ParquetFile.open(path) as file:
        metas = [file.footer.chunk(row_group, column) for row_group in range(3) for column in range(2)]
    report = add_filters(path, ["text", "int64"], in_place=True)
    dictionaries = sum(meta.data_page_offset - meta.dictionary_page_offset for meta in metas)
    # Besides: a look at its header twice, and at that of the only data page, which statistics make longer than a first look.
    assert dictionaries <= report.data_bytes_read <= dictionaries + 6 * (2 * 64 + 64 + 256)
    assert report.data_bytes_read < sum(meta.total_compressed_size for meta in metas) / 2


def test_both_zeros_and_all_nans_of_a_dictionary_go_in(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": [1.0, -0.0, float("nan")] * 100}), path)
    with ParquetFile.open(path) as file:
        column = file.footer.columns[0]
        page = dictionary_of(file, 0, column)
        assert len(page.hashes_of_equals()) == 4
        stream = list(read_chunk(file.source.open_arrow, file.footer, 0, column))
        assert set(page.hashes_of_equals()) == {h for run in stream for h in run.hashes_of_equals()}


@pytest.mark.parametrize("position", range(24))
def test_a_damaged_dictionary_is_an_error_or_the_same_values(table, tmp_path, position):
    path = tmp_path / "f.parquet"
    pq.write_table(table.select(["text"]), path, write_page_checksum=True, compression="snappy")
    data = bytearray(path.read_bytes())
    with ParquetFile.open(path) as file:
        column, meta = file.footer.columns[0], file.footer.chunk(0, 0)
        whole = set(dictionary_of(file, 0, column).hashes())
    data[meta.dictionary_page_offset + position * 17] ^= 0xFF
    path.write_bytes(data)
    with ParquetFile.open(path) as file:
        try:
            page = dictionary_of(file, 0, column)
        except UnreadableError:
            return
        assert page is None or set(page.hashes()) == whole
