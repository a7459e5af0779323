"""Why values are missed: each way of hashing them otherwise is recognised, and none is seen where
there is none."""

from __future__ import annotations

import math
import random
import struct
import uuid
from collections.abc import Callable
from typing import Any, Literal

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.file import misses
from sbbf_tool.file.misses import BLOCK, TEXT, WIDTH
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.logical import Logical
from support.tables import each

INT32, INT64, FLOAT, DOUBLE, BYTES, FIXED = (
    "INT32",
    "INT64",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)


Form = Callable[[Any], bytes]


def column(physical: str, logical: Logical | None = None, length: int = 0) -> Column:
    return Column(0, ("c",), ("c",), physical, length, logical, 0, 0)


def bloom_of(forms: list[bytes], size: int = 1024) -> BloomFilter:
    bloom = BloomFilter.empty(size)
    for form in forms:
        bloom.insert(form)
    return bloom


def packed(layout: str) -> Form:
    return lambda value: struct.pack(layout, value)


def integer(width: int | None, order: Literal["little", "big"]) -> Form:
    """Of `width` bytes, or of as few as the value needs."""
    return lambda n: n.to_bytes(width or (max(n, ~n).bit_length() + 8) // 8, order, signed=True)


def text(value: object) -> bytes:
    return str(value).encode()


def same(value: bytes) -> bytes:
    return value


INT8 = column(INT32, Logical("INT", bits=8))
UINT32 = column(INT32, Logical("INT", bits=32, signed=False))
DECIMAL = column(FIXED, Logical("DECIMAL", precision=20, scale=2), 9)
HALF = column(FIXED, Logical("FLOAT16"), 2)
UUIDS = column(FIXED, Logical("UUID"), 16)

NUMBERS = [-7, -1, 0, 1, 2, 42, 255, 256, 65_535, 100_000, 8_000_000, -123_456, 77, 78, 79, 80]
SMALL = [-128, -7, 0, 1, 42, 99, 100, 127]
HALVES = [0.5, -1.25, 3.0, 8.0, 100.0]
REALS = {
    0.5: b"0.5",
    1e21: b"1e+21",
    1e-7: b"1e-7",
    123456.0: b"123456",
    -8.0: b"-8",
    0.0: b"0",
    -math.inf: b"-Infinity",
}
NO_TEXT = {b"\xff\xfe": "\ufffd\ufffd", b"a\x80b": "a\ufffdb", b"\xc3\x28": "\ufffd("}
TENTHS = [0.1, 0.2, 0.3, 3.7]
WORDS = [b"one", b"three", b"seven"]
KEYS = [uuid.UUID(int=n << 100 | n) for n in range(9)]

CASES = [
    # column, values, how they are stored, how they were hashed, the cause that should be found,
    # words of the explanation
    (column(INT32), NUMBERS, packed("<i"), text, TEXT, "JavaScript"),
    (column(INT64), NUMBERS, packed("<q"), text, TEXT, "JavaScript"),
    (column(DOUBLE), list(REALS), packed("<d"), REALS.__getitem__, TEXT, "JavaScript"),
    (column(FLOAT), TENTHS, packed("<f"), text, TEXT, "JavaScript"),
    (column(BYTES), list(NO_TEXT), same, lambda value: NO_TEXT[value].encode(), TEXT, "JavaScript"),
    (UUIDS, KEYS, lambda key: key.bytes, text, TEXT, "their text"),
    (column(INT32), NUMBERS, packed("<i"), packed("<q"), WIDTH, "8 bytes"),
    (
        UINT32,
        [2**32 - n for n in range(1, 9)],
        packed("<I"),
        packed("<q"),
        WIDTH,
        "8 bytes, without their sign",
    ),
    (column(INT64), NUMBERS, packed("<q"), packed("<i"), WIDTH, "4 bytes"),
    (INT8, SMALL, packed("<i"), packed("<b"), WIDTH, "1 byte"),
    (INT8, SMALL, packed("<i"), packed("<h"), WIDTH, "2 bytes"),
    (DECIMAL, NUMBERS, integer(9, "big"), integer(16, "little"), WIDTH, "16 bytes, little-endian"),
    (DECIMAL, NUMBERS, integer(9, "big"), integer(16, "big"), WIDTH, "16 bytes, big-endian"),
    (DECIMAL, NUMBERS, integer(9, "big"), integer(None, "big"), WIDTH, "fewest bytes"),
    (column(FLOAT), HALVES, packed("<f"), packed("<d"), WIDTH, "8-byte floating"),
    (column(DOUBLE), HALVES, packed("<d"), packed("<f"), WIDTH, "4-byte floating"),
    (HALF, HALVES, packed("<e"), packed("<f"), WIDTH, "4-byte floating"),
    (column(INT64), NUMBERS, packed("<q"), packed(">q"), WIDTH, "reversed"),
    (
        column(BYTES),
        WORDS,
        same,
        lambda word: len(word).to_bytes(4, "little") + word,
        WIDTH,
        "length",
    ),
]


@each("of, values, stored, hashed_form, cause, words", list(CASES))
def test_the_form_that_was_hashed_is_found(
    of: Column, values: list[Any], stored: Form, hashed_form: Form, cause: str, words: str
):
    bloom = bloom_of([hashed_form(value) for value in values])
    missing = [plain for plain in map(stored, values) if plain not in bloom]
    assert missing
    explanation = misses.explain(bloom, of, missing)
    assert explanation is not None
    assert explanation.name == cause
    assert words in explanation.explanation


def test_a_block_chosen_by_a_remainder():
    words = [f"word {n}".encode() for n in range(100)]
    bitset = bytearray(1024)
    for word in words:
        h = hash_value(word)
        start = (h >> 32) % 32 * BLOCK_BYTES
        block = BloomFilter(bytearray(bitset[start : start + BLOCK_BYTES]))
        block.insert_hash(h)
        bitset[start : start + BLOCK_BYTES] = block.bitset
    bloom = BloomFilter(bitset)
    explanation = misses.explain(
        bloom, column(BYTES), [word for word in words if word not in bloom]
    )
    assert explanation is not None
    assert explanation.name == BLOCK
    assert "remainder" in explanation.explanation


@each("divisor", [2, 4, 8, 16])
def test_a_header_that_states_more_blocks_than_the_filter_was_built_with(divisor: int):
    words = [f"word {n}".encode() for n in range(40)]
    bloom = BloomFilter(
        bytearray(bloom_of(words, 16 * BLOCK_BYTES).bitset)
        + bytes((divisor - 1) * 16 * BLOCK_BYTES)
    )
    explanation = misses.explain(
        bloom, column(BYTES), [word for word in words if word not in bloom]
    )
    assert explanation is not None
    assert explanation[:2] == (
        BLOCK,
        f"the header states {divisor} times the bytes that the filter was built with",
    )


def test_luck_is_no_explanation():
    """In a filter that is nearly full, everything is found under every hypothesis, one missed value
    more than another by chance."""
    rng = random.Random(6)
    bloom = bloom_of([rng.randbytes(8) for _ in range(800)], 256)
    assert bloom.fpp > 0.5
    missing = [plain for plain in (struct.pack("<q", n) for n in range(1000)) if plain not in bloom]
    assert misses.explain(bloom, column(INT64), missing[:4]) is None
