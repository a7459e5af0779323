"""A filter that footer, header or another part of the file contradicts excludes nothing, whichever
command queries it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool import RefusedError
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.idl.ttypes import FileMetaData, LogicalType, VariantType
from sbbf_tool.parquet.splice import FilterPlace
from support.corpus_edits import edit_footer
from support.defects import SIZE, SOUND, Edit
from support.tables import each


def edited(change: Callable[[Edit], None]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        edit = Edit()
        change(edit)
        edit.write(path)

    return write


def with_footer(change: Callable[[FileMetaData], None]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(SOUND.read_bytes())
        edit_footer(path, change)

    return write


def halve_header(path: Path) -> None:
    place = Edit().place(0, "id")
    data = bytearray(SOUND.read_bytes())
    header = build_header(SIZE // 2)
    assert len(header) == len(build_header(SIZE))
    data[place.offset : place.offset + len(header)] = header
    path.write_bytes(data)


def lengthen_pages(metadata: FileMetaData) -> None:
    """Let the pages of the last column reach into the filter."""
    meta = metadata.row_groups[1].columns[3].meta_data
    place = Edit().place(0, "id")
    meta.total_compressed_size = place.offset + 20 - meta.data_page_offset


def name_other_file(metadata: FileMetaData) -> None:
    for chunk in metadata.row_groups[0].columns:
        chunk.file_path = "other.parquet"


def reach_in(edit: Edit) -> None:
    """Let the filter before state bytes up to the one of `id`, or that one up to the filter
    before."""
    places = sorted(
        (edit.place(group, column), group, column)
        for group in (0, 1)
        for column in ("id", "name", "tag")
    )
    mine = edit.place(0, "id")
    before = [entry for entry in places if entry[0].offset < mine.offset]
    if before:
        place, group, column = before[-1]
        edit.set_place(group, column, FilterPlace(place.offset, mine.offset + 1 - place.offset))
    else:
        after = next(entry for entry in places if entry[0].offset > mine.offset)
        edit.set_place(after[1], after[2], FilterPlace(mine.offset + 20, None))


CONTRADICTIONS = {
    "the header states half the bytes": halve_header,
    "the footer states the bitset alone": edited(
        lambda edit: edit.set_place(0, "id", edit.place(0, "id")._replace(length=SIZE))
    ),
    "the footer states too many bytes": edited(
        lambda edit: edit.set_place(0, "id", edit.place(0, "id")._replace(length=3 * SIZE))
    ),
    "two columns have one filter": edited(
        lambda edit: edit.set_place(0, "id", edit.place(0, "name"))
    ),
    "two row groups have one filter": edited(
        lambda edit: edit.set_place(0, "id", edit.place(1, "id"))
    ),
    "one filter reaches into the other": edited(reach_in),
    "pages reach into the filter": with_footer(lengthen_pages),
    "the chunk is in another file": with_footer(name_other_file),
}


@each("write", CONTRADICTIONS)
def test_a_contradicted_filter_excludes_nothing(write: Callable[[Path], None], tmp_path: Path):
    path = tmp_path / "a.parquet"
    write(path)
    absent = 10**15 + 7
    report = sbbf_tool.probe(path, "id", [absent], filters_only=True)
    answer = report.values[0].row_groups[0]
    assert answer.answer == "cannot say"
    assert answer.reason
    assert report.inconclusive
    explanation = sbbf_tool.explain(path, "id", absent)
    assert explanation.row_groups[0].filter == "cannot say"
    assert all(engine.steps[0] != "filter" for engine in explanation.engines)
    stored = Edit().values(0, "id")[3]
    assert 0 in {
        number
        for file in sbbf_tool.prune(path, "id", [int.from_bytes(stored, "little")]).files
        for number in file.row_groups
    }
    if write is not CONTRADICTIONS["the chunk is in another file"]:
        with pytest.raises(RefusedError):
            sbbf_tool.resize_filters(path, ["id"], fpp=0.5, output=tmp_path / "b.parquet")
        assert any(finding.severity == "error" for finding in sbbf_tool.check(path).findings)


def test_a_chunk_may_name_its_own_file(tmp_path: Path):
    def name(metadata: FileMetaData) -> None:
        for group in metadata.row_groups:
            for chunk in group.columns:
                chunk.file_path = "./a.parquet" if chunk is group.columns[0] else "a.parquet"

    with_footer(name)(tmp_path / "a.parquet")
    assert sbbf_tool.probe(tmp_path / "a.parquet", "id", [10**15 + 7], filters_only=True).is_absent
    assert sbbf_tool.verify(tmp_path / "a.parquet").is_sound
    assert not sbbf_tool.check(tmp_path / "a.parquet").findings
    (tmp_path / "a.parquet").rename(tmp_path / "b.parquet")
    assert not sbbf_tool.probe(tmp_path / "b.parquet", "id", [10**15 + 7]).is_absent


@each(
    "rest, answer", {"all typed": (None, "absent"), "one is not": (b"\x14\x0a\0\0\0", "cannot say")}
)
def test_a_leaf_of_a_variant_excludes_only_if_all_its_values_are_typed(
    rest: bytes | None, answer: str, tmp_path: Path
):
    path = tmp_path / "v.parquet"
    count = 9
    event = pa.StructArray.from_arrays(
        [pa.array([None] * (count - 1) + [rest], pa.binary()), pa.array(["a"] * count)],
        ["value", "typed_value"],
    )
    columns = [
        pa.array([b"\1\0\0"] * count),
        pa.nulls(count, pa.binary()),
        pa.StructArray.from_arrays([event], ["event"]),
    ]
    variant = pa.StructArray.from_arrays(columns, ["metadata", "value", "typed_value"])
    pq.write_table(pa.table({"v": variant}), path, use_dictionary=False)
    leaf = "v.typed_value.event.typed_value"
    sbbf_tool.add_filters(path, [leaf], in_place=True)

    def annotate(metadata: FileMetaData) -> None:
        next(
            element for element in metadata.schema if element.name == "v"
        ).logicalType = LogicalType(VARIANT=VariantType())

    edit_footer(path, annotate)
    assert sbbf_tool.probe(path, leaf, ["10"]).values[0].row_groups[0].answer == answer
    row_group = sbbf_tool.explain(path, leaf, "10").row_groups[0]
    assert (row_group.filter, row_group.is_absent) == (answer, answer == "absent")
    assert not [
        column.column for column in sbbf_tool.advise([path]).columns if column.verdict == "add"
    ]
    if rest is not None:
        with pytest.raises(RefusedError, match="VARIANT"):
            sbbf_tool.add_filters(path, [leaf], output=tmp_path / "w.parquet", rebuild="all")
