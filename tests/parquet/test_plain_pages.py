"""The values of a chunk from its dictionary and its PLAIN pages: the same that decoding every page gives, and nothing read for naught."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UnreadableError
from sbbf_tool.file.chunk_hashes import StoredValues
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.pages import is_dictionary_encoded, page_range
from sbbf_tool.parquet.plain_pages import NotPlainError, PlainChunk, PlainPage, may_be_plain
from sbbf_tool.parquet.values import read_chunk
from support.tables import each

ROWS = 6000
CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")


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
    return PlainChunk(file.source.read_up_to, column, file.footer.chunk(row_group, column.index)).dictionary()


@each("codec, version", [*((codec, "1.0") for codec in CODECS), ("zstd", "2.0")])
def test_the_dictionary_is_the_set_of_values(table, tmp_path, codec, version):
    path = tmp_path / "f.parquet"
    names = ["list.list.element", *(name for name in table.column_names if name != "plain")]
    pq.write_table(
        table, path, compression=codec, data_page_version=version, row_group_size=2500, use_dictionary=names, dictionary_pagesize_limit=8000
    )
    column_names = set()
    with ParquetFile.open(path) as file:
        for row_group, column in itertools.product(range(3), file.footer.columns):
            meta = file.footer.chunk(row_group, column.index)
            if not is_dictionary_encoded(meta):
                continue
            page = dictionary_of(file, row_group, column)
            stored = {h for run in read_chunk(file.source.open_arrow, file.footer, row_group, column) for h in run.hashes()}
            assert set(page.hashes) == stored
            assert len(page) == len(stored)
            assert page.stored_bytes == meta.data_page_offset - meta.dictionary_page_offset
            column_names.add(column.name)
    assert column_names >= {"text", "int64", "int32", "float", "fixed", "list.list.element"}
    assert "plain" not in column_names


# --- Whole chunks ---


def pages_of(file: ParquetFile, row_group: int, column) -> list[PlainPage]:
    return list(PlainChunk(file.source.read_up_to, column, file.footer.chunk(row_group, column.index)).pages())


def stream_counts(file: ParquetFile, row_group: int, column) -> Counter[int]:
    return Counter(h for run in read_chunk(file.source.open_arrow, file.footer, row_group, column) for h in run.hashes())


@pytest.fixture(scope="module")
def many():
    """Values in every kind of page: distinct ones outgrow a dictionary; nulls and lists put levels before them."""
    rng = np.random.default_rng(2)
    some = rng.integers(0, 4000, ROWS)
    nulls = rng.random(ROWS) < 0.3
    return pa.table(
        {
            "text": pa.array(np.arange(ROWS).astype("U"), mask=nulls),
            "int64": pa.array(some, mask=nulls),
            "int32": some.astype("i4"),
            "double": pa.array(some - 2000.0, mask=some % 5 == 0),
            "fixed": pa.array([b"%06d" % value for value in some], pa.binary(6)),
            "list": pa.array([[int(value), None] * int(value % 4) if value % 7 else None for value in some]),
            "struct": pa.array([{"a": int(value) if value % 3 else None} if value % 5 else None for value in some]),
            "halves": pa.array([None] * (ROWS // 2) + list(range(ROWS - ROWS // 2)), pa.int64()),
            "null": pa.array([None] * ROWS, pa.string()),
            "blocks": pa.array(some, mask=(np.arange(ROWS) // 100) % 2 == 0),
        },
        schema=pa.schema(
            [
                pa.field("text", pa.string()),
                pa.field("int64", pa.int64()),
                pa.field("int32", pa.int32(), nullable=False),
                pa.field("double", pa.float64()),
                pa.field("fixed", pa.binary(6), nullable=False),
                pa.field("list", pa.list_(pa.int64())),
                pa.field("struct", pa.struct([("a", pa.int64())])),
                pa.field("halves", pa.int64()),
                pa.field("null", pa.string()),
                pa.field("blocks", pa.int64()),
            ]
        ),
    )


@each("codec, version, checksums", [*((codec, "2.0", True) for codec in CODECS), ("none", "1.0", True), ("zstd", "1.0", False)])
def test_pages_without_a_dictionary_hold_what_the_stream_does(many, tmp_path, codec, version, checksums):
    path = tmp_path / "f.parquet"
    pq.write_table(
        many,
        path,
        compression=codec,
        data_page_version=version,
        data_page_size=4000,
        row_group_size=2500,
        use_dictionary=False,
        write_page_checksum=checksums,
    )
    with ParquetFile.open(path) as file:
        for row_group, column in itertools.product(range(3), file.footer.columns):
            pages = pages_of(file, row_group, column)
            assert Counter(h for page in pages for h in page.hashes) == stream_counts(file, row_group, column)
            assert sum(map(len, pages)) == sum(len(page.hashes) for page in pages)


@each(
    "encoding, values",
    [
        ("DELTA_BINARY_PACKED", pa.array(range(100))),
        ("BYTE_STREAM_SPLIT", pa.array(map(float, range(100)))),
        ("DELTA_BYTE_ARRAY", pa.array(map(str, range(100)))),
        ("DELTA_LENGTH_BYTE_ARRAY", pa.array(map(str, range(100)))),
        ("RLE", pa.array([True, False] * 50)),
        ("PLAIN", pa.array([True, False] * 50)),
    ],
)
def test_other_pages_are_for_a_decoder(tmp_path, encoding, values):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": values}), path, use_dictionary=False, column_encoding={"x": encoding}, version="2.6")
    with ParquetFile.open(path) as file:
        column = file.footer.columns[0]
        assert not may_be_plain(column, file.footer.chunk(0, 0))
        with pytest.raises(NotPlainError):
            pages_of(file, 0, column)
        chunk = StoredValues(file, (0, 0))
        assert Counter(h for run in chunk.hashes() for h in run) - Counter(chunk_equals(file)) == stream_counts(file, 0, column)
        assert chunk.count == 100
        assert chunk.bytes_read == file.footer.chunk(0, 0).total_compressed_size


def chunk_equals(file: ParquetFile) -> list[int]:
    column = file.footer.columns[0]
    return [h for run in read_chunk(file.source.open_arrow, file.footer, 0, column) for h in run.hashes_of_equals()]


@each("change", [-1, 1])
def test_pages_that_do_not_hold_what_the_footer_counts(tmp_path, change):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": range(100)}), path, use_dictionary=False)
    with ParquetFile.open(path) as file:
        file.footer.chunk(0, 0).num_values += change
        with pytest.raises(NotPlainError):
            pages_of(file, 0, file.footer.columns[0])


@each("version", ["1.0", "2.0"])
def test_a_damaged_page_is_an_error_or_the_same_values(many, tmp_path, version):
    path = tmp_path / "f.parquet"
    pq.write_table(
        many.select(["text"]), path, write_page_checksum=True, use_dictionary=False, data_page_version=version, data_page_size=4000
    )
    whole = path.read_bytes()
    with ParquetFile.open(path) as file:
        column, meta = file.footer.columns[0], file.footer.chunk(0, 0)
        stored = Counter(h for page in pages_of(file, 0, column) for h in page.hashes)
    errors = 0
    for position in range(0, meta.total_compressed_size, 97):
        data = bytearray(whole)
        data[meta.data_page_offset + position] ^= 0x10
        path.write_bytes(data)
        with ParquetFile.open(path) as file:
            try:
                hashes = Counter(h for run in StoredValues(file, (0, 0)).hashes() for h in run)
            except UnreadableError:
                errors += 1
                continue
        assert not stored - hashes
    assert errors > 100


@each("version, use_dictionary", [("1.0", True), ("2.0", False)])
def test_damaged_chunks_without_checksums_are_read_or_refused(many, tmp_path, version, use_dictionary):
    """Headers may lack any field and state any size; the reader raises an error of ours and terminates."""
    path, rng, ends = tmp_path / "f.parquet", np.random.default_rng(5), Counter()
    sizes = {"data_page_size": 500, "dictionary_pagesize_limit": 800, "write_batch_size": 50}
    rows = many.slice(0, 300).select(["text", "int64", "list"])
    pq.write_table(rows, path, use_dictionary=use_dictionary, data_page_version=version, compression="none", **sizes)
    with ParquetFile.open(path) as file:
        chunks = [(column, file.footer.chunk(0, column.index)) for column in file.footer.columns]
    for column, meta in chunks:
        start, end = page_range(meta)
        for _ in range(250):
            data = bytearray(path.read_bytes())
            for at in rng.integers(start, end, rng.integers(1, 4)):
                data[at] = rng.integers(0, 256)
            try:
                for page in PlainChunk(lambda offset, length, data=bytes(data): data[offset : offset + length], column, meta).pages():
                    assert len(page.hashes) == len(page)
                ends["read"] += 1
            except (NotPlainError, UnreadableError) as error:
                ends[type(error)] += 1
    assert min(ends["read"], ends[NotPlainError]) > 30
