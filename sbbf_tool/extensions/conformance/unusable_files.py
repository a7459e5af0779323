"""Files whose filters no reader may use: other algorithms, drafts of the format, damaged headers
and places.

A reader must answer `cannot say`, or `maybe` for a value that is stored. A reader that takes the
bytes for a filter loses rows, because they exclude every stored value.
"""

from __future__ import annotations

from collections.abc import Iterator

from sbbf_tool.bloom.dialects import DRAFTS, TODAYS
from sbbf_tool.extensions.conformance.corpus_file import (
    CorpusFile,
    FileMaker,
    make_file,
    make_unusable,
)
from sbbf_tool.extensions.conformance.kinds import BITSET_BYTES, BY_NAME
from sbbf_tool.extensions.conformance.parquet_writer import StoredBytes
from sbbf_tool.frozen import replace
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.filters import build_draft_filter, build_header

_INT64 = BY_NAME["int64"]
_EMPTY = bytes(BITSET_BYTES)
# Unions of the header, each with its only member.
_BLOCK = b"\x1c\x1c\x00\x00"
_XXHASH = b"\x1c\x1c\x00\x00"
_UNCOMPRESSED = b"\x1c\x1c\x00\x00"
_OTHER_MEMBER = b"\x1c\x2c\x00\x00"


def make_headers() -> Iterator[CorpusFile]:
    """Make headers that state what the format does not have."""
    size = b"\x15" + compact.build_int(BITSET_BYTES)
    forms = {
        "other-algorithm": (
            size + _OTHER_MEMBER + _XXHASH + _UNCOMPRESSED + b"\x00",
            "the algorithm is an unknown member of its union",
        ),
        "other-hash": (
            size + _BLOCK + _OTHER_MEMBER + _UNCOMPRESSED + b"\x00",
            "the hash is an unknown member of its union",
        ),
        "other-compression": (
            size + _BLOCK + _XXHASH + _OTHER_MEMBER + b"\x00",
            "the compression is an unknown member of its union",
        ),
        "empty-unions": (
            size + b"\x1c\x00" * 3 + b"\x00",
            "the three unions have no member, as in files of parquetjs",
        ),
        "only-size": (size + b"\x00", "the header has no algorithm, hash and compression"),
        "without-size": (
            b"\x2c\x1c\x00\x00" + _XXHASH + _UNCOMPRESSED + b"\x00",
            "the header has no numBytes",
        ),
    }
    for name, (header, about) in forms.items():
        yield _make_both(f"unusable/{name}", about, header + _EMPTY)


def make_sizes() -> Iterator[CorpusFile]:
    """Make headers whose numBytes no bitset has."""
    sizes = {
        "zero-bytes": (0, "numBytes is 0"),
        "negative-bytes": (-32, "numBytes is negative"),
        "31-bytes": (31, "numBytes is less than one block"),
        "2-gib": ((1 << 31) - 1, "numBytes is 2^31 - 1, but the file ends before"),
        "into-footer": (2 * BITSET_BYTES, "the bitset of numBytes would end inside the footer"),
    }
    for name, (number, about) in sizes.items():
        yield _make_both(f"damaged/{name}", about, build_header(number) + _EMPTY)


def make_places() -> Iterator[CorpusFile]:
    """Make offsets at which there is no filter."""
    stored = StoredBytes(build_header(BITSET_BYTES) + _EMPTY)
    places = {
        "offset-zero": (0, "the offset is 0, which earlier writers stored for no filter"),
        "offset-negative": (-1, "the offset is negative"),
        "offset-after-file": (1 << 40, "the offset is after the end of the file"),
        "offset-in-magic": (1, "the offset is that of the magic bytes"),
    }
    for name, (offset, about) in places.items():
        misplaced = replace(stored, stated_offset=offset)
        yield make_unusable(f"damaged/{name}.parquet", about, {0: misplaced, 1: misplaced})
    garbage = b"\xa5" * (BITSET_BYTES + 17)
    about = "there is no header at the offset, but other bytes"
    yield _make_both("damaged/garbage", about, garbage)
    zeros = bytes(BITSET_BYTES + 17)
    yield _make_both("damaged/zeros", "there are only zeros at the offset", zeros)


def make_lengths() -> Iterator[CorpusFile]:
    """Make sound filters whose bloom_filter_length is wrong: numBytes of the header defines the
    bitset."""
    maker = FileMaker(_INT64)
    for name, change, content in (
        ("short", -BITSET_BYTES // 2, "half of the bitset"),
        ("long", 64, "64 bytes after the bitset"),
        ("bitset-only", -17, "the bitset without its header"),
    ):
        filters = {
            number: replace(stored, stated_length=len(stored.data) + change)
            for number, stored in maker.sound_filters().items()
        }
        about = (
            f"bloom_filter_length counts {content}: readers go by the header, or do not "
            "use the filter"
        )
        yield make_file(f"lengths/{name}.parquet", about, replace(maker, filters=filters))


def make_drafts() -> Iterator[CorpusFile]:
    """Make filters of drafts (docs/how-to/old-drafts.md), but for the draft with today's header,
    which no reader can recognize."""
    maker = FileMaker(_INT64)
    for dialect in DRAFTS:
        if dialect.header == TODAYS:
            continue
        filters = {}
        for number, values in enumerate(maker.stored()):
            data = build_draft_filter(dialect, values, BITSET_BYTES, is_number=True)
            filters[number] = StoredBytes(data)
        about = f"filters of the draft {dialect.name}: {dialect.sentence}"
        yield make_unusable(f"drafts/{dialect.name}.parquet", about, filters)


def _make_both(stem: str, about: str, data: bytes) -> CorpusFile:
    """Make a file with these bytes as the filter of both row groups."""
    stored = StoredBytes(data)
    return make_unusable(f"{stem}.parquet", about, {0: stored, 1: stored})
