"""`remove_filters`: the bytes that were there before, where they still are; else nothing but the
fields taken away.

Changes of a changed file: a copy leaves out what earlier changes wrote, an append reports it; other
bytes always stay.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, inspect, remove_filters, repair, resize_filters, verify
from sbbf_tool.errors import LockedError, NothingToDoError, RefusedError, UsageError
from sbbf_tool.file.own_tail import find_own_tail
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from sbbf_tool.reports.change import RemovedFilter
from support.corpus_edits import edit_footer
from support.defects import miss_values, unreadable_filter, wrong_block, wrong_length
from support.samples import events, footer_start, places, write_events
from support.tables import each

TRUNCATED, COMPACTED, NEW_FOOTER = "truncated", "compacted", "new footer"


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
    assert {row.column for row in report.filters} == {
        "tags.list.element" if c == "tags" else c for layer in layers for c in layer
    }
    assert (
        len(report.filters) == len(set(report.filters)) == 3 * sum(len(layer) for layer in layers)
    )


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


# Truncating only where the old footer is verified


def test_a_footer_that_only_looks_like_the_one_before_is_not_cut_back_to(plain, tmp_path):
    """A tail of filters behind a whole other file: that file's footer is not this one without the
    filters."""
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


def columns_with_filter(path: Path) -> set[str]:
    return {column for _, column in places(path)}


@each("writer", ["spark", "duckdb", "datafusion", "pyarrow"])
def test_compacting_keeps_rows_and_the_filters_that_stay_and_shrinks_the_file(
    fixtures, out, tmp_path, writer
):
    source = fixtures / f"{writer}-filters.parquet"
    columns = sorted(columns_with_filter(source))
    report = remove_filters(source, columns[:1], output=out, compact=True)
    assert report.method == COMPACTED
    assert report.new_bytes == out.stat().st_size < source.stat().st_size + 8
    assert contents(out) == {
        key: bits for key, bits in contents(source).items() if key[1] != columns[0]
    }
    assert pq.read_table(out).equals(pq.read_table(source))
    unfiltered = tmp_path / "bare.parquet"
    remove_filters(source, output=unfiltered, compact=True)
    assert places(unfiltered) == {}
    assert pq.read_table(unfiltered).equals(pq.read_table(source))


def insert_before_footer(path: Path, blob: bytes) -> int:
    """Put foreign bytes, such as an embedded index, between the data and the footer; return their
    offset."""
    data = path.read_bytes()
    start = footer_start(data)
    path.write_bytes(data[:start] + blob + data[start:])
    return start


BLOBS = {
    "text": b"an index of my own " * 20,
    "zeros": bytes(500),
    "one that looks like a filter": bytes.fromhex("158001 1c1c0000 1c1c0000 1c1c0000 00")
    + bytes(range(64)),
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
    """pyarrow puts filters before the page index, whose place the footer states and compacting does
    not change."""
    options = {"id": {"ndv": 100}, "name": {"ndv": 100, "fpp": 0.1}}
    path = write_events(
        tmp_path / "with.parquet", bloom_filter_options=options, write_page_index=page_index
    )
    stay = {key: bits for key, bits in contents(path).items() if key[1] == "name"}
    num_bytes = sum(len(bits) for key, bits in contents(path).items() if key[1] == "id")
    assert len(stay) == 3
    report = remove_filters(path, ["id"], output=out, compact=True)
    assert contents(out) == stay
    assert (
        report.unreferenced_bytes
        == sum(unused.length for unused in inspect(out).unreferenced)
        == (num_bytes if page_index else 0)
    )
    assert pq.read_table(out).equals(events())


CHANGES: dict[str, Callable[[Path], object]] = {
    "add": lambda path: add_filters(path, "name", in_place=True),
    "append": lambda path: add_filters(path, "name", in_place=True, append=True),
    "replace": lambda path: add_filters(
        path, ["id", "name", "k"], in_place=True, rebuild="all", fpp=0.2
    ),
    "replace by an append": lambda path: add_filters(
        path, "id", in_place=True, rebuild="all", append=True
    ),
    "remove": lambda path: remove_filters(path, "id", in_place=True),
    "resize": lambda path: resize_filters(path, "id", max_bytes=64, force=True, in_place=True),
}


@pytest.fixture
def path(fixtures: Path, tmp_path: Path) -> Path:
    """A file with filters of one column by DataFusion."""
    return Path(shutil.copy(fixtures / "datafusion-one-column.parquet", tmp_path / "file.parquet"))


@each("second", list(CHANGES))
@each("first", list(CHANGES), every=3)
def test_the_bytes_are_those_from_before_the_first_change(
    first: str, second: str, path: Path
) -> None:
    old = path.read_bytes()
    CHANGES[first](path)
    with suppress(RefusedError, NothingToDoError):  # such as a column that has its filter already
        CHANGES[second](path)
    changed = path.read_bytes()
    assert changed != old
    report = remove_filters(path, ours=True, dry_run=True)
    assert (report.old_bytes, report.new_bytes, path.read_bytes()) == (
        len(changed),
        len(old),
        changed,
    )
    remove_filters(path, ours=True, in_place=True)
    assert path.read_bytes() == old
    with pytest.raises(NothingToDoError):
        remove_filters(path, ours=True, in_place=True)


@each("defect", [miss_values, unreadable_filter, wrong_block, wrong_length])
@each("drop", [False, True])
def test_a_wrong_filter_that_a_repair_removed_does_not_come_back(
    defect: Callable[[Path], None], drop: bool, path: Path
) -> None:
    defect(path)
    repair(path, in_place=True, drop=drop)
    add_filters(path, "id", in_place=True, rebuild="all")
    repaired = path.read_bytes()
    for options in ({"in_place": True}, {"dry_run": True}):
        with pytest.raises(RefusedError, match="is wrong, and would come back"):
            remove_filters(path, ours=True, **options)
    assert path.read_bytes() == repaired


def test_a_file_with_locked_columns_is_refused(fixtures: Path, tmp_path: Path) -> None:
    path = Path(
        shutil.copy(
            fixtures / "encrypted" / "java-columns.parquet.encrypted", tmp_path / "x.parquet"
        )
    )
    keys = json.loads((fixtures / "encrypted" / "keys.json").read_text())["keys"]
    old = path.read_bytes()
    add_filters(path, "id", in_place=True, rebuild="all", keys={"keys": keys})
    changed = path.read_bytes()
    with pytest.raises(LockedError):
        remove_filters(
            path,
            ours=True,
            in_place=True,
            keys={"keys": {name: key for name, key in keys.items() if name != "names"}},
        )
    assert path.read_bytes() == changed
    remove_filters(path, ours=True, in_place=True, keys={"keys": keys})
    assert path.read_bytes() == old


def test_columns_are_not_chosen(path: Path) -> None:
    for options in ({"columns": "id"}, {"compact": True}):
        with pytest.raises(UsageError):
            remove_filters(path, ours=True, in_place=True, **options)


@each("ours", [False, True])
def test_a_repeated_footer_of_a_file_without_row_groups_goes(ours: bool, tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    pq.ParquetWriter(path, pa.schema([("id", pa.int64())])).close()
    old = path.read_bytes()
    footer = old[-8 - int.from_bytes(old[-8:-4], "little") :]
    path.write_bytes(old + footer * 2)
    remove_filters(path, ours=ours, in_place=True)
    assert path.read_bytes() == old


def test_a_column_without_a_filter_does_not_keep_others_from_their_change(plain):
    """Fixes of several findings may name a column that another fix has dealt with."""
    add_filters(plain, ["id"], in_place=True)
    assert {
        row.column
        for row in resize_filters(
            plain, ["id", "name"], max_bytes=64, force=True, in_place=True
        ).filters
    } == {"id"}
    remove_filters(plain, ["id", "name"], in_place=True)
    assert not places(plain)


def assert_sound(path: Path) -> None:
    report = verify(path)
    assert report.is_sound
    assert len(report.filters) == len(places(path))
    assert pq.read_table(path).equals(events())


def tail_of(path: Path) -> int:
    with ParquetFile.open(path) as file:
        return find_own_tail(file).start


def change_ten_times(path: Path, **options: bool) -> None:
    add_filters(path, ["id"], in_place=True, fpp=0.001, **options)
    add_filters(path, ["name"], in_place=True, fpp=0.2, **options)
    add_filters(path, ["id", "name", "score"], in_place=True, rebuild="all", fpp=0.0001, **options)
    resize_filters(path, ["id"], fpp=0.1, in_place=True)
    remove_filters(path, ["name"], in_place=True)
    add_filters(path, ["tags"], in_place=True, **options)
    resize_filters(path, ["id", "score"], max_bytes=64, in_place=True)
    add_filters(path, ["score", "tags"], in_place=True, rebuild="all", fpp=0.3, **options)
    remove_filters(path, ["score"], in_place=True)
    add_filters(path, ["id", "name", "score", "tags"], in_place=True, rebuild="all", **options)


@each("append", [False, True])
def test_ten_changes_take_the_bytes_of_one(plain, tmp_path, append):
    old = plain.read_bytes()
    once = tmp_path / "once.parquet"
    add_filters(plain, ["id", "name", "score", "tags"], output=once)
    change_ten_times(plain, append=append)
    if append:
        add_filters(plain, ["id"], in_place=True, rebuild="all")
    assert plain.stat().st_size == once.stat().st_size
    assert_sound(plain)
    assert tail_of(plain) == len(old)
    remove_filters(plain, in_place=True)
    assert plain.read_bytes() == old


# What is not verified stays


def test_a_footer_with_other_metadata_ends_the_tail(plain):
    """Another program wrote a footer of its own: it may remember this length."""
    add_filters(plain, ["id"], in_place=True)
    old = plain.read_bytes()

    def rename(metadata: FileMetaData) -> None:
        metadata.created_by = "another program"

    other_path = plain.with_name("other.parquet")
    other_path.write_bytes(old)
    edit_footer(other_path, rename)
    data = other_path.read_bytes()
    plain.write_bytes(old + data[footer_start(data) :])
    data_before = plain.read_bytes()
    add_filters(plain, ["name"], in_place=True)
    assert plain.read_bytes()[: len(data_before)] == data_before
    assert_sound(plain)


@pytest.mark.slow
@each("length", [104, 184, None])
@each(
    "change",
    {
        "add": lambda path: add_filters(path, ["score"], in_place=True),
        "replace": lambda path: add_filters(path, ["name"], in_place=True, rebuild="all"),
        "resize": lambda path: resize_filters(path, ["name"], max_bytes=64, in_place=True),
        "remove": lambda path: remove_filters(path, ["name"], in_place=True),
        "repair": lambda path: repair(path, in_place=True),
    },
)
def test_a_filter_whose_length_was_changed_later_is_not_cut(plain, length, change):
    for column in ("id", "name"):
        add_filters(plain, [column], in_place=True, append=True)
    with ParquetFile.open(plain) as file:
        place = file.footer.filter_place(0, 0)
        assert place is not None
        raw = set_filters(file.footer.raw, {(0, 0): FilterPlace(place.offset, length)}, None)
        plain.write_bytes(file.source.read(0, file.footer.start) + raw + build_tail(raw))
    assert tail_of(plain) == plain.stat().st_size
    change(plain)
    filters = verify(plain).filters
    assert len(filters) >= 3
    assert not any(checked.false_negatives or checked.problem for checked in filters)
