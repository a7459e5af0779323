"""Memory stays flat whatever a row group holds: each case is read in a process of its own, whose
peak is looked at.

The files are small and their values large: pages compress well, and a dictionary or a common prefix
stands for gigabytes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.tables import each

MIB = 1 << 20
# Python, numpy, pyarrow and its pools take some 160 MiB before the first value.
MOST_MIB = 400

READ_AND_ADD = """
import sys
from sbbf_tool import add_filters
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.values import read_chunk

with ParquetFile.open(sys.argv[1]) as file:
    (column,) = file.footer.columns
    chunk = read_chunk(file.footer, 0, column, file.pages(0, column))
    count = sum(len(values.hashes()) for values in chunk)
add_filters(sys.argv[1], [column.name], output=sys.argv[1] + ".out")
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(count, peak // 1024)
"""


def write(path: Path, chunks: list[pa.Array], **options: Any) -> Path:
    """One row group from many arrays, which may be the same array many times: that takes its memory
    once."""
    table = pa.table({"v": pa.chunked_array(chunks)})
    pq.write_table(table, path, compression="zstd", row_group_size=len(table), **options)
    assert pq.read_metadata(path).num_row_groups == 1
    return path


def values_and_peak(path: Path) -> tuple[int, int]:
    """Values that were read and hashed, and the peak of the process's memory in MiB, when a filter
    for them is built and verified too."""
    done = subprocess.run(
        [sys.executable, "-c", READ_AND_ADD, path], check=True, capture_output=True, text=True
    )
    values, peak = map(int, done.stdout.split())
    return values, peak


def one_value_in_a_dictionary(path: Path) -> Path:
    """One MiB, 100,000 times: 98 GiB, if every row got its copy."""
    array = pa.DictionaryArray.from_arrays(
        pa.array([0] * 100_000, pa.int32()), pa.array([b"x" * MIB])
    )
    return write(path, [array], dictionary_pagesize_limit=2 * MIB, store_schema=False)


def a_dictionary_that_was_given_up(path: Path) -> Path:
    """Write a value of one MiB many times by reference, then in plain pages: the footer does not
    count the rows of each kind."""
    long, short = pa.array([b"x" * MIB] * 100), pa.array([b"%09d" % n for n in range(100_000)])
    return write(
        path,
        [*[long] * 100, *[short] * 4],
        dictionary_pagesize_limit=MIB + 100_000,
        write_batch_size=500,
    )


def common_prefixes(path: Path) -> Path:
    """One MiB many times in an encoding that stores what differs from the value before. pyarrow
    states the size of all values without what is repeated."""
    chunks = [pa.array([b"x" * MIB] * 100)] * 40
    return write(
        path,
        chunks,
        use_dictionary=False,
        column_encoding={"v": "DELTA_BYTE_ARRAY"},
        write_batch_size=10,
    )


def short_then_long(path: Path) -> Path:
    """A million short values, which make the average short, and then a GiB of long ones in pages of
    their own."""
    short, long = pa.array([b"%09d" % n for n in range(1_000_000)]), pa.array([b"x" * MIB] * 16)
    return write(path, [short, *[long] * 64], use_dictionary=False, write_batch_size=4)


def wide_fixed(path: Path) -> Path:
    """Fixed-length values of 64 KiB, 20,000 times the same: a dictionary makes the chunk look
    small."""
    return write(path, [pa.array([b"x" * 65536] * 1000, pa.binary(65536))] * 20)


CASES = {
    "a value in a dictionary": (one_value_in_a_dictionary, 100_000),
    "a dictionary that was given up": (a_dictionary_that_was_given_up, 410_000),
    "common prefixes": (common_prefixes, 4000),
    "short values, then long ones": (short_then_long, 1_001_024),
    "wide values of fixed length": (wide_fixed, 20_000),
}


@pytest.mark.heavy
@pytest.mark.timeout(900)
@each("build, count", CASES)
def test_peak_of_memory(tmp_path: Path, build: Callable[[Path], Path], count: int) -> None:
    values, peak = values_and_peak(build(tmp_path / "f.parquet"))
    assert values == count
    assert peak < MOST_MIB
