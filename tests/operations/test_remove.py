"""`remove_filters`: the bytes that were there before, where they still are; else nothing but the fields taken away."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, inspect, remove_filters
from sbbf_tool.reports.remove import RemovedFilter
from support.samples import events, footer_start, listing, places, write_events
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


# Cutting back


@each(
    "layers",
    {
        "one": [["id"]],
        "several at once": [["id", "name", "tags"]],
        "two layers": [["id"], ["name"]],
        "three layers": [["score"], ["id", "tags"], ["name"]],
    },
)
def test_what_was_added_is_cut_off_and_the_file_is_what_it_was(plain, layers):
    old = plain.read_bytes()
    for columns in layers:
        add_filters(plain, columns, in_place=True)
    report = remove_filters(plain, in_place=True)
    assert plain.read_bytes() == old
    assert (report.method, report.new_bytes, report.unreferenced_bytes) == (TRUNCATED, len(old), 0)
    assert {row.column for row in report.filters} == {"tags.list.element" if c == "tags" else c for layer in layers for c in layer}
    assert len(report.filters) == len(set(report.filters)) == 3 * sum(len(layer) for layer in layers)


def test_a_dry_run_says_the_same_and_writes_nothing(plain, tmp_path):
    add_filters(plain, ["id", "name"], in_place=True)
    before = listing(tmp_path)
    for columns, method in (([], TRUNCATED), (["id"], NEW_FOOTER)):
        dry = remove_filters(plain, columns, dry_run=True)
        assert dry.dry_run
        assert dry.method == method
        assert listing(tmp_path) == before
        done = remove_filters(plain, columns, output=tmp_path / "out.parquet")
        assert (dry.filters, dry.new_bytes, dry.unreferenced_bytes) == (done.filters, done.new_bytes, done.unreferenced_bytes)
        assert (tmp_path / "out.parquet").stat().st_size == dry.new_bytes
        (tmp_path / "out.parquet").unlink()


@each("writer", ["spark", "duckdb", "datafusion", "pyarrow"])
def test_added_to_and_cut_off_files_of_every_writer(fixtures, out, tmp_path, writer):
    source = fixtures / f"{writer}-plain.parquet"
    columns = [row.column for row in inspect(source, all_chunks=True).filters if row.row_group == 0 and row.physical_type != "BOOLEAN"]
    add_filters(source, columns, output=out)
    remove_filters(out, in_place=True)
    assert out.read_bytes() == source.read_bytes()


# New footer


def test_one_of_several_columns_leaves_the_filters_of_the_others(plain, out):
    size = plain.stat().st_size
    add_filters(plain, ["name"], output=out)
    only_name = out.read_bytes()
    out.unlink()
    add_filters(plain, ["id", "name"], in_place=True)
    before = contents(plain)
    report = remove_filters(plain, ["id"], output=out)
    assert report.method == NEW_FOOTER
    assert report.filters == tuple(RemovedFilter(n, "id") for n in range(3))
    assert contents(out) == {key: data for key, data in before.items() if key[1] == "name"}
    assert out.read_bytes() == only_name
    assert out.read_bytes()[:size] == plain.read_bytes()[:size]


def test_filters_of_other_writers_are_taken_away(fixtures, out):
    for name in ("spark-filters", "duckdb-filters", "datafusion-filters", "pyarrow-filters", "spark-1000-bytes", "spark-boolean"):
        source = fixtures / f"{name}.parquet"
        report = remove_filters(source, output=out)
        assert report.method == NEW_FOOTER
        assert places(out) == {}
        assert inspect(out).filters == ()
        assert pq.read_table(out).equals(pq.read_table(source))
        assert out.read_bytes()[: source.stat().st_size] == source.read_bytes()
        out.unlink()


# Truncating only where the old footer is verified


def test_a_footer_that_only_looks_like_the_one_before_is_not_cut_back_to(plain, tmp_path):
    """A tail of filters behind a whole other file: that file's footer is not this one without the filters."""
    other_path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"id": range(5)}), other_path)
    add_filters(plain, ["id"], in_place=True)
    data, other_data = plain.read_bytes(), other_path.read_bytes()
    first = min(place.offset for place in places(plain).values())
    # The other file's footer stands where the old one stood; offsets below stay right.
    old_footer = footer_start(data[:first])
    foreign = other_data[footer_start(other_data) :]
    padding = first - old_footer - len(foreign)
    assert padding > 0
    plain.write_bytes(data[:old_footer] + bytes(padding) + foreign + data[first:])
    assert places(plain)
    report = remove_filters(plain, in_place=True)
    assert report.method == NEW_FOOTER
    assert pq.read_table(plain).equals(events())
