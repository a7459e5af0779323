"""A page that states more bytes than the limit is not decompressed, whatever codec, kind of page
and command: memory stays flat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sbbf_tool
from sbbf_tool import RefusedError, UsageError
from sbbf_tool.cli import run
from sbbf_tool.errors import OversizedPageError
from sbbf_tool.extensions.paimon import build_paimon_index
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.parquet.idl.ttypes import CompressionCodec, Encoding, PageType
from sbbf_tool.storage.system_calls import memory_bytes
from support.page_bombs import Page, compress, write_pages, zstd_zeros
from support.samples import build_elsewhere
from support.tables import each

pytestmark = pytest.mark.slow

MIB, GIB = 1 << 20, 1 << 30
ROWS = 100
ALLOWED = 128 << 20
"""Bytes above the peak for a sound file."""

CODECS = ("GZIP", "ZSTD", "SNAPPY", "BROTLI", "LZ4_RAW", "UNCOMPRESSED")
KINDS = ("v1", "v2", "delta", "dictionary", "third")

SOUND = "SOUND"
"""A sound file before the other, so that there are several."""

# Arguments before the file, and the exit code.
READING = [
    (["verify"], 4),
    (["check"], 1),
    (["add-filter", "-c", "v", "--rebuild", "all", "--in-place"], 4),
    (["add-filter", "-c", "v", "--rebuild", "all", "--in-place", "--jobs", "1"], 4),
    (["repair", "-n"], 4),
    (["advise"], 4),
    (["verify", SOUND], 4),
    (["check", SOUND], 1),
    (["add-filter", SOUND, "-c", "v", "--rebuild", "all", "--in-place"], 4),
    (["advise", SOUND], 4),
    (["paimon", "build", "-c", "v", "-n"], 4),
]

PROGRAM = """
import json, resource, sys
from sbbf_tool.cli import run

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

def named(command):
    return [sound if word == "SOUND" else word for word in command]

sound, commands, paths = json.loads(sys.argv[1])
for command in commands:
    run([*named(command), sound])
before = peak()
codes = {path: [run([*named(command), path]) for command in commands] for path in paths}
print(json.dumps([peak() - before, codes]), file=sys.__stdout__)
"""


def pages_of(kind: str, number: int, last: Page) -> list[Page]:
    """The pages of a chunk in which this one is of a kind, or the third."""
    small = Page(PageType.DATA_PAGE, Encoding.PLAIN, 1, compress(number, bytes(8)), 8)
    references = Page(
        PageType.DATA_PAGE, Encoding.RLE_DICTIONARY, ROWS, compress(number, b"\x01\xc8\x01\x00"), 4
    )
    return {
        "v1": [last],
        "v2": [last._replace(kind=PageType.DATA_PAGE_V2)],
        "delta": [last._replace(encoding=Encoding.DELTA_BINARY_PACKED)],
        "dictionary": [last._replace(kind=PageType.DICTIONARY_PAGE), references],
        "third": [small, small, last],
    }[kind]


def bomb(path: Path, codec: str, kind: str, stated_size: int) -> Path:
    """A file of some kilobytes, one page of which states `stated_size` bytes: in ZSTD it has them,
    in the others it does not."""
    number = CompressionCodec._NAMES_TO_VALUES[codec]
    stored = zstd_zeros(stated_size) if codec == "ZSTD" else compress(number, bytes(8 * ROWS))
    values = ROWS if kind == "delta" else stated_size // 8
    write_pages(
        path,
        number,
        pages_of(
            kind, number, Page(PageType.DATA_PAGE, Encoding.PLAIN, values, stored, stated_size)
        ),
    )
    assert path.stat().st_size < 80_000
    return path


def sound(path: Path) -> Path:
    codec = CompressionCodec.ZSTD
    return write_pages(
        path,
        codec,
        [
            Page(
                PageType.DATA_PAGE, Encoding.PLAIN, ROWS, compress(codec, bytes(8 * ROWS)), 8 * ROWS
            )
        ],
    )


def peak_and_codes(
    sound: Path, paths: list[Path], commands: list[list[str]]
) -> tuple[int, dict[str, list[int]]]:
    """Bytes of memory that a process of its own needs more for these files than for a sound one,
    and all exit codes."""
    request = json.dumps([str(sound), commands, [str(path) for path in paths]])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, request], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    peak, codes = json.loads(done.stdout.splitlines()[-1])
    return peak, codes


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_no_command_decompresses_a_bomb(tmp_path):
    """Each kind of page in ZSTD, whose bombs have their bytes, and the other codecs with one kind
    each."""
    pairs = [
        (codec, kind)
        for codec in CODECS
        for kind in KINDS
        if codec == "ZSTD" or CODECS.index(codec) % 5 == KINDS.index(kind)
    ]
    paths = [
        bomb(tmp_path / f"{codec}-{kind}.parquet", codec, kind, GIB if at % 2 else 2**31 - 8)
        for at, (codec, kind) in enumerate(pairs)
    ]
    peak, codes = peak_and_codes(
        sound(tmp_path / "sound.parquet"), paths, [command for command, _ in READING]
    )
    assert codes == {str(path): [code for _, code in READING] for path in paths}
    assert peak < ALLOWED


def test_a_dictionary_is_a_page_too_where_a_query_is_explained(tmp_path, capsys):
    path = bomb(tmp_path / "bomb.parquet", "ZSTD", "dictionary", GIB)
    assert run(["explain", str(path), "v", "1"]) == 4
    assert run(["advise", str(path), "--query", "v = 1"]) == 4
    assert "allow pages of" in capsys.readouterr().err


@each("kind", KINDS)
@each("codec", CODECS)
def test_the_limit_that_is_given_holds_to_the_byte(tmp_path, codec, kind):
    """Pages that are read without pyarrow obey it as those that pyarrow reads."""
    number = CompressionCodec._NAMES_TO_VALUES[codec]
    encoded = bytes(8 * ROWS)
    if kind == "delta":
        # 100 values: the first is 0, and so is every difference
        encoded = b"\x80\x01\x04\x64\x00\x00\x00\x00\x00\x00"
    pages = pages_of(
        kind,
        number,
        Page(PageType.DATA_PAGE, Encoding.PLAIN, ROWS, compress(number, encoded), len(encoded)),
    )
    path = write_pages(tmp_path / "v.parquet", number, pages)
    most = max(max(page.stated_size, len(page.stored)) for page in pages)
    assert sbbf_tool.verify(path, max_page_bytes=most).is_sound
    build_elsewhere(path, ["v"], rebuild="all", max_page_bytes=most)
    for refused in (
        lambda: sbbf_tool.verify(path, max_page_bytes=most - 1),
        lambda: build_elsewhere(path, ["v"], rebuild="all", max_page_bytes=most - 1),
        lambda: sbbf_tool.repair(path, in_place=True, max_page_bytes=most - 1),
        lambda: build_paimon_index(path, ["v"], dry_run=True, max_page_bytes=most - 1),
    ):
        with pytest.raises(OversizedPageError) as refusal:
            refused()
        assert isinstance(refusal.value, RefusedError)
    (finding,) = [
        entry
        for entry in sbbf_tool.check(path, max_page_bytes=most - 1).findings
        if entry.rule == "oversized-page"
    ]
    assert finding.severity == "error"
    assert finding.column == "v"


def test_the_usual_limit():
    share = memory_bytes() // 4
    assert PageLimit(jobs=1).bytes_of(1000) == min(256 * MIB, share)
    assert PageLimit(jobs=1).bytes_of(300_000_000) == min(300_000_000_000, share)
    assert PageLimit(jobs=4).bytes_of(1 << 40) == share // 4
    assert PageLimit(jobs=1 << 40).bytes_of(1) == 2 * MIB
    assert PageLimit(5, jobs=4).bytes_of(1 << 40) == 5
    with pytest.raises(UsageError, match="the limit of bytes of a page must be above 0, not 0"):
        PageLimit(0)


@pytest.mark.nightly
@pytest.mark.skipif(
    memory_bytes() // 4 // (os.cpu_count() or 1) < 300_000_000,
    reason="this machine has too little memory",
)
def test_an_honest_page_of_a_high_ratio_is_read(tmp_path):
    """300 MB of zeros in 333 KB: a ratio of 900."""
    size, block = 300_000_000, 3_600
    stored = zstd_zeros(size, block)
    assert 880 < size / len(stored) < 920
    path = write_pages(
        tmp_path / "v.parquet",
        CompressionCodec.ZSTD,
        [Page(PageType.DATA_PAGE, Encoding.PLAIN, size // 8, stored, size)],
    )
    report = sbbf_tool.verify(path)
    assert report.filters[0].verified_values == size // 8
