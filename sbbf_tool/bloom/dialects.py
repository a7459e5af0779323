"""The dialects of the filter, as rows of one table: today's, and those of the drafts before the
first release with Bloom filters.

Dialects differ in exactly three things: the header before the bitset, the hash, and the rule that
maps a hash to its block. No release of the format contained a draft (parquet-format 2.7.0, 2019-09,
was the first with Bloom filters), and no released writer wrote such filters to files; builds of
branches did. Source: the history of `BloomFilter.md` and `parquet.thrift` in apache/parquet-format
(54839ad 2018-10, 8f1783e 2019-07, 2123f07 2019-07, fa53342, 556ebee and cd08b7f 2019-08), and of
`BlockSplitBloomFilter.java` on the branch `bloom-filter` of apache/parquet-mr (d473d17 2019-01,
35eba16 2019-07, ba28686 2020-01).

Kernels do not depend on dialects. `Dialect.convert_hash` converts a dialect's hash to today's form:
it keeps the lower half, which chooses the bits, and replaces the upper half by one that today's
rule maps to the dialect's block. So a `Hasher` can replace the module `hashing`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sbbf_tool.bloom import buffers, hashing, spec
from sbbf_tool.bloom.murmur3_spec import murmur3
from sbbf_tool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Buffer

    from sbbf_tool.bloom.hashing import Hashes

XXH64 = "XXH64"
MURMUR3 = "MurmurHash3 x64_128"
GUAVA_SEED = 1361930890
"""The Murmur seed of parquet-mr's branch. The draft's text names no seed, which means 0."""

MULTIPLY = "multiply"
MODULO = "modulo"
MASK = "mask"
BLOCK_CHOICES: dict[str, Callable[[int, int], int]] = {
    MULTIPLY: spec.block_index,
    MODULO: lambda h, z: (h >> 32) % z,
    MASK: lambda h, z: (h >> 32) & (z - 1),
}
"""The rules by which the upper half of a 64-bit hash chooses one of `z` blocks. MASK is meant for
powers of two, and then equals MODULO."""

# Forms of the header.
TODAYS = "today's"
"""`BloomFilterHeader`."""
WITHOUT_COMPRESSION = "without compression"
"""`BloomFilterHeader` without field 4."""
PAGE = "in a page header"
"""A header without compression, inside a `PageHeader` of type 4."""
RAW_12 = "12 plain bytes"
"""Three u32."""
RAW_16 = "16 plain bytes"
"""Four u32."""


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    header: str
    hash: str
    block: str
    writers: str
    """Dates and writers."""
    seed: int = 0
    numbers_as_nothing: bool = False
    """INT32, INT64, FLOAT and DOUBLE values are hashed as empty bytes: a defect of the branch,
    which read its buffer from the wrong end."""

    @property
    def sentence(self) -> str:
        """The hash and the block rule, in words."""
        seed = f", seed {self.seed}" if self.hash == MURMUR3 else ""
        numbers = ", of numbers nothing at all" if self.numbers_as_nothing else ""
        return f"{self.hash}{seed}{numbers}; block by {_WORDS[self.block]}"

    def hash_value(self, plain: Buffer, *, is_number: bool) -> int:
        """Hash one value from its plain-encoded bytes to 64 bits."""
        data = b"" if is_number and self.numbers_as_nothing else plain
        if self.hash == MURMUR3:
            return murmur3(data, self.seed)
        return hashing.hash_value(data)

    def convert_hash(self, h: int, num_blocks: int) -> int:
        """Convert `h` to the hash for which today's rules select the same block of `num_blocks`,
        and the same bits in it."""
        if self.block == MULTIPLY:
            return h
        # The smallest u with (u * z) >> 32 == block; below 2^32, since a filter has fewer than 2^31
        # blocks.
        block = BLOCK_CHOICES[self.block](h, num_blocks)
        return -(-(block << 32) // num_blocks) << 32 | h & 0xFFFF_FFFF

    def hasher(self, num_blocks: int, *, is_number: bool) -> Hasher:
        """Make the hasher of this dialect for a `BloomFilter` of `num_blocks` blocks."""
        return Hasher(self, num_blocks, is_number)


_WORDS = {MULTIPLY: "multiplication, as today", MODULO: "remainder", MASK: "lowest bits"}


@dataclass(frozen=True, slots=True)
class Hasher:
    """A replacement for `hashing`, for one filter of one dialect. Its hashes are converted
    already."""

    dialect: Dialect
    num_blocks: int
    is_number: bool

    def hash_value(self, plain: Buffer) -> int:
        hash_ = self.dialect.hash_value(plain, is_number=self.is_number)
        return self.dialect.convert_hash(hash_, self.num_blocks)

    def hash_fixed(self, values: Buffer, width: int) -> Hashes:
        if self.hashes_nothing:
            count = memoryview(values).nbytes // width
            return memoryview(array("Q", [self.hash_value(b"")]) * count)
        if self.dialect.hash == MURMUR3:
            view, count = buffers.rows(values, width)
            offsets = range(0, (count + 1) * width, width)
            return self._hash_murmur(view, offsets)
        return self._convert_hashes(hashing.hash_fixed(values, width))

    def hash_variable(self, data: Buffer, offsets: Buffer, offset_width: int) -> Hashes:
        if self.dialect.hash == MURMUR3:
            view, places = buffers.offsets_in(data, offsets, offset_width)
            return self._hash_murmur(view, places.tolist())
        return self._convert_hashes(hashing.hash_variable(data, offsets, offset_width))

    @property
    def hashes_nothing(self) -> bool:
        """Whether all values have the same hash. A filter then has one bit set in each word of one
        block, and no other."""
        return self.is_number and self.dialect.numbers_as_nothing

    def _hash_murmur(self, data: memoryview, offsets: Sequence[int]) -> Hashes:
        if any(start > end for start, end in pairwise(offsets)):
            raise ValueError(buffers.OFFSETS_DECREASE)
        seed = self.dialect.seed
        hashes = array("Q", [murmur3(data[start:end], seed) for start, end in pairwise(offsets)])
        return self._convert_hashes(memoryview(hashes))

    def _convert_hashes(self, hashes: Hashes) -> Hashes:
        """Apply `Dialect.convert_hash` to many hashes."""
        if self.dialect.block == MULTIPLY:
            return hashes
        import numpy as np

        h = np.frombuffer(hashes, np.uint64)
        if not len(h):
            return memoryview(b"").cast("Q")
        z = np.uint64(self.num_blocks)
        highest = z - np.uint64(1)
        half = np.uint64(32)
        upper = h >> half
        block = upper % z if self.dialect.block == MODULO else upper & highest
        lower = h & np.uint64(0xFFFF_FFFF)
        converted_hashes = ((block << half) + highest) // z << half | lower
        return converted_hashes.data.cast("B").cast("Q")


CURRENT = Dialect(
    "current", TODAYS, XXH64, MULTIPLY, "since 2019-08-21, and by every released writer"
)

DRAFTS = (
    Dialect(
        "draft1-raw",
        RAW_12,
        MURMUR3,
        MASK,
        "2019-01 to 2019-03 by parquet-mr's branch; until 11.0 by Arrow C++'s class",
        GUAVA_SEED,
    ),
    Dialect(
        "draft1-thrift",
        WITHOUT_COMPRESSION,
        MURMUR3,
        MODULO,
        "2018-10 to 2019-07, the text of the first draft",
    ),
    Dialect("draft1-page", PAGE, MURMUR3, MODULO, "2018-10 to 2019-07, the same as a page"),
    Dialect(
        "draft2-thrift",
        WITHOUT_COMPRESSION,
        XXH64,
        MODULO,
        "2019-07-17 to 2019-08-13, the second draft",
    ),
    Dialect("draft2-page", PAGE, XXH64, MODULO, "2019-07-04 to 2019-07-17, the same as a page"),
    Dialect(
        "draft2-final",
        TODAYS,
        XXH64,
        MODULO,
        "2019-08-13 to 2019-08-21, the same with today's header",
    ),
    Dialect(
        "branch-12", RAW_12, XXH64, MASK, "2019-07 by parquet-mr's branch", numbers_as_nothing=True
    ),
    Dialect(
        "branch-16",
        RAW_16,
        XXH64,
        MULTIPLY,
        "2020-01 by parquet-mr's branch",
        numbers_as_nothing=True,
    ),
)
"""The drafts, in the order in which they are tried if a header fits several."""

DIALECTS = (CURRENT, *DRAFTS)


def find_dialect(name: str) -> Dialect:
    """Return the dialect of this name. Raises UsageError if there is none."""
    match = next((dialect for dialect in DIALECTS if dialect.name == name), None)
    if match is None:
        raise UsageError(
            f"there is no dialect {name!r}",
            hint=f"the dialects are {', '.join(dialect.name for dialect in DIALECTS)}",
        )
    return match
