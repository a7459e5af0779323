"""What `add_filters` writes: where the bytes stand, which filters there are, how large they are, and what is in them."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from support.samples import ROW_GROUP_ROWS, ROWS, events, filter_at, footer_start, listing, places, write_column, write_events
from support.tables import each


@pytest.fixture
def plain(tmp_path):
    return write_events(tmp_path / "events.parquet")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.parquet"


def i64(value: int) -> bytes:
    return struct.pack("<q", value)


# Where the bytes stand


def test_the_old_file_is_the_prefix_and_filters_and_footer_follow_without_a_gap(plain, out):
    old = plain.read_bytes()
    report = add_filters(plain, ["score", "id"], output=out)
    new = out.read_bytes()
    assert plain.read_bytes() == old
    assert new[: len(old)] == old
    in_order = [(number, column) for number in range(3) for column in ("id", "score")]
    locations = places(out)
    assert sorted(locations, key=lambda key: locations[key].offset) == in_order
    position = len(old)
    for key in in_order:
        assert locations[key].offset == position
        position = locations[key].end
    assert position == footer_start(new)
    assert report.old_bytes == len(old)
    assert report.new_bytes == len(new)


def test_pages_statistics_and_indexes_are_what_they_were(plain, out):
    add_filters(plain, ["id", "tags"], output=out)
    before, after = pq.read_metadata(plain).to_dict(), pq.read_metadata(out).to_dict()
    for metadata in (before, after):
        del metadata["serialized_size"]
        for group in metadata["row_groups"]:
            for chunk in group["columns"]:
                chunk.pop("bloom_filter_offset", None)
                chunk.pop("bloom_filter_length", None)
    assert before == after
    assert pq.read_table(out).equals(events())


# Which filters


def test_every_row_group_gets_a_filter_of_its_own_values(plain, out):
    add_filters(plain, ["id"], output=out)
    locations = places(out)
    assert set(locations) == {(number, "id") for number in range(3)}
    for number in range(3):
        bloom = filter_at(out, locations[number, "id"])
        own = range(number * ROW_GROUP_ROWS, (number + 1) * ROW_GROUP_ROWS)
        assert all(i64(n * 7) in bloom for n in own)
        assert sum(i64(n * 7) in bloom for n in range(ROWS) if n not in own) < 20


def test_a_row_group_without_values_gets_a_filter_of_64_zero_bytes(tmp_path, out):
    path = tmp_path / "gaps.parquet"
    table = events()
    with pq.ParquetWriter(path, table.schema) as writer:
        for part in (table.slice(0, 50), table.slice(0, 0), table.slice(50)):
            writer.write_table(part)
    assert [pq.read_metadata(path).row_group(n).num_rows for n in range(3)] == [50, 0, 250]
    add_filters(path, ["id", "nothing", "tags"], output=out)
    locations = places(out)
    assert len(locations) == 9
    empty = [place for (number, column), place in locations.items() if number == 1 or column == "nothing"]
    assert {bytes(filter_at(out, place).bitset) for place in empty} == {bytes(64)}
    assert pq.read_table(out).equals(table)


def contents(path, column):
    """Header and bitset of the filters of a column."""
    data = path.read_bytes()
    return {key: data[place.offset : place.end] for key, place in places(path).items() if key[1] == column}


def test_existing_filters_are_replaced_only_on_request(plain, out, tmp_path):
    add_filters(plain, ["id", "name"], output=out)
    names = contents(out, "name")
    again = tmp_path / "again.parquet"
    report = add_filters(out, ["id"], output=again, fpp=0.2, rebuild="all")
    assert contents(again, "name") == names
    assert {row.offset for row in report.filters} == {places(again)[n, "id"].offset for n in range(3)}
    assert again.read_bytes()[: plain.stat().st_size] == plain.read_bytes()
    assert again.stat().st_size < out.stat().st_size + 8


def test_column_chunks_that_have_their_filter_are_skipped(plain, out, tmp_path):
    first = add_filters(plain, ["id"], output=out)
    assert (len(first.filters), first.skipped) == (3, 0)
    before = listing(tmp_path)
    for ways in ({"in_place": True}, {"in_place": True, "append": True}, {"dry_run": True}):
        again = add_filters(out, ["id"], **ways)
        assert (again.filters, again.skipped, again.data_bytes_read, again.bytes_added) == ((), 3, 0, 0)
    assert listing(tmp_path) == before
    more = add_filters(out, ["id", "name"], in_place=True)
    assert ({row.column for row in more.filters}, len(more.filters), more.skipped) == ({"name"}, 3, 3)


def test_with_nothing_to_add_the_output_is_an_exact_copy(plain, out, tmp_path):
    add_filters(plain, ["id"], output=out)
    copy = tmp_path / "copy.parquet"
    report = add_filters(out, ["id"], output=copy)
    assert (report.skipped, report.new_bytes) == (3, out.stat().st_size)
    assert copy.read_bytes() == out.read_bytes()


ZEROS = [struct.pack("<d", 0.0), struct.pack("<d", -0.0)]
NANS = [bytes.fromhex("000000000000f87f"), bytes.fromhex("000000000000f8ff")]
ODD_NAN = bytes.fromhex("0100dead0000f47f")


@each(
    "stored, forms",
    [(ZEROS[0], ZEROS), (ZEROS[1], ZEROS), (NANS[0], NANS), (ODD_NAN, [*NANS, ODD_NAN]), (struct.pack("<d", math.inf), []), (i64(1), [])],
)
def test_zeros_and_nans_are_found_in_every_form_where_one_is_stored(tmp_path, stored, forms):
    path = write_column(tmp_path / "v.parquet", pa.array([1.5, *struct.unpack("<d", stored)], pa.float64()))
    add_filters(path, ["v"], in_place=True)
    (place,) = places(path).values()
    bloom = filter_at(path, place)
    assert [form for form in [*ZEROS, *NANS, ODD_NAN] if form in bloom] == forms


# Dry run


def test_a_dry_run_reports_everything_and_writes_nothing(plain, out, tmp_path):
    before = listing(tmp_path)
    stamp = plain.stat().st_mtime_ns
    report = add_filters(plain, ["id", "name"], dry_run=True)
    assert listing(tmp_path) == before
    assert plain.stat().st_mtime_ns == stamp
    assert report.dry_run
    done = add_filters(plain, ["id", "name"], output=out)
    assert (report.filters, report.planned_filters) == ((), len(done.filters))
    assert sum(row.bitset_bytes for row in done.filters) <= report.planned_bytes
    assert report.new_bytes == report.old_bytes
