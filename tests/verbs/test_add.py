"""What `add_filters` writes: where the bytes stand, which filters there are, how large they are,
and what is in them."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import BloomFilter, add_filters, verify
from sbbf_tool.cli import main
from sbbf_tool.verbs.add_filter import AddReport
from support.samples import (
    build_elsewhere,
    events,
    filter_at,
    footer_start,
    listing,
    places,
    write_column,
    write_events,
)
from support.tables import each


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


# Which filters


def test_a_row_group_without_values_gets_no_filter(tmp_path, out):
    path = tmp_path / "gaps.parquet"
    table = events()
    with pq.ParquetWriter(path, table.schema) as writer:
        for part in (table.slice(0, 50), table.slice(0, 0), table.slice(50)):
            writer.write_table(part)
    assert [pq.read_metadata(path).row_group(n).num_rows for n in range(3)] == [50, 0, 250]
    columns = ["id", "nothing", "tags.list.element"]
    report = add_filters(path, columns, output=out)
    assert (report.without_values, set(places(out))) == (
        5,
        {(number, name) for number in (0, 2) for name in (columns[0], columns[2])},
    )
    assert pq.read_table(out).equals(table)
    assert (
        main(["check", str(out), *(word for name in columns for word in ("--require", name))]) == 0
    )
    assert main(["check", str(path), "--require", "nothing"]) == 0
    again = add_filters(out, columns, in_place=True)
    assert (again.filters, again.skipped, again.without_values) == ((), 4, 5)


def contents(path, column):
    """Header and bitset of the filters of a column."""
    data = path.read_bytes()
    return {
        key: data[place.offset : place.end]
        for key, place in places(path).items()
        if key[1] == column
    }


def test_existing_filters_are_replaced_only_on_request(plain, out, tmp_path):
    add_filters(plain, ["id", "name"], output=out)
    names = contents(out, "name")
    again = tmp_path / "again.parquet"
    report = add_filters(out, ["id"], output=again, fpp=0.2, rebuild="all")
    assert contents(again, "name") == names
    assert {row.offset for row in report.filters} == {
        places(again)[n, "id"].offset for n in range(3)
    }
    assert again.read_bytes()[: plain.stat().st_size] == plain.read_bytes()
    assert again.stat().st_size < out.stat().st_size + 8


def test_column_chunks_that_have_their_filter_are_skipped(plain, out, tmp_path):
    first = add_filters(plain, ["id"], output=out)
    assert (len(first.filters), first.skipped) == (3, 0)
    before = listing(tmp_path)
    for ways in ({"in_place": True}, {"in_place": True, "append": True}, {"dry_run": True}):
        again = add_filters(out, ["id"], **ways)
        assert (again.filters, again.skipped, again.data_bytes_read, again.bytes_added) == (
            (),
            3,
            0,
            0,
        )
    assert listing(tmp_path) == before
    more = add_filters(out, ["id", "name"], in_place=True)
    assert ({row.column for row in more.filters}, len(more.filters), more.skipped) == (
        {"name"},
        3,
        3,
    )


ZEROS = [struct.pack("<d", 0.0), struct.pack("<d", -0.0)]
NANS = [bytes.fromhex("000000000000f87f"), bytes.fromhex("000000000000f8ff")]
ODD_NAN = bytes.fromhex("0100dead0000f47f")


@each(
    "stored, forms",
    [
        (ZEROS[0], ZEROS),
        (ZEROS[1], ZEROS),
        (NANS[0], NANS),
        (ODD_NAN, [*NANS, ODD_NAN]),
        (struct.pack("<d", math.inf), []),
        (i64(1), []),
    ],
)
def test_zeros_and_nans_are_found_in_every_form_where_one_is_stored(tmp_path, stored, forms):
    path = write_column(
        tmp_path / "v.parquet", pa.array([1.5, *struct.unpack("<d", stored)], pa.float64())
    )
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
    assert (
        done.new_bytes - done.old_bytes
        <= report.planned_bytes
        < 3 * (done.new_bytes - done.old_bytes)
    )
    assert report.new_bytes == report.old_bytes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_events(tmp_path / "events.parquet")


def kinds(report: AddReport) -> tuple[int, int, int, int, int]:
    return len(report.filters), report.skipped, report.weaker, report.too_large, report.broken


def make_empty(path: Path, column: str) -> None:
    """Unset all bits of a column's filters."""
    data = bytearray(path.read_bytes())
    for (_, name), place in places(path).items():
        if name == column:
            num_bytes = filter_at(path, place).num_bytes
            data[place.end - num_bytes : place.end] = bytes(num_bytes)
    path.write_bytes(data)


def test_ensure_rebuilds_exactly_those(path: Path):
    add_filters(path, ["id"], fpp=0.3, in_place=True)
    add_filters(path, ["name"], in_place=True)
    make_empty(path, "name")
    add_filters(path, ["score"], in_place=True)
    columns = ["id", "name", "score", "tags.list.element"]
    report = add_filters(path, columns, rebuild="weak", in_place=True)
    assert kinds(report) == (9, 3, 0, 0, 0)
    assert {row.column for row in report.filters} == {"id", "name", "tags.list.element"}
    assert verify(path).is_sound
    assert kinds(add_filters(path, columns, rebuild="weak", in_place=True)) == (0, 12, 0, 0, 0)


@each("fpp", [0.5, 1e-4, 1e-9])
@each("max_bytes", [None, 64, 100])
@each("ndv", [None, 3, 100_000])
def test_a_second_run_finds_nothing_to_do(
    path: Path, fpp: float, max_bytes: int | None, ndv: int | None
):
    columns = ["id", "name", "score", "nothing", "tags.list.element"]
    add_filters(path, columns, fpp=fpp, max_bytes=max_bytes, ndv=ndv, in_place=True)
    assert kinds(
        add_filters(
            path, columns, fpp=fpp, max_bytes=max_bytes, ndv=ndv, rebuild="weak", in_place=True
        )
    ) == (0, 12, 0, 0, 0)


POWERS = {64 << n for n in range(22)}


@each("fpp", [0.3, 0.01, 1e-6])
@each("distinct", [1, 95, 400, 20_000])
def test_the_size_follows_from_the_values_and_the_rate_is_kept(tmp_path, distinct, fpp):
    path = write_column(
        tmp_path / "v.parquet", pa.array([n % distinct for n in range(20_000)], pa.int64())
    )
    (row,) = build_elsewhere(path, ["v"], fpp=fpp).filters
    assert row.bitset_bytes in POWERS
    assert row.fpp <= fpp
    half = sized_exactly(range(distinct), row.bitset_bytes // 2)
    assert row.bitset_bytes == 64 or half.fpp > fpp, "half the size would have done"


def sized_exactly(values, num_bytes: int) -> BloomFilter:
    bloom = BloomFilter.empty(max(32, num_bytes))
    for value in values:
        bloom.insert(i64(value))
    return bloom


def test_values_whose_bytes_take_next_to_nothing_are_still_counted(tmp_path):
    """A million numbers a constant step apart take some hundred bytes: the first guess, from the
    bytes, is too small for them."""
    path = write_column(
        tmp_path / "v.parquet",
        pa.array(range(0, 3 * 10**6, 3), pa.int64()),
        use_dictionary=False,
        column_encoding="DELTA_BINARY_PACKED",
        compression="zstd",
    )
    assert pq.read_metadata(path).row_group(0).column(0).total_compressed_size < 20_000
    (row,) = build_elsewhere(path, ["v"]).filters
    assert row.fpp <= 0.0125
    assert row.estimated_ndv == pytest.approx(10**6, rel=0.05)


def test_a_stated_number_of_values_decides_the_size(tmp_path):
    path = write_column(tmp_path / "v.parquet", pa.array(range(100), pa.int64()))
    sizes = [
        build_elsewhere(path, ["v"], ndv=ndv).filters[0].bitset_bytes
        for ndv in (1, 100, 10_000, 10**6)
    ]
    assert sizes == [64, 256, 16384, 2097152]
