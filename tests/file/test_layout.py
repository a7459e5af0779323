"""The purpose of each byte range of a file: copies of the metadata that writers store beside the
pages are no leftovers."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from sbbf_tool import add_filters, inspect, remove_filters
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.structs import build_struct
from support.corpus_edits import edit_footer
from support.samples import footer_start, write_events


def test_the_copies_of_polars_are_referenced(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "polars.parquet"
    frame = polars.DataFrame(
        {"id": range(3000), "name": [f"name {number % 50}" for number in range(3000)]}
    )
    frame.write_parquet(path, row_group_size=1000)
    assert inspect(path).unreferenced == ()
    old = path.read_bytes()
    add_filters(path, ["id", "name"], in_place=True)
    assert {unused.kind for unused in inspect(path).unreferenced} == {"superseded footer"}
    remove_filters(path, ["id"], in_place=True, compact=True)
    assert inspect(path).unreferenced == ()
    assert path.read_bytes()[: footer_start(old)] == old[: footer_start(old)]


def with_copies(path: Path, of_column: int = 0, *, relative: bool = False) -> Path:
    """Store a copy of the metadata of a column of the last row group before the footer, as older
    writers do.

    The offsets in the copies of parquet-rs 50 are `relative` to the first byte of the chunk.
    """
    copies = []

    def describe(metadata: FileMetaData) -> None:
        chunk = metadata.row_groups[-1].columns[of_column]
        copy = deepcopy(chunk.meta_data)
        if relative:
            copy.data_page_offset -= copy.dictionary_page_offset
            copy.dictionary_page_offset = 0
        copies.append(build_struct(copy))
        metadata.row_groups[-1].columns[0].file_offset = start

    start = footer_start(path.read_bytes())
    edit_footer(path, describe)
    data = path.read_bytes()
    at = footer_start(data)
    path.write_bytes(data[:start] + copies[0] + data[at:])
    return path


def test_a_copy_behind_the_pages_is_referenced_and_stays(tmp_path):
    path = with_copies(write_events(tmp_path / "events.parquet"))
    assert inspect(path).unreferenced == ()
    data = path.read_bytes()
    add_filters(path, ["id", "name"], in_place=True)
    remove_filters(path, ["id"], in_place=True, compact=True)
    assert inspect(path).unreferenced == ()
    assert path.read_bytes()[: footer_start(data)] == data[: footer_start(data)]
