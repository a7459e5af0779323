"""Which kernel does the work: the compiled one when it was built, else numpy; `SBBF_KERNEL=spec|numpy|compiled` overrules.

A kernel is a module with the functions of `Kernel`. All kernels give the same bits for the same bytes, and one test-suite runs
on each. A kernel is imported when the first bulk operation asks for it, not before: numpy alone costs more than a small probe.
"""

from __future__ import annotations

import os

from sbbf_tool.bloom import spec
from sbbf_tool.errors import UsageError

TYPE_CHECKING = False  # as mypy reads it; `typing` itself would double what this import costs
if TYPE_CHECKING:
    from typing import Protocol

    from typing_extensions import Buffer

    class Kernel(Protocol):
        """Bulk operations on hashes and bitsets. No function keeps a buffer or changes one, but for `insert` its bitset.

        `Hashes` below are a memoryview of format "Q", one native unsigned 64-bit integer per value, in the values' order. As an
        argument any contiguous buffer of 8 n bytes will do. `num_blocks` is the specification's `z`; a bitset may be longer than
        32 z bytes, and what is beyond is neither read nor written. Wrong shapes raise ValueError before anything is written, a
        read-only bitset BufferError.
        """

        @property
        def NAME(self) -> str: ...  # noqa: N802  a module's constant

        def describe(self) -> str:
            """The name, and what it found in this machine: "compiled (AVX2)"."""

        def hash_fixed(self, values: Buffer, width: int) -> memoryview:
            """Hashes of n values of `width` bytes each, one behind the other."""

        def hash_variable(self, data: Buffer, offsets: Buffer, offset_width: int) -> memoryview:
            """Hashes of n values in Arrow's layout: n + 1 offsets into `data`, signed, native, of 4 or 8 bytes; the first may be > 0."""

        def hash_length_prefixed(self, page: Buffer, count: int) -> memoryview:
            """Hashes of the first `count` values of a PLAIN BYTE_ARRAY page. ValueError when the page ends before they do."""

        def insert(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> None:
            """Insert every hash."""

        def check(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> bytes:
            """One byte per hash: 0 certainly absent, 1 perhaps there."""

        def count_missing(self, bitset: Buffer, num_blocks: int, hashes: Buffer) -> int:
            """How many hashes are certainly absent; one for each in a filter that claims to hold them is a broken promise."""

        def fold(self, bitset: Buffer, num_blocks: int) -> bytearray:
            """The filter of half the size that the same insertions would have built: block i is the union of blocks 2i and 2i + 1.

            ((h >> 32) * (z / 2)) >> 32 is half of ((h >> 32) * z) >> 32, rounded down, for every even z. ValueError for an odd z.
            """

        def measure(self, bitset: Buffer, num_blocks: int) -> tuple[int, int]:
            """Bits set, and the sum over blocks of the product of the eight words' numbers of bits set; both exact.

            The product divided by 32^8 is the chance that a random mask finds all its bits in that block.
            """


NAMES = ("compiled", "numpy", "spec")


def load(name: str) -> Kernel:
    """The kernel called `name`: "compiled", "numpy" or "spec". UsageError when there is none, or it cannot be had here."""
    try:
        if name == "compiled":
            from sbbf_tool.bloom import compiled_kernel

            return compiled_kernel
        if name == "numpy":
            from sbbf_tool.bloom import numpy_kernel

            return numpy_kernel
    except ImportError as error:
        raise UsageError(f"the {name} kernel is not available: {error}", place="SBBF_KERNEL") from error
    if name == "spec":
        return spec
    raise UsageError(f"no kernel is called {name!r}", place="SBBF_KERNEL", hint=f"there are {', '.join(NAMES)}")


_chosen: tuple[Kernel, str] | None = None


def _choose() -> tuple[Kernel, str]:
    """The kernel of this process, and the remark that `describe` makes on the choice."""
    if asked := os.environ.get("SBBF_KERNEL"):
        return load(asked), " by SBBF_KERNEL"
    try:
        return load("compiled"), ""
    except UsageError as error:
        return load("numpy"), f" (no compiled kernel: {error.__cause__})"


def _choice() -> tuple[Kernel, str]:
    global _chosen
    if _chosen is None:
        _chosen = _choose()
    return _chosen


def active() -> Kernel:
    """The kernel of this process. Chosen at the first call and kept."""
    return _choice()[0]


def name() -> str:
    """ "compiled", "numpy" or "spec"."""
    return active().NAME


def describe() -> str:
    """One line for people: "kernel: compiled (AVX2)"."""
    kernel, remark = _choice()
    return f"kernel: {kernel.describe()}{remark}"
