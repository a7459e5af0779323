"""Another process, which knows of no lock, writes the very file that is being worked on: that is an
error, and no defect of the tool."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from sbbf_tool.errors import ChangedError


def write(path: Path, first: int) -> bytes:
    values = pa.array(range(first, first + 3000), pa.int64())
    pq.write_table(
        pa.table({"id": values}),
        path,
        row_group_size=1000,
        use_dictionary=False,
        compression="none",
    )
    return path.read_bytes()


@pytest.fixture
def rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, bytes]:
    """A file, and the bytes that another process writes over it, without a lock, when any file is
    first brought to the disk."""
    path, theirs = tmp_path / "f.parquet", write(tmp_path / "other", 1_000_000)
    assert len(write(path, 0)) == len(theirs)
    fsync = os.fsync
    begun: list[int] = []

    def write_theirs(fd: int) -> None:
        # The journal of an append comes first, and the appended bytes second.
        begun.append(fd)
        if path.stat().st_size > len(theirs) or (
            begun.count(fd) and ".f.parquet." in os.readlink(f"/proc/self/fd/{fd}")
        ):
            with open(path, "r+b") as stream:
                stream.write(theirs)
            monkeypatch.setattr(os, "fsync", fsync)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", write_theirs)
    return path, theirs


def test_a_file_that_is_written_again_during_an_append(rewritten):
    path, theirs = rewritten
    with pytest.raises(ChangedError, match="the file changed while it was worked on"):
        add_filters(path, ["id"], in_place=True, append=True)
    assert path.read_bytes() == theirs


def test_a_file_that_is_written_again_during_a_copy(rewritten):
    path, theirs = rewritten
    with pytest.raises(ChangedError, match="the file changed while it was worked on"):
        add_filters(path, ["id"], in_place=True)
    assert path.read_bytes() == theirs
