"""The values of a page in PLAIN form (parquet-format Encodings.md, "Plain"), and their hashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sbbf_tool.bloom import hashing, kernels
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import equals, statistics
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.statistics import Extremes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sbbf_tool.parquet.comparison import Pairs

_LENGTH_BYTES = 4
"""Bytes of the length before each BYTE_ARRAY value."""
_PADDING = bytes(8)
"""Bytes that fastparquet writes after the values of every page (`writer.py`, `write_column`)."""


def hash_byte_arrays(plain: memoryview, count: int) -> tuple[memoryview, memoryview]:
    """Return the bytes of a page's values without fastparquet's padding, and their hashes. Raises
    UnreadableError.

    If levels were read as a value, all values would shift by one. The length and the bytes of the
    last value would then be left over before the padding, never the padding alone.
    """
    try:
        return plain, hashing.hash_length_prefixed(plain, count)
    except UnreadableError:
        if plain[-len(_PADDING) :] != _PADDING:
            raise
        without_padding = plain[: -len(_PADDING)]
        try:
            return without_padding, hashing.hash_length_prefixed(without_padding, count)
        except UnreadableError:
            pass
        raise


@dataclass(frozen=True, slots=True)
class PlainPage:
    """The values of one page, until the next page is read, and their hashes; `len` returns the
    number of values."""

    column: Column
    plain: memoryview
    """The values in PLAIN form."""
    hashes: memoryview
    """XXH64 of every value, in order."""
    page_type: int
    """DICTIONARY_PAGE, DATA_PAGE or DATA_PAGE_V2."""
    stored_bytes: int
    """Bytes of page header and page in the file, which are all bytes read."""
    rows: Callable[[], NDArray[np.int64]] | None = None
    """Returns the row of each value, unless the page is a dictionary or the column has lists."""

    def __len__(self) -> int:
        return len(self.hashes)

    def hashes_of_equals(self, *, normalised_intervals: bool) -> memoryview:
        """Hash the bytes that mean one of these values but are not stored for it: see `equals`."""
        return equals.hashes_of(self.column, self.plain, normalised_intervals=normalised_intervals)

    def extremes(self) -> Extremes | None:
        """Find the smallest and the largest value."""
        return statistics.of_plain(self.column, self.plain, len(self))

    def are_equal(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return of which pairs the value has the plain bytes. The page is walked once for all."""
        import numpy as np

        if width := self.column.width:
            return pairs.are_equal_fixed(self.plain, width)
        ends = np.asarray(kernels.active().ends_length_prefixed(self.plain, len(self)))
        previous_ends = np.concatenate(([0], ends[:-1].astype(np.int64)))
        starts = previous_ends + _LENGTH_BYTES
        return pairs.are_equal_spans(self.plain, starts[pairs.places], ends[pairs.places])
