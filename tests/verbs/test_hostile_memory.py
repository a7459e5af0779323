"""Numbers that a file only claims cost no memory: a kilobyte that claims exabytes is processed like
a kilobyte.

A separate process runs every operation on a sound file. Its memory, reserved and used, is then
limited to little more than that took, for all of the hostile files.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UnreadableError, add_filters, probe, verify
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from support.corpus_edits import edit_footer
from support.samples import footer_start, places

ALLOWED = 96 << 20
"""Bytes above the peak of a sound file: allocators take some. The largest filter has 128 MiB."""

PROGRAM = """
import resource, sys
from sbbf_tool import SbbfError, add_filters, inspect, probe, remove_filters

def ask(path):
    for work in (
        lambda: inspect(path, all_chunks=True),
        lambda: probe(path, "id", [7]),
        lambda: add_filters(path, ["id", "name"], dry_run=True, rebuild="all", jobs=1),
        lambda: remove_filters(path, dry_run=True),
        lambda: remove_filters(path, ["id"], dry_run=True, compact=True),
    ):
        try:
            work()
        except SbbfError:
            pass

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

allowed, sound, decoded, *hostile = sys.argv[1:]
ask(sound)
ask(decoded)
resource.setrlimit(resource.RLIMIT_AS, (status("VmPeak") + int(allowed),) * 2)
before = status("VmHWM")
for path in hostile:
    print(path, flush=True)
    ask(path)
print(status("VmHWM") - before)
"""

Change = Callable[[Path], object]


def claim(**numbers: int) -> Change:
    """Set fields of the first chunk's metadata, of `num_rows` those of row group and file."""

    def change(metadata: FileMetaData) -> None:
        for name, number in numbers.items():
            if name == "num_rows":
                metadata.num_rows = metadata.row_groups[0].num_rows = number
            else:
                setattr(metadata.row_groups[0].columns[0].meta_data, name, number)

    return lambda path: edit_footer(path, change)


def claim_bitset(num_bytes: int) -> Change:
    def change(path: Path) -> None:
        with open(path, "r+b") as stream:
            stream.seek(places(path)[0, "id"].offset)
            stream.write(build_header(num_bytes))

    return change


def replace_footer(footer: bytes) -> Change:
    def change(path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(
            data[: footer_start(data)] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
        )

    return change


def claim_footer_length(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8] + b"\xf0\xff\xff\xffPAR1")


COUNT_2_31 = b"\xff\xff\xff\xff\x07"

HOSTILE: dict[str, Change] = {
    "values": claim(num_values=2**62),
    "values and rows": claim(num_values=2**62, num_rows=2**62),
    "values, rows and sizes": claim(
        num_values=2**40, num_rows=2**40, total_compressed_size=2**62, total_uncompressed_size=2**62
    ),
    "a chunk of exabytes": claim(total_compressed_size=2**62),
    "negative sizes": claim(total_compressed_size=-(2**62), total_uncompressed_size=-(2**62)),
    "a bitset of 2 GiB": claim_bitset(2**31 - 1),
    "a bitset of 64 MiB": claim_bitset(64 << 20),
    "a footer of 4 GiB": claim_footer_length,
    "2^31 schema elements": replace_footer(b"\x29\xfc" + COUNT_2_31 + bytes(50)),
    "2^31 row groups": replace_footer(b"\x49\xfc" + COUNT_2_31 + bytes(50)),
    "2^31 keys and values": replace_footer(b"\x59\xfc" + COUNT_2_31 + bytes(50)),
    "a name of 2 GiB": replace_footer(b"\x68" + COUNT_2_31 + bytes(50)),
    "an unknown list of 2^31": replace_footer(b"\x09\xc8\x01\xf6" + COUNT_2_31 + bytes(50)),
    "an unknown map of 2^31": replace_footer(b"\x0b\xc8\x01" + COUNT_2_31 + b"\x66" + bytes(50)),
}


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "sound.parquet"
    table = pa.table(
        {"id": pa.array(range(40), pa.int64()), "name": [f"name {n}" for n in range(40)]}
    )
    pq.write_table(table, path, store_schema=False, use_dictionary=["name"])
    add_filters(path, ["id"], in_place=True)
    assert path.stat().st_size < 4096
    return path


@pytest.mark.timeout(60)
def test_claimed_sizes_are_not_allocated(sound, tmp_path):
    paths = []
    for at, change in enumerate(HOSTILE.values()):
        path = tmp_path / f"hostile-{at}.parquet"
        path.write_bytes(sound.read_bytes())
        change(path)
        assert path.stat().st_size < 8192
        paths.append(path)
    # A sound file needs no pyarrow, as a hostile one may: it is there, with its threads, before
    # memory is counted.
    plain_file = tmp_path / "decoded.parquet"
    pq.write_table(
        pq.read_table(sound),
        plain_file,
        use_dictionary=False,
        column_encoding={"id": "DELTA_BINARY_PACKED", "name": "PLAIN"},
    )
    command = [sys.executable, "-c", PROGRAM, str(ALLOWED), sound, plain_file, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *sizes, last = done.stdout.split()
    assert done.returncode == 0, f"{list(HOSTILE)[len(sizes)]}: {done.stderr}"
    assert len(sizes) == len(HOSTILE)
    assert int(last) < ALLOWED // 4


def test_pages_that_many_chunks_share_are_not_read(sound):
    """A footer of a few megabytes could state a large chunk a million times."""

    def repeat(metadata: FileMetaData) -> None:
        metadata.row_groups *= 100
        metadata.num_rows *= 100

    edit_footer(sound, repeat)
    for column in ("id", "name"):
        with pytest.raises(
            UnreadableError,
            match=r"column chunks of [\d,]+ bytes share the [\d,]+ bytes before the footer",
        ):
            add_filters(sound, [column], in_place=True, rebuild="all")
    assert len(verify(sound).unreadable) == 100
    assert not probe(sound, "id", 7, confirm=True).is_absent
