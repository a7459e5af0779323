"""A page of an index states where it belongs: one of another index, of another segment or of
another place is refused, although its length and its checksum are right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run as sbbf
from sbbf_tool.extensions.index.segment import BLOCKS, UNITS
from support.tables import each

FILES, ROWS = 6, 400


@pytest.fixture
def lakes(tmp_path: Path) -> tuple[Path, Path]:
    """Two lakes of the same shape with other values, each with an index."""
    for number, name in enumerate(("a", "b")):
        (tmp_path / name).mkdir()
        for file in range(FILES):
            start = (number * FILES + file) * ROWS
            options = {"v": {"ndv": ROWS, "fpp": 0.01}}
            pq.write_table(
                pa.table({"v": range(start, start + ROWS)}),
                tmp_path / name / f"{file}.parquet",
                bloom_filter_options=options,
            )
        build = ["index", str(tmp_path / name), "-c", "v", "-o", str(tmp_path / f"{name}.sbbfx")]
        assert sbbf(build) == 0
    build = ["index", str(tmp_path / "a"), "-c", "v", "-o", str(tmp_path / "again.sbbfx")]
    assert sbbf(build) == 0
    return tmp_path / "a.sbbfx", tmp_path / "b.sbbfx"


def file_of(index: Path, kind: str) -> Path:
    (path,) = index.glob(f"*{kind}")
    return path


def take_segment(kind: str, index: Path, other: Path) -> None:
    shutil.copy(file_of(other, kind), file_of(index, kind))


def swap_pages(kind: str, index: Path, other: Path) -> None:
    """Let each page of the file have the bytes of its neighbour."""
    path = file_of(index, kind)
    data = bytearray(path.read_bytes())
    length = _page_length(path)
    start = 4
    data[start : start + 2 * length] = data[start + length : start + 2 * length] + bytes(
        data[start : start + length]
    )
    path.write_bytes(data)


def _page_length(path: Path) -> int:
    """Return the length of a page of the first class, which are equally long."""
    group = pq.read_metadata(path).row_group(0)
    blocks = group.num_rows // FILES
    return int(group.column(0).total_compressed_size // blocks)


def swap_columns(kind: str, index: Path, other: Path) -> None:
    """Exchange the pages of two columns of the file of units that have the same length."""
    path = file_of(index, kind)
    group = pq.read_metadata(path).row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(13)}
    data = bytearray(path.read_bytes())
    spans = []
    for name in ("file_bytes", "rows"):
        start = columns[name].data_page_offset
        spans.append(slice(start, start + columns[name].total_compressed_size))
    first, second = (bytes(data[span]) for span in spans)
    assert len(first) == len(second)
    data[spans[0]], data[spans[1]] = second, first
    path.write_bytes(data)


@each(
    "damage, kind, source",
    [
        (take_segment, BLOCKS, "b.sbbfx"),
        (take_segment, BLOCKS, "again.sbbfx"),
        (take_segment, UNITS, "again.sbbfx"),
        (swap_pages, BLOCKS, "a.sbbfx"),
        (swap_columns, UNITS, "a.sbbfx"),
    ],
)
def test_a_page_of_another_place_is_refused(damage, kind, source, lakes, tmp_path, capsys):
    index = tmp_path / "damaged.sbbfx"
    shutil.copytree(tmp_path / "a.sbbfx", index)
    before = file_of(index, kind).stat().st_size
    damage(kind, index, tmp_path / source)
    assert file_of(index, kind).stat().st_size == before
    capsys.readouterr()
    values = [part for value in range(0, 2000, 40) for part in ("--value", str(value))]
    if damage is swap_columns:  # no query reads these columns, but a merge does
        (tmp_path / "a" / "0.parquet").unlink()
        assert sbbf(["index", str(index), "--compact"]) == 3
    else:
        assert sbbf(["probe", str(index), "-c", "v", *values, "--format", "names"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "the bytes are not those that were written there" in err
    assert f"; remove the folder {index}, then build it again" in err
    shutil.rmtree(index)


def test_an_older_index_is_refused(lakes, capsys):
    current = lakes[0] / "current.json"
    current.write_text(current.read_text().replace('"version": 2', '"version": 1'))
    for arguments in (["probe", str(lakes[0]), "v", "1"], ["index", str(lakes[0])]):
        capsys.readouterr()
        assert sbbf(arguments) == 3
        err = capsys.readouterr().err
        assert "this release reads version 2 of sbbf-index, and not 1; remove the folder" in err
