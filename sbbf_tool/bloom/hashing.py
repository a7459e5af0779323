"""The hashes of values: XXH64, seed 0, of a value's plain-encoded bytes (parquet-format
BloomFilter.md, "Technical Approach").

A BYTE_ARRAY is hashed without its length prefix. The caller, who knows the column's type, provides
the plain bytes. A hash is an unsigned 64-bit integer; many hashes are one buffer, `Hashes`, which
numpy wraps without copying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xxhash

from sbbf_tool.bloom import kernels
from sbbf_tool.errors import UnreadableError

if TYPE_CHECKING:
    from typing_extensions import Buffer

Hashes = memoryview
"""One native unsigned 64-bit integer per value, in the values' order: format "Q"."""


def hash_value(plain: Buffer) -> int:
    """Hash one value from its plain-encoded bytes. Raises TypeError for a str, which xxhash up to
    version 3 would hash."""
    if isinstance(plain, str):
        raise TypeError(
            "a str has no plain-encoded bytes; encode it, for example with value.encode()"
        )
    return xxhash.xxh64_intdigest(plain)


def hash_fixed(values: Buffer, width: int) -> Hashes:
    """Hash n values of `width` bytes each, stored back to back. Raises ValueError if the bytes are
    not a multiple of the width."""
    return kernels.active().hash_fixed(values, width)


def hash_variable(data: Buffer, offsets: Buffer, offset_width: int) -> Hashes:
    """Hash n values in Arrow's layout: n + 1 offsets into `data`, of 4 or 8 bytes. Raises
    ValueError if offsets exceed `data`."""
    return kernels.active().hash_variable(data, offsets, offset_width)


def hash_length_prefixed(page: Buffer, count: int) -> Hashes:
    """Hash the `count` values of a PLAIN BYTE_ARRAY page. Raises UnreadableError unless the page
    ends with the last one."""
    try:
        return kernels.active().hash_length_prefixed(page, count)
    except ValueError as error:
        raise UnreadableError(str(error)) from error
