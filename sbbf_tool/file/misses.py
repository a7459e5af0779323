"""The causes of false negatives: what a writer may have hashed instead of the values, or where it
may have put the hashes.

Each hypothesis is one row of a table and queries the filter in its own way. It explains the false
negatives if it finds every value of a sample, and if that many hits are unlikely by chance. A new
hypothesis is one more row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

from sbbf_tool.bloom.dialects import Dialect, find_dialect
from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.file.drafts import hasher_for, holds
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.equals import narrow_bits

TEXT = "text"
WIDTH = "width"
BLOCK = "block"
DRAFT = "draft"
EMPTY = "empty"

SAMPLE = 256
"""False negatives that are queried again under each hypothesis."""
# The chance that any hypothesis fits a sample by accident must stay below this.
_MAX_CHANCE = 1e-3


class Cause(NamedTuple):
    """A possible cause. `holds_value` returns whether the filter holds a value (plain bytes) in the
    way that `explanation` describes."""

    name: str
    explanation: str
    holds_value: Callable[[BloomFilter, Column, bytes], bool]


def explain(bloom: BloomFilter, column: Column, false_negatives: Sequence[bytes]) -> Cause | None:
    """Return the first hypothesis that explains these false negatives (at least one is given); None
    if no hypothesis does."""
    if not bloom.bits_set:
        return Cause(EMPTY, "no bit is set: no value was inserted", lambda *_: False)
    chance_of_one = bloom.fpp ** len(false_negatives)
    if chance_of_one * len(CAUSES) > _MAX_CHANCE:
        return None
    for cause in CAUSES:
        if all(cause.holds_value(bloom, column, plain) for plain in false_negatives):
            return cause
    return None


# --- Hashed values that are not the plain bytes ---

Order: TypeAlias = Literal["little", "big"]
Form: TypeAlias = Callable[[Column, bytes], bytes | None]
"""Callable that returns the bytes that may have been hashed instead of a value's plain bytes; None
if the form does not apply."""


def _holds_form(form: Form, bloom: BloomFilter, column: Column, plain: bytes) -> bool:
    with suppress(ValueError, OverflowError, struct.error):
        variant = form(column, plain)
        if variant is not None and variant != plain:
            return bloom.check_hash(hash_value(variant))
    return False


def _javascript_text(column: Column, plain: bytes) -> bytes | None:
    """Return the result of JavaScript's `String(value)`, which is what parquetjs hashes."""
    if column.physical in ("INT32", "INT64"):
        signed = column.logical is None or column.logical.signed
        number = int.from_bytes(plain, "little", signed=signed)
        return str(number).encode()
    if column.physical in ("FLOAT", "DOUBLE") and column.float_format is not None:
        (fraction,) = struct.unpack(column.float_format, plain)
        return _javascript_number(fraction).encode()
    if column.physical == "BOOLEAN":
        return b"true" if plain[0] else b"false"
    return plain.decode("utf-8", "replace").encode()


def _javascript_text_of_short(column: Column, plain: bytes) -> bytes | None:
    """Return the JavaScript text of a FLOAT that was a shorter number before it was stored: 0.1,
    not 0.10000000149011612."""
    if column.physical != "FLOAT":
        return None
    number = float(literals.format_plain(column, plain))
    return _javascript_number(number).encode()


_JAVASCRIPT_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _javascript_number(number: float) -> str:
    """Format a number like ECMAScript's Number::toString: shortest digits, with an exponent from
    1e21 up and from 1e-7 down."""
    if not isfinite(number):
        return _JAVASCRIPT_NAMES[repr(number)]
    if number == 0:
        return "0"
    digits = Decimal(repr(number)).normalize()
    exponent = digits.adjusted()
    if -7 < exponent < 21:
        return f"{digits:f}"
    return f"{digits.scaleb(-exponent):f}e{exponent:+d}"


def _integer(width: int, column: Column, plain: bytes, *, signed: bool = True) -> bytes | None:
    """Return an integer in another number of bytes: sign-extended, zero-extended or truncated."""
    if column.physical not in ("INT32", "INT64") or len(plain) == width:
        return None
    number = int.from_bytes(plain, "little", signed=signed)
    mask = (1 << 8 * width) - 1
    lowest_bits = number & mask
    return lowest_bits.to_bytes(width, "little")


def _with_length(column: Column, plain: bytes) -> bytes | None:
    if column.physical != "BYTE_ARRAY":
        return None
    return len(plain).to_bytes(4, "little") + plain


def _holds_as_stored(bloom: BloomFilter, column: Column, plain: bytes) -> bool:
    if narrow_bits(column) is None:
        return False
    return bloom.check_hash(hash_value(plain))


def _float(layout: str, column: Column, plain: bytes) -> bytes | None:
    if column.float_format is None:
        return None
    (number,) = struct.unpack(column.float_format, plain)
    return struct.pack(layout, number)


def _decimal(width: int | None, order: Order, column: Column, plain: bytes) -> bytes | None:
    """Return a decimal in another number of bytes; None stands for as few bytes as it needs."""
    if column.logical is None or column.logical.kind != "DECIMAL":
        return None
    stored_order: Order = "little" if column.physical in ("INT32", "INT64") else "big"
    number = int.from_bytes(plain, stored_order, signed=True)
    if width is None:
        magnitude = number if number >= 0 else ~number
        width = (magnitude.bit_length() + 8) // 8
    return number.to_bytes(width, order, signed=True)


# --- Correct hashes that are stored elsewhere ---


def _holds_in_dialect(dialect: Dialect, bloom: BloomFilter, column: Column, plain: bytes) -> bool:
    """Query for a value that is hashed and stored as in a draft of the format, whatever the header
    states."""
    hasher = hasher_for(dialect, column, bloom.num_blocks)
    return holds(bloom, hasher, plain)


def _holds_in_first_blocks(divisor: int, bloom: BloomFilter, column: Column, plain: bytes) -> bool:
    """Query the first part of the bitset only, as if the header stated `divisor` times too many
    bytes."""
    num_blocks = bloom.num_blocks // divisor
    if num_blocks == 0:
        return False
    num_bytes = num_blocks * BLOCK_BYTES
    first_blocks = BloomFilter(bloom.bitset[:num_bytes])
    return first_blocks.check_hash(hash_value(plain))


def _text(column: Column, plain: bytes) -> bytes:
    return literals.format_plain(column, plain).encode(errors="surrogateescape")


def _reversed(column: Column, plain: bytes) -> bytes | None:
    return plain[::-1] if column.width else None


_FORMS_OF_TEXT: tuple[tuple[str, Form], ...] = (
    ("their JavaScript text was hashed, as parquetjs does", _javascript_text),
    ("their JavaScript text was hashed, as parquetjs does", _javascript_text_of_short),
    ("their text was hashed instead of their bytes", _text),
)
_FORMS_OF_WIDTH: tuple[tuple[str, Form], ...] = (
    ("integers of 8 bytes", partial(_integer, 8)),
    ("integers of 8 bytes, without their sign", partial(_integer, 8, signed=False)),
    ("integers of 4 bytes", partial(_integer, 4)),
    ("integers of 2 bytes", partial(_integer, 2)),
    ("integers of 1 byte", partial(_integer, 1)),
    ("decimals of 16 bytes, little-endian", partial(_decimal, 16, "little")),
    ("decimals of 16 bytes, big-endian", partial(_decimal, 16, "big")),
    ("decimals of the fewest bytes that hold each", partial(_decimal, None, "big")),
    ("8-byte floating-point numbers", partial(_float, "<d")),
    ("4-byte floating-point numbers", partial(_float, "<f")),
)
_OTHER_FORMS: tuple[tuple[str, Form], ...] = (
    ("they were hashed with reversed bytes", _reversed),
    ("they were hashed together with their length", _with_length),
)
_DRAFTS = ("draft1-raw", "draft1-thrift", "branch-12", "branch-16")
"""One dialect for each hash that no cause before has: the other dialects differ from these only in
their headers."""


def _list_causes() -> Iterator[Cause]:
    for explanation, form in _FORMS_OF_TEXT:
        yield Cause(TEXT, explanation, partial(_holds_form, form))
    explanation = "they were hashed as stored, with bits above their width that readers ignore"
    yield Cause(WIDTH, explanation, _holds_as_stored)
    for noun, form in _FORMS_OF_WIDTH:
        yield Cause(WIDTH, f"they were hashed as {noun}", partial(_holds_form, form))
    for explanation, form in _OTHER_FORMS:
        yield Cause(WIDTH, explanation, partial(_holds_form, form))
    explanation = "their block was selected by a remainder, as in a draft of the format"
    yield Cause(BLOCK, explanation, partial(_holds_in_dialect, find_dialect("draft2-final")))
    for dialect in map(find_dialect, _DRAFTS):
        explanation = f"they were hashed as in the draft {dialect.name}: {dialect.sentence}"
        yield Cause(DRAFT, explanation, partial(_holds_in_dialect, dialect))
    for divisor in (2, 4, 8, 16):
        explanation = f"the header states {divisor} times the bytes that the filter was built with"
        yield Cause(BLOCK, explanation, partial(_holds_in_first_blocks, divisor))


CAUSES = tuple(_list_causes())
"""All of them, in the order in which they are tried."""
