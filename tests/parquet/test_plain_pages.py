"""The values of a chunk from its dictionary and its PLAIN pages: the same that decoding every page
gives, and nothing read for naught."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool import UnreadableError
from sbbf_tool.file.chunk_hashes import StoredValues
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.comparison import Pairs
from sbbf_tool.parquet.levels import count_highest
from sbbf_tool.parquet.pages import ChunkPages, page_range, read_pages
from sbbf_tool.parquet.plain_page import PlainPage
from sbbf_tool.parquet.plain_pages import NotPlainError, PlainChunk, may_be_plain
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


# --- Whole chunks ---


def pages_of(file: ParquetFile, row_group: int, column) -> list[PlainPage]:
    meta = file.footer.chunk(row_group, column.index)
    chunk = PlainChunk(ChunkPages(meta, file.source.read_up_to, open), column)
    return [page for page in chunk.pages() if isinstance(page, PlainPage)]


def stream_counts(file: ParquetFile, row_group: int, column) -> Counter[int]:
    return Counter(
        h
        for run in read_chunk(file.footer, row_group, column, file.pages(row_group, column))
        for h in run.hashes()
    )


@pytest.fixture(scope="module")
def many():
    """Values in every kind of page: distinct ones outgrow a dictionary; nulls and lists put levels
    before them."""
    rng = np.random.default_rng(2)
    some = rng.integers(0, 4000, ROWS)
    nulls = rng.random(ROWS) < 0.3
    table = pa.table(
        {
            "text": pa.array(np.arange(ROWS).astype("U"), mask=nulls),
            "int64": pa.array(some, mask=nulls),
            "int32": some.astype("i4"),
            "double": pa.array(some - 2000.0, mask=some % 5 == 0),
            "fixed": pa.array([b"%06d" % value for value in some], pa.binary(6)),
            "list": pa.array(
                [[int(value), None] * int(value % 4) if value % 7 else None for value in some]
            ),
            "struct": pa.array(
                [{"a": int(value) if value % 3 else None} if value % 5 else None for value in some]
            ),
            "halves": pa.array([None] * (ROWS // 2) + list(range(ROWS - ROWS // 2)), pa.int64()),
            "null": pa.array([None] * ROWS, pa.string()),
            "blocks": pa.array(some, mask=(np.arange(ROWS) // 100) % 2 == 0),
        }
    )
    return table.cast(
        pa.schema(
            [field.with_nullable(field.name not in ("int32", "fixed")) for field in table.schema]
        )
    )


@each(
    "codec, version, checksums",
    [*((codec, "2.0", True) for codec in CODECS), ("none", "1.0", True), ("zstd", "1.0", False)],
)
def test_pages_without_a_dictionary_hold_what_the_stream_does(
    many, tmp_path, codec, version, checksums
):
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
            assert Counter(h for page in pages for h in page.hashes) == stream_counts(
                file, row_group, column
            )
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
    pq.write_table(
        pa.table({"x": values}),
        path,
        use_dictionary=False,
        column_encoding={"x": encoding},
        version="2.6",
    )
    with ParquetFile.open(path) as file:
        column = file.footer.columns[0]
        assert not may_be_plain(column, file.footer.chunk(0, 0))
        with pytest.raises(NotPlainError):
            pages_of(file, 0, column)
        chunk = StoredValues(file, (0, 0))
        assert Counter(h for run in chunk.hashes() for h in run) - Counter(
            chunk_equals(file)
        ) == stream_counts(file, 0, column)
        assert chunk.count == 100
        assert chunk.bytes_read == file.footer.chunk(0, 0).total_compressed_size


def chunk_equals(file: ParquetFile) -> list[int]:
    column = file.footer.columns[0]
    return [
        h
        for run in read_chunk(file.footer, 0, column, file.pages(0, column))
        for h in run.hashes_of_equals()
    ]


@each("use_dictionary", [True, False])
def test_only_equal_bytes_are_equal(many, tmp_path, use_dictionary):
    """Each value is compared with each of some forms, whatever their hashes are: those of its own
    length, of others, and none."""
    path = tmp_path / "f.parquet"
    pq.write_table(many, path, use_dictionary=use_dictionary)
    with ParquetFile.open(path) as file:
        for column in file.footer.columns:
            pages = file.pages(0, column)
            for values in read_chunk(file.footer, 0, column, pages):
                stored = [values[at] for at in range(0, len(values), 97)]
                ensure_compared(values, range(0, len(values), 97), stored)
            page = next(PlainChunk(pages, column).pages())
            stored = values_in(page)[:50]
            if stored:
                ensure_compared(page, range(50), stored)


def values_in(page: PlainPage) -> list[bytes]:
    plain, values = bytes(page.plain), []
    while plain:
        start, end = 0, page.column.width
        if end is None:
            start, end = 4, 4 + int.from_bytes(plain[:4], "little")
        values.append(plain[start:end])
        plain = plain[end:]
    return values


def ensure_compared(values, places, stored: list[bytes]) -> None:
    others = [bytes(len(stored[0])), stored[0][:-1] + b"~"]
    forms = list(dict.fromkeys([*stored[::3], *others]))
    if values.column.width is None:
        forms += [b"", stored[0] + b"0", stored[0][:-1]]
    both = list(itertools.product(range(len(stored)), range(len(forms))))
    pairs = Pairs(
        np.array([places[at] for at, _ in both]), forms, np.array([number for _, number in both])
    )
    expected = [stored[at] == forms[number] for at, number in both]
    assert values.are_equal(pairs).tolist() == expected


@each("change", [-1, 1])
def test_pages_that_do_not_hold_what_the_footer_counts(tmp_path, change):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": range(100)}), path, use_dictionary=False)
    with ParquetFile.open(path) as file:
        file.footer.chunk(0, 0).num_values += change
        with pytest.raises(NotPlainError):
            pages_of(file, 0, file.footer.columns[0])


@pytest.mark.slow
@each("version", ["1.0", "2.0"])
def test_a_damaged_page_is_an_error_or_the_same_values(many, tmp_path, version):
    path = tmp_path / "f.parquet"
    pq.write_table(
        many.select(["text"]),
        path,
        write_page_checksum=True,
        use_dictionary=False,
        data_page_version=version,
        data_page_size=4000,
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
def test_damaged_chunks_without_checksums_are_read_or_refused(
    many, tmp_path, version, use_dictionary
):
    """Headers may lack any field and state any size; the reader raises an error of ours and
    terminates."""
    path, rng, ends = tmp_path / "f.parquet", np.random.default_rng(5), Counter()
    sizes = {"data_page_size": 500, "dictionary_pagesize_limit": 800, "write_batch_size": 50}
    rows = many.slice(0, 300).select(["text", "int64", "list"])
    pq.write_table(
        rows,
        path,
        use_dictionary=use_dictionary,
        data_page_version=version,
        compression="none",
        **sizes,
    )
    with ParquetFile.open(path) as file:
        chunks = [(column, file.footer.chunk(0, column.index)) for column in file.footer.columns]
    for column, meta in chunks:
        start, end = page_range(meta)
        for _ in range(250):
            data = bytearray(path.read_bytes())
            for at in rng.integers(start, end, rng.integers(1, 4)):
                data[at] = rng.integers(0, 256)
            try:
                chunk = ChunkPages(
                    meta,
                    lambda offset, length, data=bytes(data): data[offset : offset + length],
                    open,
                )
                for page in PlainChunk(chunk, column).pages():
                    places, numbers = (page.rows, page) if isinstance(page, PlainPage) else page()
                    assert len(numbers) == len(places() if places else page.hashes)
                ends["read"] += 1
            except (NotPlainError, UnreadableError) as error:
                ends[type(error)] += 1
    assert min(ends["read"], ends[NotPlainError]) > 30


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def repeated(level: int, count: int, width: int) -> bytes:
    return varint(count << 1) + level.to_bytes((width + 7) // 8, "little")


def packed(levels: list[int], width: int) -> bytes:
    """Groups of eight, the last filled up with zeros."""
    groups = -(-len(levels) // 8)
    bits = sum(level << at * width for at, level in enumerate(levels))
    return varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, bytes, list[int]]:
    highest = draw(st.integers(1, 300))
    width = highest.bit_length()
    raw, levels = b"", []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            level, count = draw(st.integers(0, highest)), draw(st.integers(1, 2000))
            raw += repeated(level, count, width)
            levels += [level] * count
        else:
            some = draw(
                st.lists(
                    st.one_of(st.just(highest), st.integers(0, highest)), min_size=8, max_size=80
                )
            )
            some = some[: len(some) // 8 * 8]
            raw += packed(some, width)
            levels += some
    return highest, raw, levels


@given(runs(), st.data())
def test_any_runs(sample, data):
    highest, raw, levels = sample
    count = data.draw(st.integers(0, len(levels)))
    assert count_highest(memoryview(raw), highest, count) == levels[:count].count(highest)
    with pytest.raises(ValueError, match="end early"):
        count_highest(memoryview(raw), highest, len(levels) + 1)


@each(
    "raw, highest, count, answer",
    [
        (b"\x03\x07", 1, 3, 3),  # the last group may be cut to the bytes that it needs
        (b"\x05\xff\x01", 1, 9, 9),
        (b"\x05\xff", 1, 9, None),
        (b"\x05\xff\xff\xff", 3, 12, 12),
        (b"\x05\xff\xff\xff", 3, 13, None),
        *(
            (repeated(1, n, 1), 1, n, n) for n in (1, 63, 64, 127, 128, 8191, 8192, 1 << 20)
        ),  # headers of one to four bytes
        *((repeated(0, n, 1) + repeated(1, 1, 1), 1, n + 1, 1) for n in (1, 63, 64, 8192)),
        (b"", 0, 7, 7),  # a column that stores no levels
        *(
            (empty + repeated(1, 4, 1), 1, 4, None) for empty in (b"\x01", b"\x00\x01")
        ),  # a run of no levels
        *(
            (raw, 1, 4, None)
            for raw in (b"", b"\x80", b"\x80" * 6 + b"\x01", b"\x00\x01", b"\x08", b"\x01")
        ),
    ],
)
def test_runs_of_known_levels(raw, highest, count, answer):
    if answer is None:
        with pytest.raises(ValueError, match="levels end early"):
            count_highest(memoryview(raw), highest, count)
    else:
        assert count_highest(memoryview(raw), highest, count) == answer


@pytest.fixture
def file_of_many_pages(tmp_path: Path) -> Path:
    path = tmp_path / "f.parquet"
    values = pa.array(["long " * 40_000, *(f"value {n}" for n in range(5000))])
    pq.write_table(
        pa.table({"v": values}),
        path,
        data_page_size=2000,
        write_batch_size=100,
        dictionary_pagesize_limit=210_000,
    )
    return path


@each("junk", [b"\xff" * 64, b"\x00" * 64, b"\x1c\x1c"])
def test_an_invalid_page_header_is_reported_with_its_place(
    file_of_many_pages: Path, junk: bytes
) -> None:
    with ParquetFile.open(file_of_many_pages) as file:
        chunk = file.footer.chunk(0, 0)
        assert chunk is not None
        start, end = page_range(chunk)
    content = bytearray(file_of_many_pages.read_bytes())
    content[start : start + len(junk)] = junk

    with pytest.raises(UnreadableError) as caught:
        list(
            read_pages(
                lambda offset, length: bytes(content[offset : min(offset + length, end)]), chunk
            )
        )
    assert caught.value.place == f"page header at byte {start:,}"
