"""Changes of a changed file: a copy leaves out what earlier changes wrote, an append reports it; other bytes always stay."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, remove_filters, repair, resize_filters, verify
from sbbf_tool.file.own_tail import find_own_tail
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.footer import build_tail
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from support.corpus_edits import edit_footer
from support.samples import events, footer_start, places
from support.tables import each


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
    resize_filters(path, ["id", "score"], num_bytes=64, in_place=True)
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
        "resize": lambda path: resize_filters(path, ["name"], num_bytes=64, in_place=True),
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
