"""Pages and footers that other readers read and pyarrow does not, or only in part: filters are
added, verified and right."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, check, explain, probe, verify
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.idl.ttypes import CompressionCodec, FileMetaData, PageHeader, PageType
from sbbf_tool.parquet.pages import page_range, read_page
from sbbf_tool.parquet.structs import build_struct
from support.corpus_edits import edit_footer
from support.tables import each

NAMES = pa.array([f"name {number % 300}" for number in range(2000)])
GAPS = pa.array(
    [None if number < 1000 or number % 7 == 0 else number for number in range(2000)], pa.int64()
)
TEXT_GAPS = GAPS.cast(pa.string())
LISTS = pa.array([[], None, [1, None], [], [2, 3]] * 200, pa.list_(pa.int32()))
LZ4 = pa.Codec("lz4_raw")

Change = Callable[[PageHeader, bytes], list[tuple[PageHeader, bytes]]]
ChangeMeta = Callable[[Any, list[tuple[PageHeader, int, int]]], None]


def level_bytes(header: PageHeader) -> int:
    """Return the bytes of the levels at the beginning of a page: those of version 2, or of
    definition levels alone before no values."""
    data = header.data_page_header_v2
    return (
        0
        if data is None
        else data.repetition_levels_byte_length + data.definition_levels_byte_length
    )


def as_it_is(header: PageHeader, body: bytes) -> list[tuple[PageHeader, bytes]]:
    return [(header, body)]


def with_empty_pages(header: PageHeader, body: bytes) -> list[tuple[PageHeader, bytes]]:
    """Add a page without values before each data page."""
    if header.type == PageType.DICTIONARY_PAGE:
        return [(header, body)]
    empty = copy.deepcopy(header)
    (empty.data_page_header_v2 or empty.data_page_header).num_values = 0
    if empty.data_page_header_v2 is not None:
        data = empty.data_page_header_v2
        data.num_rows = data.num_nulls = data.repetition_levels_byte_length = (
            data.definition_levels_byte_length
        ) = 0
        data.is_compressed = False
    empty.compressed_page_size = empty.uncompressed_page_size = 0
    return [(empty, b""), (header, body)]


def without_values_of_nulls(header: PageHeader, body: bytes) -> list[tuple[PageHeader, bytes]]:
    """Leave out what is stored after the levels of a page of nulls alone: encodings of differences
    begin with a header."""
    data = header.data_page_header_v2
    if data is not None and data.num_nulls == data.num_values:
        body = body[: level_bytes(header)]
    elif (
        data is None and header.data_page_header is not None and body[:4] == b"\x02\0\0\0"
    ) or len(body) < 30:
        body = body[: 4 + int.from_bytes(body[:4], "little")]
    header.uncompressed_page_size = header.compressed_page_size = len(body)
    return [(header, body)]


def in_blocks_of_hadoop(size: int) -> Change:
    """Compress pages as Hadoop's streams do, in blocks of at most this many bytes."""

    def change(header: PageHeader, body: bytes) -> list[tuple[PageHeader, bytes]]:
        levels, values = body[: level_bytes(header)], body[level_bytes(header) :]
        blocks = [
            LZ4.compress(values[at : at + size], asbytes=True) for at in range(0, len(values), size)
        ]
        stored = (
            levels
            + struct.pack(">I", len(values))
            + b"".join(struct.pack(">I", len(block)) + block for block in blocks)
        )
        header.compressed_page_size = len(stored)
        if header.data_page_header_v2 is not None:
            header.data_page_header_v2.is_compressed = True
        return [(header, stored)]

    return change


def stated_as_lz4(meta: Any, pages: object) -> None:
    meta.codec = CompressionCodec.LZ4


def without_path(meta: Any, pages: object) -> None:
    meta.path_in_schema = None


def without_header_of_dictionary(meta: Any, pages: list[tuple[PageHeader, int, int]]) -> None:
    meta.total_compressed_size -= pages[0][1]


def without_dictionary(meta: Any, pages: list[tuple[PageHeader, int, int]]) -> None:
    meta.total_compressed_size -= pages[0][2]


def larger(meta: Any, pages: object) -> None:
    """Without statistics of encodings, every page header is looked at."""
    meta.total_compressed_size += 23
    meta.encoding_stats = None


def rewrite(path: Path, change: Change, change_meta: ChangeMeta | None) -> Path:
    """Rewrite the pages and the metadata of the one column chunk of a file that is not
    compressed."""
    content = path.read_bytes()

    def edit(metadata: FileMetaData) -> None:
        nonlocal content
        meta = metadata.row_groups[0].columns[0].meta_data
        position, end = page_range(meta)
        body, written = bytearray(), []
        while position < end:
            page_at = read_page(
                lambda offset, length: content[offset : offset + length], position, end
            )
            header, position = page_at.header, page_at.end
            header.crc = None
            for new_header, page in change(
                header, content[position - header.compressed_page_size : position]
            ):
                raw = build_struct(new_header)
                written.append((new_header, len(raw), len(raw) + len(page)))
                body += raw + page
        if meta.dictionary_page_offset:
            meta.data_page_offset = 4 + written[0][2]
        meta.total_compressed_size = len(body)
        content = b"PAR1" + bytes(body) + bytes(23)
        if change_meta is not None:
            change_meta(meta, written)

    edit_footer(path, edit)
    tail = path.read_bytes()
    length = int.from_bytes(tail[-8:-4], "little")
    path.write_bytes(content + tail[-8 - length :])
    return path


DELTAS = {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 100}
PLAIN = {"use_dictionary": False, "data_page_size": 1000, "write_batch_size": 100}
NUMBERS_BY_DIFFERENCE = DELTAS | {"column_encoding": "DELTA_BINARY_PACKED"}
CASES: dict[str, tuple[pa.Array, dict[str, Any], Change, ChangeMeta | None]] = {
    "no path_in_schema": (NAMES, {}, as_it_is, without_path),
    "a size without the dictionary's header": (NAMES, {}, as_it_is, without_header_of_dictionary),
    "a size without the dictionary": (NAMES, {}, as_it_is, without_dictionary),
    "a size beyond the pages": (NAMES, {}, as_it_is, larger),
    "a size beyond plain pages": (NAMES, PLAIN, as_it_is, larger),
    "a size beyond pages of differences": (
        TEXT_GAPS,
        DELTAS | {"column_encoding": "DELTA_BYTE_ARRAY"},
        as_it_is,
        larger,
    ),
    "empty pages after a dictionary": (
        NAMES,
        {"data_page_size": 100, "write_batch_size": 100},
        with_empty_pages,
        None,
    ),
    "empty pages": (NAMES, PLAIN, with_empty_pages, None),
    "empty pages of differences": (GAPS, NUMBERS_BY_DIFFERENCE, with_empty_pages, None),
    "empty pages of lists": (LISTS, PLAIN, with_empty_pages, None),
    "nulls alone, v1": (GAPS, NUMBERS_BY_DIFFERENCE, without_values_of_nulls, None),
    "nulls alone, v2": (
        GAPS,
        NUMBERS_BY_DIFFERENCE | {"data_page_version": "2.0"},
        without_values_of_nulls,
        None,
    ),
    **{
        f"nulls alone, v2, {encoding}": (
            TEXT_GAPS,
            DELTAS | {"column_encoding": encoding, "data_page_version": "2.0"},
            without_values_of_nulls,
            None,
        )
        for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
    },
    "one block of Hadoop": (NAMES, PLAIN, in_blocks_of_hadoop(1 << 20), stated_as_lz4),
    "blocks of Hadoop": (NAMES, PLAIN, in_blocks_of_hadoop(100), stated_as_lz4),
    "blocks of Hadoop, dictionary": (NAMES, {}, in_blocks_of_hadoop(100), stated_as_lz4),
    "blocks of Hadoop, v2": (
        NAMES,
        PLAIN | {"data_page_version": "2.0"},
        in_blocks_of_hadoop(100),
        stated_as_lz4,
    ),
    "blocks of Hadoop, differences": (
        GAPS,
        NUMBERS_BY_DIFFERENCE,
        in_blocks_of_hadoop(20),
        stated_as_lz4,
    ),
    "blocks of Hadoop, lists": (
        LISTS,
        {"use_dictionary": False},
        in_blocks_of_hadoop(100),
        stated_as_lz4,
    ),
}


def make(path: Path, case: str) -> pa.Array:
    values, options, change, change_meta = CASES[case]
    pq.write_table(pa.table({"v": values}), path, compression="none", store_schema=False, **options)
    rewrite(path, change, change_meta)
    edit_footer(path, lambda metadata: setattr(metadata, "created_by", "another version 1.0.0"))
    return values


@pytest.mark.slow
@each("case", list(CASES))
def test_filters_of_odd_pages_hold_every_value(tmp_path: Path, case: str) -> None:
    path = tmp_path / "f.parquet"
    values = make(path, case)
    name = "v.list.element" if pa.types.is_list(values.type) else "v"
    stored = (values.flatten() if pa.types.is_list(values.type) else values).drop_null()
    report = add_filters(path, [name], output=tmp_path / "g.parquet")
    assert report.not_cross_checked == 0
    (verification,) = verify(tmp_path / "g.parquet").filters
    assert (verification.problem, verification.false_negatives, verification.verified_values) == (
        None,
        0,
        len(stored),
    )
    checked = check(tmp_path / "g.parquet")
    assert (checked.unreadable, checked.failed) == ((), False)
    distinct = stored.unique().to_pylist()
    assert not any(
        value.is_absent for value in probe(tmp_path / "g.parquet", name, distinct).values
    )
    assert not any(explain(tmp_path / "g.parquet", name, value).absent for value in distinct[:3])


def test_values_without_compression_have_their_stated_length(tmp_path: Path) -> None:
    """The bytes after a page are none of its values."""

    def cut(header: PageHeader, body: bytes) -> list[tuple[PageHeader, bytes]]:
        header.data_page_header_v2.is_compressed = False
        header.compressed_page_size -= 8
        return [(header, body[:-8])]

    path = tmp_path / "f.parquet"
    options = {"use_dictionary": False, "compression": "none", "data_page_version": "2.0"}
    pq.write_table(pa.table({"v": range(100)}), path, **options)
    rewrite(path, cut, None)
    with pytest.raises(UnreadableError):
        add_filters(path, ["v"], in_place=True)


@each("version", ["1.0", "2.0"])
def test_an_index_beyond_the_dictionary_is_an_error(tmp_path: Path, version: str) -> None:
    def index_all(index: int) -> Change:
        def change(header: PageHeader, body: bytes) -> list[tuple[PageHeader, bytes]]:
            if header.type != PageType.DICTIONARY_PAGE:
                # a width of two bits, and a run of 60 indices
                body = bytes((2, 60 << 1, index))
                header.uncompressed_page_size = header.compressed_page_size = len(body)
            return [(header, body)]

        return change

    schema = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    table = pa.table({"v": [5, 6, 7] * 20}, schema=schema)
    path = tmp_path / "f.parquet"
    for index in (2, 3):
        pq.write_table(table, path, compression="none", data_page_version=version)
        rewrite(path, index_all(index), None)
        report = probe(path, "v", [7], confirm=True)
        assert (bool(report.hits), bool(report.unreadable)) == (index == 2, index == 3)


@pytest.mark.engines
@each("case", [case for case in CASES if case.startswith("a size") or "Hadoop" in case])
def test_duckdb_reads_odd_pages(tmp_path: Path, case: str) -> None:
    """Other tests read the odd parts of these files."""
    values = make(tmp_path / "f.parquet", case)
    assert [
        row for (row,) in duckdb.sql(f"SELECT v FROM '{tmp_path}/f.parquet'").fetchall()
    ] == values.to_pylist()
