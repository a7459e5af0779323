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

from parquet import wire
from parquet.made_footers import column_chunk, column_metadata, file_metadata, row_group
from parquet.wire import Field
from sbbf_tool import UnreadableError, add_filters, inspect, probe, verify
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet import large_footers
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.large_footers import MANY_PAIRS
from sbbf_tool.parquet.splice import set_filters
from sbbf_tool.parquet.structs import parse_struct
from support.corpus_edits import edit_footer
from support.footer_index import needs_walker
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


def build_list(field: int, element: bytes, count: int) -> bytes:
    """Build a field with a list of equal structs."""
    return bytes([wire.LIST]) + wire.number(field) + b"\xfc" + wire.varint(count) + element * count


def with_list(field: int, element: bytes, count: int) -> bytes:
    return SMALL[:-1] + build_list(field, element, count) + b"\0"


def build_schema(element: bytes, count: int) -> bytes:
    """Build a footer without row groups, with equal elements below the root of the schema."""
    root = b"\x48\1r\x15" + wire.number(count) + b"\0"
    schema = b"\x19\xfc" + wire.varint(count + 1) + root + element * count
    return b"\x15\4" + schema + b"\x16\0\x19\x0c\0"


SMALL = wire.write(file_metadata([row_group([column_chunk(column_metadata())])], 1))
MILLION = 1_000_000
PAIR = b"\x18\x06m.4711\x18\x08value 42\0"


def build_large_footers() -> dict[str, tuple[bytes, bool]]:
    """Build footers with a million structs, and say whether they are read: pairs and orders are, if
    all else is."""
    structs = wire.items(wire.STRUCT, ((),) * MILLION)
    chunks = Field(1, wire.LIST, structs)
    stats = Field(13, wire.LIST, structs)
    return {
        "pairs": (with_list(5, PAIR, MILLION), True),
        "pairs of a known key": (with_list(5, b"\x18\3geo\0", MILLION), True),
        "empty pairs": (with_list(5, b"\0", 4 * MILLION), True),
        "two lists of empty pairs": (
            with_list(5, b"\0", MILLION)[:-1] + build_list(5, b"\0", MILLION) + b"\0",
            True,
        ),
        "empty orders": (with_list(7, b"\0", 4 * MILLION), True),
        "orders": (with_list(7, b"\x1c\0\0", MILLION), True),
        "pairs of an encrypted file": (
            with_list(5, PAIR, MILLION)[:-1] + bytes([wire.STRUCT]) + wire.number(8) + b"\0\0",
            True,
        ),
        "groups": (build_schema(b"\x48\1a\x15\0\0", MILLION), False),
        "columns": (build_schema(b"\x15\2\x38\1a\0", MILLION), False),
        "row groups": (with_list(4, b"\x19\x0c\x16\0\x16\0\0", MILLION), False),
        "column chunks": (wire.write(file_metadata([(chunks,)], 1)), False),
        "encoding_stats": (
            wire.write(file_metadata([row_group([column_chunk(column_metadata(stats))])], 1)),
            False,
        ),
    }


@needs_walker
@pytest.mark.heavy(1)
@pytest.mark.timeout(120)
def test_what_no_verb_reads_takes_no_memory(sound, tmp_path):
    """Each struct would take 100 to 200 bytes as an object."""
    footers = build_large_footers()
    paths = []
    for at, (footer, is_read) in enumerate(footers.values()):
        path = tmp_path / f"large-{at}.parquet"
        path.write_bytes(b"PAR1" + bytes(8) + footer + len(footer).to_bytes(4, "little") + b"PAR1")
        paths.append(path)
        if is_read:
            assert inspect(path).row_groups == 1
        else:
            with pytest.raises(UnreadableError, match=r"the footer states [\d,]+ s"):
                inspect(path)
    command = [sys.executable, "-c", PROGRAM, str(ALLOWED), sound, sound, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *names, last = done.stdout.split()
    assert done.returncode == 0, f"{list(footers)[len(names) - 1]}: {done.stderr}"
    assert int(last) < ALLOWED


def test_all_that_is_looked_up_is_found_among_many_pairs(tmp_path, monkeypatch):
    """The first and the last pair of a key count, as in a footer with few pairs."""
    path = tmp_path / "a.parquet"
    others = {f"key {number}": f"value {number}" for number in range(MANY_PAIRS + 5)}
    with pq.ParquetWriter(path, pa.schema({"x": pa.int64()}), store_schema=False) as writer:
        writer.write_table(pa.table({"x": [1]}))
        for pairs in (
            {"geo": "1"},
            others,
            {"geo": "2"},
            {"geo": "3", "org.apache.spark.version": "2.4"},
        ):
            writer.add_key_value_metadata(pairs)

    def read() -> tuple[object, ...]:
        with ParquetFile.open(path) as file:
            footer = file.footer
            kept = [(pair.key, pair.value) for pair in footer.metadata.key_value_metadata]
            pairs = [(pair.key, pair.value) for pair in footer.key_values()]
            return kept, pairs, footer.columns[0].reading, set_filters(footer.raw, {})

    kept, pairs, *rest = read()
    whole = parse_struct(FileMetaData, rest[1])
    assert pairs == [(pair.key, pair.value) for pair in whole.key_value_metadata]
    assert len(pairs) > MANY_PAIRS
    assert dict(kept)["org.apache.spark.version"] == "2.4"
    of_geo = [value for key, value in pairs if key == "geo"]
    assert [value for key, value in kept if key == "geo"] == list(
        dict.fromkeys([of_geo[0], of_geo[-1]])
    )
    monkeypatch.setattr(large_footers, "has_outlines", False)
    assert read() == (kept, pairs, *rest)


def test_too_little_memory_is_one_line(sound, tmp_path):
    program = (
        "import resource, sys\n"
        "from sbbf_tool.cli import run\n"
        "small, large = sys.argv[1:]\n"
        "assert run(['inspect', small]) == 0\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "most = pages * resource.getpagesize() + (4 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "sys.exit(run(['inspect', large]))\n"
    )
    large = tmp_path / "large.parquet"
    footer = with_list(5, PAIR, MILLION)
    large.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    done = subprocess.run(
        [sys.executable, "-c", program, sound, large], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert "not enough memory" in done.stderr


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
