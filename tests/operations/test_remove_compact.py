"""`remove_filters` with `compact`: known leftovers are removed, and foreign bytes stay where they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, inspect, remove_filters
from support.samples import events, footer_start, places, write_events
from support.tables import each

TRUNCATED, COMPACTED, NEW_FOOTER = "truncated", "compacted", "new footer"


@pytest.fixture
def plain(tmp_path):
    return write_events(tmp_path / "events.parquet")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.parquet"


def contents(path: Path) -> dict[tuple[int, str], bytes]:
    """Header and bitset of every filter."""
    data = path.read_bytes()
    return {key: data[place.offset : place.end] for key, place in places(path).items()}


def columns_with_filter(path: Path) -> set[str]:
    return {column for _, column in places(path)}


@each("writer", ["spark", "duckdb", "datafusion", "pyarrow"])
def test_compacting_keeps_rows_and_the_filters_that_stay_and_shrinks_the_file(fixtures, out, tmp_path, writer):
    source = fixtures / f"{writer}-filters.parquet"
    columns = sorted(columns_with_filter(source))
    report = remove_filters(source, columns[:1], output=out, compact=True)
    assert report.method == COMPACTED
    assert report.new_bytes == out.stat().st_size < source.stat().st_size + 8
    assert contents(out) == {key: bits for key, bits in contents(source).items() if key[1] != columns[0]}
    assert pq.read_table(out).equals(pq.read_table(source))
    unfiltered = tmp_path / "bare.parquet"
    remove_filters(source, output=unfiltered, compact=True)
    assert places(unfiltered) == {}
    assert pq.read_table(unfiltered).equals(pq.read_table(source))


def test_filters_between_row_groups_stay_where_they_are(fixtures, out):
    source = fixtures / "datafusion-filters.parquet"
    before = places(source)
    last_page = max(end_of_pages(source))
    between = {key: place for key, place in before.items() if place.end <= last_page}
    assert between
    column = sorted(columns_with_filter(source))[0]
    remove_filters(source, [column], output=out, compact=True)
    after = places(out)
    for key, place in between.items():
        if key[1] != column:
            assert after[key] == place
    assert out.read_bytes()[:last_page] == source.read_bytes()[:last_page]


def end_of_pages(path: Path) -> list[int]:
    metadata = pq.read_metadata(path)
    chunks = [metadata.row_group(n).column(at) for n in range(metadata.num_row_groups) for at in range(metadata.num_columns)]
    return [min(filter(None, (c.data_page_offset, c.dictionary_page_offset))) + c.total_compressed_size for c in chunks]


def insert_before_footer(path: Path, blob: bytes) -> int:
    """Put foreign bytes, such as an embedded index, between the data and the footer; return their offset."""
    data = path.read_bytes()
    start = footer_start(data)
    path.write_bytes(data[:start] + blob + data[start:])
    return start


BLOBS = {
    "text": b"an index of my own " * 20,
    "zeros": bytes(500),
    "one that looks like a filter": bytes.fromhex("158001 1c1c0000 1c1c0000 1c1c0000 00") + bytes(range(64)),
    "one that ends in the magic": b"mine" * 10 + b"PAR1",
}


@each("blob", BLOBS)
@each("when", ["before any filter", "between filters and footer"])
def test_foreign_bytes_stay_where_they_are(plain, tmp_path, blob, when):
    """A key-value entry may lead to them; only its owner can know."""
    if when == "before any filter":
        offset = insert_before_footer(plain, blob)
        add_filters(plain, ["id", "name"], in_place=True)
    else:
        add_filters(plain, ["id", "name"], in_place=True)
        offset = insert_before_footer(plain, blob)
    for columns in (["id"], []):
        out = tmp_path / f"out{len(columns)}.parquet"
        remove_filters(plain, columns, output=out, compact=True)
        assert out.read_bytes()[offset : offset + len(blob)] == blob
        assert columns_with_filter(out) == {"name"} - ({"name"} if not columns else set())
        assert pq.read_table(out).equals(events())


@each("page_index", [False, True])
def test_filters_before_foreign_bytes_stay_and_are_reported(tmp_path, out, page_index):
    """pyarrow puts filters before the page index, whose place the footer states and compacting does not change."""
    options = {"id": {"ndv": 100}, "name": {"ndv": 100, "fpp": 0.1}}
    path = write_events(tmp_path / "with.parquet", bloom_filter_options=options, write_page_index=page_index)
    stay = {key: bits for key, bits in contents(path).items() if key[1] == "name"}
    num_bytes = sum(len(bits) for key, bits in contents(path).items() if key[1] == "id")
    assert len(stay) == 3
    report = remove_filters(path, ["id"], output=out, compact=True)
    assert contents(out) == stay
    assert report.unreferenced_bytes == sum(unused.length for unused in inspect(out).unreferenced) == (num_bytes if page_index else 0)
    assert pq.read_table(out).equals(events())
