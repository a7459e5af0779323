"""What a kernel is: bulk operations on values, hashes and the bytes of a bitset; and what hashes values. For type checkers and readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Kernel(Protocol):
    """A module with these functions. All kernels give the same bits for the same bytes; `spec` says which.

    *Hashes* are one native unsigned 64-bit integer per value, in the values' order: as a result a memoryview of format "Q", which
    numpy wraps without copying; as an argument any contiguous buffer of 8 n bytes. `num_blocks` is the specification's `z`; a bitset
    may be longer than 32 z bytes, and what is beyond is neither read nor written.

    No function keeps a buffer, and only `insert` changes one. Wrong shapes raise ValueError before anything is written, buffers that
    are not contiguous or that cannot be written BufferError. The compiled kernel works without the GIL: two threads may
    ask one bitset, but while one inserts into it no other may do anything with it.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802  a module's constant

    def describe(self) -> str:
        """The name, and what was found in this machine: "compiled (AVX2)"."""

    def hash_fixed(self, values: Buffer, width: int) -> memoryview:
        """Hashes of n values of `width` bytes each, one behind the other."""

    def hash_variable(self, data: Buffer, offsets: Buffer, offset_width: int) -> memoryview:
        """Hashes of n values in Arrow's layout: n + 1 offsets into `data`, signed, native, of 4 or 8 bytes; the first may be > 0."""

    def hash_length_prefixed(self, page: Buffer, count: int) -> memoryview:
        """Hashes of the `count` values of a PLAIN BYTE_ARRAY page. ValueError when the page ends before or after the last one."""

    def extremes_fixed(self, values: Buffer, width: int, order: str) -> tuple[bytes, bytes] | None:
        """The smallest and the largest of n values of `width` bytes each; None of no values.

        `order`: "signed" and "unsigned" little-endian integers of 4 or 8 bytes, "bytes" from the first to the last, each unsigned, and
        "decimal", big-endian signed integers.
        """

    def extremes_variable(self, data: Buffer, offsets: Buffer, offset_width: int) -> tuple[bytes, bytes] | None:
        """The same of values in Arrow's layout (see `hash_variable`), in the order of their bytes."""

    def extremes_length_prefixed(self, page: Buffer, count: int) -> tuple[bytes, bytes] | None:
        """The same of the `count` values of a PLAIN BYTE_ARRAY page."""

    def insert(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> None:
        """Insert every hash."""

    def check(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> bytes:
        """One byte per hash: 0 certainly absent, 1 perhaps there."""

    def count_missing(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> int:
        """How many hashes are certainly absent. Where all were inserted, one that is absent is a broken promise."""

    def fold(self, bitset: Buffer, num_blocks: int) -> bytearray:
        """The filter of half the size that the same insertions would have built: block i is the union of blocks 2 i and 2 i + 1.

        ((h >> 32) * (z / 2)) >> 32 is half of ((h >> 32) * z) >> 32, rounded down, for every even z. ValueError for an odd z.
        """

    def measure(self, bitset: Buffer, num_blocks: int) -> tuple[int, int]:
        """Bits set, and the sum over blocks of the product of the eight words' numbers of bits set; both exact.

        The product divided by 32^8 is the chance that a random mask finds all its bits in that block.
        """


class ValueHasher(Protocol):
    """What turns plain-encoded values into the hashes that a filter takes: the module `hashing`, or a `dialects.Hasher`."""

    def hash_value(self, plain: Buffer) -> int:
        """The hash of one value."""

    def hash_fixed(self, values: Buffer, width: int) -> memoryview:
        """As `Kernel.hash_fixed`."""

    def hash_variable(self, data: Buffer, offsets: Buffer, offset_width: int) -> memoryview:
        """As `Kernel.hash_variable`."""
