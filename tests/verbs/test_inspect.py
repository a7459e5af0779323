"""`inspect` reports filters, columns, and unreferenced bytes without decoding a page."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, inspect, remove_filters
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.storage.source import LocalSource
from support.corpus_edits import edit_footer
from support.samples import events, filter_at, footer_start, places
from support.tables import each

LEAVES = ["id", "name", "score", "flag", "nothing", "tags.list.element", "point.x", "point.y"]


@pytest.fixture
def filtered(plain):
    add_filters(plain, ["id", "name", "nothing"], in_place=True)
    return plain


def test_each_filter_is_measured_from_its_own_bits(filtered):
    metadata, rows = pq.read_metadata(filtered), inspect(filtered).filters
    assert {(row.row_group, row.column) for row in rows} == places(filtered).keys()
    for row in rows:
        place = places(filtered)[row.row_group, row.column]
        bloom = filter_at(filtered, place)
        chunk = metadata.row_group(row.row_group).column(LEAVES.index(row.column))
        assert (row.offset, row.stated_length, row.header_bytes + row.bitset_bytes) == (
            place.offset,
            place.length,
            place.length,
        )
        assert (row.blocks, row.fill_ratio, row.estimated_fpp) == (
            bloom.num_blocks,
            bloom.fill_ratio,
            bloom.fpp,
        )
        assert row.estimated_ndv == bloom.estimated_ndv
        assert row.chunk_bytes == chunk.total_compressed_size
        assert row.num_values == chunk.num_values == 100
        assert row.share_of_chunk == place.length / row.chunk_bytes
        if row.column != "nothing":
            assert row.bits_per_value == row.bitset_bytes * 8 / row.estimated_ndv
        assert row.warnings == ()


FIGURES_OF_BITS = dict.fromkeys(("fill_ratio", "estimated_fpp", "estimated_ndv", "bits_per_value"))


@each("stated_length", [True, False])
def test_no_byte_of_a_bitset_is_read(filtered, monkeypatch, stated_length):
    if not stated_length:
        edit_footer(filtered, without_lengths)
    whole = inspect(filtered)
    read = []
    monkeypatch.setattr(
        LocalSource,
        "read",
        lambda self, *place, plain=LocalSource.read: (read.append(place), plain(self, *place))[1],
    )
    report = inspect(filtered, quick=True)
    bitsets = [
        (row.offset + row.header_bytes, row.offset + row.header_bytes + row.bitset_bytes)
        for row in whole.filters
    ]
    assert len(bitsets) == 6
    assert [
        (start, end)
        for start, end in bitsets
        for offset, length in read
        if offset < end and start < offset + length
    ] == []
    headers = {row.offset: row.header_bytes for row in whole.filters}
    assert sum(
        length
        for offset, length in read
        if any(offset in range(start, start + 20) for start in headers)
    ) == sum(headers.values())
    assert report.filters == tuple(
        dataclasses.replace(row, **FIGURES_OF_BITS) for row in whole.filters
    )
    assert report.columns == tuple(
        dataclasses.replace(total, mean_fpp=None) for total in whole.columns
    )
    assert report.unreferenced == ()


def without_lengths(metadata: FileMetaData) -> None:
    for row_group in metadata.row_groups:
        for chunk in row_group.columns:
            chunk.meta_data.bloom_filter_length = None


# Bytes that nothing leads to


def unused(path: Path) -> list[tuple[int, int, str]]:
    return [(entry.offset, entry.length, entry.kind) for entry in inspect(path).unreferenced]


def test_files_of_other_writers_have_no_unused_bytes(fixtures):
    ranges = {path.stem: unused(path) for path in fixtures.glob("*.parquet")}
    assert ranges
    assert {name: places for name, places in ranges.items() if places} == {}


def test_each_kind_of_leftover_is_distinguished(filtered):
    former_places = places(filtered)
    data = filtered.read_bytes()
    remove_filters(filtered, in_place=True)
    assert unused(filtered) == []
    filtered.write_bytes(data)
    add_filters(filtered, ["id"], in_place=True, rebuild="all", append=True)
    ranges = unused(filtered)
    for number in range(3):
        place = former_places[number, "id"]
        assert (place.offset, place.length, "unreferenced filter") in ranges
    assert [kind for _, _, kind in ranges].count("superseded footer") == 2
    assert pq.read_table(filtered).equals(events())


def test_a_long_footer_is_found_too(plain):
    """Longer than the first window of the search."""

    def grow(metadata: FileMetaData) -> None:
        metadata.created_by = "a writer with much to say " * 60_000

    edit_footer(plain, grow)
    data = plain.read_bytes()
    assert len(data) - footer_start(data) > 1 << 20
    add_filters(plain, ["id"], in_place=True)
    assert unused(plain) == [
        (footer_start(data), len(data) - footer_start(data), "superseded footer")
    ]
