"""The interface of a kernel (bulk operations on values, hashes and the bytes of a bitset) and of a
hasher of values, for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Kernel(Protocol):
    """A module with these functions. All kernels give the same bits for the same bytes; `spec`
    defines them.

    *Hashes* are one native unsigned 64-bit integer per value, in the values' order: as a result a
    memoryview of format "Q", which numpy wraps without copying; as an argument any contiguous
    buffer of 8 n bytes. `num_blocks` is the specification's `z`; a bitset may be longer than 32 z
    bytes, and the bytes after those are neither read nor written.

    No function keeps a buffer, and only `insert` changes one. Wrong shapes raise ValueError before
    anything is written; buffers that are not contiguous, or that must be written but are read-only,
    raise BufferError. The compiled kernel works without the GIL: two threads may query one bitset,
    but while one inserts into it no other may access it.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802  a module's constant

    def describe(self) -> str:
        """Return the name, and the instructions in use on this machine: "compiled (AVX2)"."""

    def hash_fixed(self, values: Buffer, width: int) -> memoryview:
        """Hash n values of `width` bytes each, stored back to back."""

    def hash_variable(self, data: Buffer, offsets: Buffer, offset_width: int) -> memoryview:
        """Hash n values in Arrow's layout: n + 1 offsets into `data`, signed, native, of 4 or 8
        bytes; the first may be > 0."""

    def hash_length_prefixed(self, page: Buffer, count: int) -> memoryview:
        """Hash the `count` values of a PLAIN BYTE_ARRAY page. Raises ValueError unless the page
        ends with the last one."""

    def ends_length_prefixed(self, page: Buffer, count: int) -> memoryview:
        """Return, for each of the `count` values of a PLAIN BYTE_ARRAY page, the byte of the page
        after it, of format "Q". Raises as `hash_length_prefixed`."""

    def extremes_fixed(self, values: Buffer, width: int, order: str) -> tuple[bytes, bytes] | None:
        """Find the smallest and the largest of n values of `width` bytes each; None for no values.

        `order` is "signed" or "unsigned" (little-endian integers of 4 or 8 bytes), "bytes"
        (unsigned bytes, compared from the first to the last) or "decimal" (big-endian signed
        integers).
        """

    def extremes_variable(
        self, data: Buffer, offsets: Buffer, offset_width: int
    ) -> tuple[bytes, bytes] | None:
        """Find the extremes of values in Arrow's layout (see `hash_variable`), in the order of
        their bytes."""

    def extremes_length_prefixed(self, page: Buffer, count: int) -> tuple[bytes, bytes] | None:
        """Find the extremes of the `count` values of a PLAIN BYTE_ARRAY page."""

    def insert(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> None:
        """Insert every hash."""

    def check(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> bytes:
        """Check every hash; return one byte per hash: 0 certainly absent, 1 possibly present."""

    def count_missing(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> int:
        """Count the hashes that are certainly absent. If all were inserted, each of these is a
        false negative."""

    def fold(self, bitset: Buffer, num_blocks: int) -> bytearray:
        """Build the filter of half the size that the same insertions would give: block i is the
        union of blocks 2 i and 2 i + 1.

        ((h >> 32) * (z / 2)) >> 32 is half of ((h >> 32) * z) >> 32, rounded down, for every even
        z. Raises ValueError for an odd z.
        """

    def measure(self, bitset: Buffer, num_blocks: int) -> tuple[int, int]:
        """Count the bits set; sum, over all blocks, the product of the numbers of bits set in the
        eight words. Both results are exact.

        A block's product divided by 32^8 is the probability that a random mask finds all its bits
        in that block.
        """


class ValueHasher(Protocol):
    """A converter of plain-encoded values to the hashes that a filter takes: the module `hashing`,
    or a `dialects.Hasher`."""

    def hash_value(self, plain: Buffer) -> int:
        """Hash one value."""

    def hash_fixed(self, values: Buffer, width: int) -> memoryview:
        """Hash as `Kernel.hash_fixed` does."""

    def hash_variable(self, data: Buffer, offsets: Buffer, offset_width: int) -> memoryview:
        """Hash as `Kernel.hash_variable` does."""
