"""CRC-32C of concatenated bytes, from the checksums of the parts: Google states no other checksum of a composed object."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

_POLYNOMIAL = 0x82F63B78
_BITS = 32


def combine(parts: Iterable[tuple[int, int]]) -> int:
    """Return the checksum of parts in order, each given as checksum and length."""
    total = 0
    for checksum, length in parts:
        total = _append_zeros(total, length) ^ checksum
    return total


def parse_checksum(text: object) -> int | None:
    """Parse a checksum as Google writes it, four bytes in Base64; None for anything else."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except binascii.Error:
        return None
    return int.from_bytes(data, "big") if len(data) == 4 else None


def _append_zeros(checksum: int, length: int) -> int:
    """Return the register of a checksum after `length` bytes of zeros, without initial and final inversion.

    A zero bit is a linear map of the register's bits; its powers are formed by squaring.
    """
    matrix = [_POLYNOMIAL, *(1 << bit for bit in range(_BITS - 1))]  # one zero bit
    for _ in range(3):
        matrix = _square(matrix)
    while length:
        if length & 1:
            checksum = _multiply(matrix, checksum)
        length >>= 1
        matrix = _square(matrix)
    return checksum


def _multiply(matrix: list[int], vector: int) -> int:
    total = 0
    for column in matrix:
        if vector & 1:
            total ^= column
        vector >>= 1
    return total


def _square(matrix: list[int]) -> list[int]:
    return [_multiply(matrix, column) for column in matrix]
