"""Files that are none, or that were cut short: one clear error each, or a sound answer."""

from __future__ import annotations

import os
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import SbbfError, UnreadableError, add_filters
from support.samples import places
from support.tables import each
from verbs.bad_files import COMMANDS, ask_everything, assert_one_line_and_this_code


@pytest.fixture
def small(tmp_path):
    """A whole file in less than a kilobyte, with a filter that was added."""
    path = tmp_path / "small.parquet"
    pq.write_table(
        pa.table({"id": pa.array([7, 8], pa.int64())}),
        path,
        compression="none",
        write_statistics=False,
        store_schema=False,
    )
    add_filters(path, ["id"], in_place=True)
    assert path.stat().st_size < 1024
    return path


# No Parquet file at all

JUNK = {
    "empty": b"",
    "only a magic": b"PAR1",
    "eleven bytes": b"PAR1\0\0\0PAR1",
    "text": b"id,name\n1,x\n" * 50,
    "ORC": b"ORC" + bytes(500) + b"ORC",
    "a footer length past the file": b"PAR1" + bytes(100) + struct.pack("<I", 5000) + b"PAR1",
    "a footer length of 4 GiB": b"PAR1" + bytes(100) + b"\xff\xff\xff\xffPAR1",
    "a footer that takes the first magic too": b"PAR1"
    + bytes(100)
    + struct.pack("<I", 104)
    + b"PAR1",
    "a footer of zeros": b"PAR1" + bytes(100) + struct.pack("<I", 100) + b"PAR1",
}


@each("command", list(COMMANDS))
@each("content", JUNK)
def test_a_file_that_is_not_parquet_is_reported_in_one_line(tmp_path, capsys, content, command):
    path = tmp_path / "junk.parquet"
    path.write_bytes(content)
    complaint = assert_one_line_and_this_code(capsys, COMMANDS[command](str(path)), 3)
    assert str(path) in complaint
    assert os.listdir(tmp_path) == ["junk.parquet"]


@pytest.mark.timeout(20)
@each("command", list(COMMANDS))
@each("kind", ["missing", "fifo", "device", "link to nowhere"])
def test_a_path_that_is_no_file_is_reported_in_one_line(tmp_path, capsys, kind, command):
    path = str(tmp_path / "it.parquet")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        os.symlink("/dev/null", path)
    elif kind == "link to nowhere":
        os.symlink("nowhere", path)
    assert path in assert_one_line_and_this_code(capsys, COMMANDS[command](path), 3)


# Cut short


@pytest.mark.slow
def test_a_file_cut_anywhere_is_unreadable_unless_it_was_whole_at_that_length(small):
    """The one shorter length at which it is a file is the one it had before its filter was
    added."""
    whole = small.read_bytes()
    old_length = min(place.offset for place in places(small).values())
    for length in range(len(whole)):
        small.write_bytes(whole[:length])
        answers = ask_everything(small, "id", 7)
        if length == old_length:
            assert isinstance(answers["remove"], SbbfError)
            assert not any(
                isinstance(answers[name], SbbfError) for name in ("inspect", "probe", "add")
            )
        else:
            assert all(isinstance(answer, UnreadableError) for answer in answers.values()), (
                f"cut to {length} bytes"
            )
