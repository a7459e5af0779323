"""`set_filters` changes two fields of the chosen columns, and every other byte of a footer comes
back, known to us or not.

What the splice does is seen through a reader of its own (`wire`), and through the generated
classes, which must read what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parquet import made_footers as made
from parquet import wire
from parquet.made_footers import (
    COLUMNS,
    LENGTH,
    META_DATA,
    OFFSET,
    ROW_GROUPS,
    column_metadata,
    footer_with_column,
)
from parquet.wire import Field, Struct
from sbbf_tool.errors import RefusedError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.splice import FilterPlace, set_filters
from sbbf_tool.parquet.structs import parse_struct
from support.tables import each

PLACE = FilterPlace(1 << 40, 70_000)
Key = tuple[int, int]

at_random = settings(
    max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def is_filter(field: Field) -> bool:
    return (field.id, field.kind) in (OFFSET, LENGTH)


def metadata_of(footer: Struct, key: Key) -> Struct:
    group = wire.find(footer, *ROW_GROUPS).value.values[key[0]]
    return wire.find(wire.find(group, *COLUMNS).value.values[key[1]], *META_DATA).value


def without_filters(footer: Struct, keys: set[Key]) -> Struct:
    """The footer with each of these `ColumnMetaData` replaced by what is in it, filters and the
    form of headers apart."""
    groups = wire.find(footer, *ROW_GROUPS)
    changed_groups = {}
    for number in {row_group for row_group, _ in keys}:
        group = groups.value.values[number]
        chunks = wire.find(group, *COLUMNS)
        changed_chunks = {}
        for index in {column for row_group, column in keys if row_group == number}:
            chunk = chunks.value.values[index]
            meta = wire.find(chunk, *META_DATA)
            remaining = tuple(field.content for field in meta.value if not is_filter(field))
            changed_chunks[index] = wire.replace_field(chunk, meta, remaining)
        changed_groups[number] = wire.replace_field(
            group, chunks, wire.with_elements(chunks, changed_chunks)
        )
    return wire.replace_field(footer, groups, wire.with_elements(groups, changed_groups))


def assert_only_these_filters_changed(
    old: bytes, new: bytes, places: Mapping[Key, FilterPlace | None]
) -> None:
    before, after = wire.read(old), wire.read(new)
    assert without_filters(before, set(places)) == without_filters(after, set(places))
    for key, place in places.items():
        filters = [
            (field.id, field.kind, wire.integer(field.value))
            for field in metadata_of(after, key)
            if is_filter(field)
        ]
        expected = (
            []
            if place is None
            else [(*OFFSET, place.offset)]
            + ([] if place.length is None else [(*LENGTH, place.length)])
        )
        assert sorted(filters) == expected
    assert_generated_classes_read(old, new, places)


def assert_generated_classes_read(
    old: bytes, new: bytes, places: Mapping[Key, FilterPlace | None]
) -> None:
    before, after = parse_struct(FileMetaData, old), parse_struct(FileMetaData, new)
    for (row_group, column), place in places.items():
        was, now = (
            metadata.row_groups[row_group].columns[column].meta_data for metadata in (before, after)
        )
        assert (now.bloom_filter_offset, now.bloom_filter_length) == (place or (None, None))
        now.bloom_filter_offset, now.bloom_filter_length = (
            was.bloom_filter_offset,
            was.bloom_filter_length,
        )
    assert before == after


# Where the two fields stand


PRESENT = {
    "both": (Field(*OFFSET, wire.number(99)), Field(*LENGTH, wire.number(47))),
    "in the middle": (
        Field(*OFFSET, wire.number(99)),
        Field(*LENGTH, wire.number(47)),
        Field(16, wire.STRUCT, ()),
    ),
    "with long headers": (
        Field(*OFFSET, wire.number(99), long=True),
        Field(*LENGTH, wire.number(47), long=True),
    ),
    "only the offset": (Field(*OFFSET, wire.number(99)),),
    "only the length": (Field(*LENGTH, wire.number(47)),),
    "an offset of 0": (Field(*OFFSET, wire.number(0)),),
    "length before offset": (Field(*LENGTH, wire.number(47)), Field(*OFFSET, wire.number(99))),
    "twice, where the last counts": (
        Field(*OFFSET, wire.number(1)),
        Field(*OFFSET, wire.number(99)),
        Field(*LENGTH, wire.number(47)),
    ),
    "with more bytes than needed": (
        Field(*OFFSET, wire.varint(198, padding=3)),
        Field(*LENGTH, wire.varint(94, padding=2)),
    ),
    "beside a list of the same id": (
        Field(*OFFSET, wire.number(99)),
        Field(15, wire.LIST, wire.items(wire.STRUCT, ())),
        Field(*LENGTH, wire.number(47)),
    ),
}


@each("present", PRESENT)
@each("place", [PLACE, FilterPlace(7, None), None])
def test_fields_that_are_there_are_replaced_or_taken_away(present, place):
    raw = footer_with_column(column_metadata(*present))
    assert_only_these_filters_changed(raw, set_filters(raw, {(0, 0): place}), {(0, 0): place})


# At random


@st.composite
def footers_and_places(
    draw: st.DrawFn, *, with_filters: bool
) -> tuple[bytes, dict[Key, FilterPlace]]:
    footer, row_groups, columns = draw(made.footers(with_filters=with_filters))
    places = st.builds(
        FilterPlace, st.integers(1, 2**63 - 1), st.one_of(st.none(), st.integers(0, 2**31 - 1))
    )
    keys = st.tuples(st.integers(0, row_groups - 1), st.integers(0, columns - 1))
    return wire.write(footer), draw(st.dictionaries(keys, places, min_size=1))


@pytest.mark.slow
@at_random
@given(footers_and_places(with_filters=True))
def test_whatever_a_footer_holds_only_the_chosen_filters_change(made_footer):
    raw, places = made_footer
    assert wire.write(wire.read(raw)) == raw
    assert_only_these_filters_changed(raw, set_filters(raw, places), places)
    nowhere = dict.fromkeys(places)
    assert_only_these_filters_changed(raw, set_filters(raw, nowhere), nowhere)


@pytest.mark.slow
@at_random
@given(footers_and_places(with_filters=False))
def test_set_and_taken_away_leaves_the_bytes_that_were_there(made_footer):
    raw, places = made_footer
    assert set_filters(set_filters(raw, places), dict.fromkeys(places)) == raw


# In files that were written by others


def assert_every_chunk_survives(path: Path) -> bool:
    """Set every chunk's filter elsewhere, then back to where it was. False where the footer is
    encrypted."""
    try:
        footer = ParquetFile.open(path).footer
    except RefusedError:
        return False
    keys = [
        (row_group, column.index)
        for row_group in range(footer.num_row_groups)
        for column in footer.columns
    ]
    keys = [key for key in keys if footer.chunk(*key) is not None]
    moved = {key: FilterPlace((1 << 33) + at, 1000 + at) for at, key in enumerate(keys)}
    spliced = set_filters(footer.raw, moved)
    if footer.metadata.encryption_algorithm is None:
        assert_only_these_filters_changed(footer.raw, spliced, moved)
    assert set_filters(spliced, {key: footer.filter_place(*key) for key in keys}) == footer.raw
    return True


def test_footers_of_every_writer_survive(fixtures):
    files = sorted(
        path for path in fixtures.rglob("*.parquet*") if path.is_file() and path.suffix != ".index"
    )
    assert len(files) >= 20
    for path in files:
        assert assert_every_chunk_survives(path) or path.suffix == ".encrypted"
