"""How many rows of a column chunk are decoded at once.

Batches keep memory flat, whatever a row group contains. Fixed widths are simple. BYTE_ARRAY values
may have any length, and three things can make a batch larger than its pages:

    a dictionary with one long value    such chunks are decoded as indices and a dictionary; if the
    that every row repeats              dictionary has repeated entries, in batches for its longest
                                        value
    DELTA_BYTE_ARRAY, which repeats     the rows of a batch are few enough for the longest possible
    a value in no bytes                 value
    short values first and long ones    the rows are few enough for the page with the longest
    later                               values

Memory still grows with the largest page and the largest row: each is held whole, however many
elements the lists of a row have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, Encoding
from sbbf_tool.parquet.pages import DICTIONARY_ENCODINGS, StoredPage, data_encodings

USUAL_BYTES = 4 << 20
"""Decoded bytes of a batch of average values: enough to amortize the cost of a batch, few enough
for the processor's caches."""
FEWEST_BYTES = 1 << 18
"""Decoded bytes from which on an array is a batch of its own; smaller ones are merged, which copies
them."""
MOST_BYTES = 16 << 20
"""Maximum number of decoded bytes in a batch, except for a page at either end. pyarrow uses about
four times as much while it decodes."""
MOST_VALUES = 1 << 17
MOST_INDICES = 1 << 20


class Batches(NamedTuple):
    rows: int
    as_dictionary: bool = False
    """Decode to indices and a dictionary."""


def plan_batches(
    column: Column,
    meta: ColumnMetaData,
    num_rows: int,
    pages: Callable[[], Iterable[StoredPage]],
    longest_in_dictionary: Callable[[], int],
    *,
    expand_dictionary: bool = False,
) -> Batches:
    """Plan the batches of one chunk of `num_rows` rows; with `expand_dictionary`, as values even if
    the chunk has only indices.

    `pages` and `longest_in_dictionary` (bytes of the longest value in the dictionary page) are
    called only if the footer does not suffice, since they read every page header, or the
    dictionary.
    """
    num_values = max(1, meta.num_values or 0)
    values_per_row = max(1.0, num_values / max(1, num_rows))

    def rows_for(values: float) -> int:
        return max(1, int(min(values, MOST_VALUES) / values_per_row))

    if column.physical != "BYTE_ARRAY":
        return Batches(rows_for(USUAL_BYTES / (column.width or 1)))
    encodings = data_encodings(meta)
    has_indices = encodings is not None and encodings.issubset(DICTIONARY_ENCODINGS)
    if has_indices and not expand_dictionary:
        return Batches(max(1, int(MOST_INDICES / values_per_row)), as_dictionary=True)
    decoded_bytes = _estimate_decoded_bytes(meta, encodings)
    average = max(1.0, (decoded_bytes or meta.total_uncompressed_size or 0) / num_values)
    if decoded_bytes is not None and decoded_bytes <= MOST_BYTES:
        return Batches(rows_for(USUAL_BYTES / average))
    longest = max(1.0, _longest_value(list(pages()), longest_in_dictionary))
    usual_values = USUAL_BYTES / average
    most_values = MOST_BYTES / longest
    return Batches(rows_for(min(usual_values, most_values)))


def _estimate_decoded_bytes(meta: ColumnMetaData, encodings: set[int] | None) -> int | None:
    """Return an upper bound in bytes for all values of the chunk together; None if the footer
    states too little.

    `unencoded_byte_array_data_bytes` is no bound: pyarrow leaves out what DELTA_BYTE_ARRAY repeats.
    """
    without_repetition = {Encoding.PLAIN, Encoding.DELTA_LENGTH_BYTE_ARRAY}
    if encodings is not None and encodings <= without_repetition:
        return int(meta.total_uncompressed_size or 0)
    return None


def _longest_value(pages: list[StoredPage], longest_in_dictionary: Callable[[], int]) -> float:
    """Return an upper bound in bytes per value for any run of values, ignoring up to one page at
    either end."""
    sizes = (page.size for page in pages if page.is_dictionary)
    in_dictionary = max(sizes, default=0)
    data = [page for page in pages if page.data is not None]
    if data and data[0].data.encoding in DICTIONARY_ENCODINGS:
        in_dictionary = longest_in_dictionary()
    longest_by_page = (_bytes_per_value(page, in_dictionary) for page in data)
    return max(longest_by_page, default=0.0)


def _bytes_per_value(page: StoredPage, in_dictionary: int) -> float:
    if page.data.encoding in DICTIONARY_ENCODINGS:
        return in_dictionary
    if page.data.encoding == Encoding.DELTA_BYTE_ARRAY:
        return page.size
    return page.size / max(1, page.values)
