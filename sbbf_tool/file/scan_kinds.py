"""What decides the answers of all files of one kind, for the scan in C (`parquet/_scan.h`).

A kind is what a footer states besides row groups and the number of rows: schema, writer, orders of
the columns, key-values. One file of each kind is opened and judged by the functions that judge
every file; the scan gets the result. A judgment that depends on more than the kind, and on more
than the scan checks in each chunk, makes all files of the kind decline.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from sbbf_tool.file.hash_row import HashRow
from sbbf_tool.file.question import Question
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet import equals, statistics
from sbbf_tool.parquet.columns import PHYSICAL_TYPES, Column
from sbbf_tool.parquet.footer_structs import table_of_structs

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet._scan import Kind
    from sbbf_tool.parquet.footer import Footer

LEFT_OUT = (
    # pandas describes its index, whose range differs from file to file; Arrow's schema repeats it.
    "ARROW:schema",
    "pandas",
    # Hudi states the least and the greatest key of each file, and a filter of its own.
    "hoodie_bloom_filter_type_code",
    "hoodie_max_record_key",
    "hoodie_min_record_key",
    "org.apache.hudi.bloomfilter",
)
"""Names of key-values that no judgment of a probe reads, and of a check only where
`uses.depends_on_arrow`."""

_ALWAYS_DECLINES = 1
_HAS_ORDER = 2
_EQUAL_ONLY = 4
_RELIABLE = 8
_FILTERS_ONLY = 16
_HAS_USUAL = 32
_CONFIRMS = 64
_WITH_BOUNDS = 128
_OF_FILTERS = 256
_BITS_ALONE = 512
_WITH_DETAILS = 1024
_WITH_FILTERS = 2048
_NO_ORDER = 0
_ORDERS = {
    statistics.SIGNED: 1,
    statistics.UNSIGNED: 2,
    statistics.FLOAT: 3,
    statistics.BYTES: 4,
    statistics.DECIMAL: 5,
}
_CODES = {statistics.SIGNED: "q", statistics.UNSIGNED: "Q", statistics.FLOAT: "d"}
_WIDTHS = {
    statistics.SIGNED: (4, 8),
    statistics.UNSIGNED: (4, 8),
    statistics.FLOAT: (2, 4, 8),
}
_LEAST = -(1 << 63)
_HAS_FILTER = 128
_NO_HASHES = HashRow(array("Q"), (), (), {})


class FilterDemand(NamedTuple):
    """What a filter must be so that nothing is to be said of it; see `struct demand` in
    `parquet/_fit.h`."""

    least_bytes: int
    most_bytes: int
    most_product: int
    """The measured FPP, as the mean of the products of the bits set in each word of a block."""
    least_fill: int = 0
    """Share of bits set, of each 2^32, from `from_bytes` on."""
    least_fill_if_large: int = 0
    """The same of a filter that is large for its data."""
    from_bytes: int = 0
    from_bytes_if_large: int = 0


_NOT_ASKED_FOR = FilterDemand(0, 0, 0)


class KindJudgment(Frozen):
    """The judgment of one kind."""

    kind: Kind
    question: Question | None = None
    """The values as the column holds them; None if all files of the kind decline, or if filters are
    judged or taken."""
    column: Column | None = None
    """The column whose values are looked for, or whose filters are taken."""
    report: Any = None
    """The report of a file without any of the values, or whose filters all fit; what differs from
    file to file is that of the file that was judged."""
    is_in_table: bool = False
    """Whether the files belong to a table with a known schema, so that folders state nothing."""
    confirms: bool = False
    """Whether the column is read where values may be."""
    is_example: bool = False
    """Whether the judged file must be one that the scan answers for, since all others get its
    report."""


def key_of_kind(footer: Footer) -> bytes | None:
    """Return the bytes that decide the kind of a footer; None if the scan declines it."""
    from sbbf_tool.parquet import _scan

    return _scan.key(footer.raw, table_of_structs(), names_left_out())


def names_left_out() -> bytes:
    """Return the names of `LEFT_OUT`, each after its length."""
    names = bytearray()
    for name in LEFT_OUT:
        names.append(len(name))
        names += name.encode()
    return bytes(names)


def declining(key: bytes) -> KindJudgment:
    """Return the judgment by which all files of a kind decline."""
    return KindJudgment((key, _numbers(_ALWAYS_DECLINES), b"", b"", b""))


def judge_kind(
    file: ParquetFile,
    key: bytes,
    question: Question,
    report: Any,
    *,
    filters_only: bool = False,
    confirms: bool = False,
    with_details: bool = False,
) -> KindJudgment:
    """Judge the kind of a file for a question about one of its columns, which is read where values
    may be if it `confirms` and the scan can do that."""
    column = question.column
    if question.verdicts or question.has_buffers:
        return declining(key)
    flags = 0
    if filters_only:
        flags |= _FILTERS_ONLY
    if question.may_have_other_meaning:
        flags |= _WITH_BOUNDS
    if with_details:
        flags |= _WITH_DETAILS
    confirms = confirms and _shows_rows(question)
    if confirms:
        flags |= _CONFIRMS
    kind = _describe_kind(file.footer, key, column, flags, question.row)
    if kind is None:
        return declining(key)
    return KindJudgment(kind, question, column, report, file.is_in_table, confirms)


def judge_column(file: ParquetFile, key: bytes, column: Column, report: Any) -> KindJudgment:
    """Judge the kind of a file for the filters of a column, which are taken as they are where a
    query would rely on them."""
    kind = _describe_kind(file.footer, key, column, _WITH_DETAILS | _WITH_FILTERS)
    if kind is None:
        return declining(key)
    return KindJudgment(kind, None, column, report, file.is_in_table)


def _describe_kind(
    footer: Footer, key: bytes, column: Column, flags: int, row: HashRow = _NO_HASHES
) -> Kind | None:
    """Return what the scan gets of a kind for the hashes of values; None if answers depend on more
    than the kind and what the scan checks."""
    if footer.index is None or _depends_on_more(footer, column):
        return None
    form = _describe_bounds(footer, column)
    if form is None:
        return None
    flags_of_bounds, *others = form
    order = _order_of(column)
    keys = row.keys
    if order is None:
        keys = ()
    try:
        packed, offsets = _pack(keys, order, column.width)
    except (OverflowError, TypeError):
        return None
    numbers = _numbers(flags | flags_of_bounds, *others, len(keys), column.max_definition)
    return key, numbers, packed, offsets, row.hashes.tobytes()


def judge_filters(
    file: ParquetFile,
    key: bytes,
    report: Any,
    demands: Mapping[int, FilterDemand] | None,
    *,
    bits_alone: bool = False,
) -> KindJudgment | None:
    """Judge the kind of a file whose filters all fit, by what is demanded of the filters of
    columns; without demands, all files of the kind decline. None if the file shows nothing about
    its kind.

    With `bits_alone`, neither the order of row groups nor the cost of a filter counts.
    """
    footer = file.footer
    numbers_by_column = Counter(column for _, column in footer.filter_places())
    leaves = bytearray()
    packed = bytearray()
    for column in footer.columns:
        if column.physical not in PHYSICAL_TYPES:
            return None
        leaf = PHYSICAL_TYPES.index(column.physical)
        if numbers_by_column[column.index] not in (0, footer.num_row_groups):
            return None
        if numbers_by_column[column.index]:
            leaf |= _HAS_FILTER
            if demands is not None:
                form = _describe_bounds(footer, column)
                if form is None:
                    return None
                packed += _numbers(*form, 0, column.max_definition)
                demand = demands.get(column.index, _NOT_ASKED_FOR)
                packed += array("q", demand).tobytes()
        leaves.append(leaf)
    flags = _OF_FILTERS
    if bits_alone:
        flags |= _BITS_ALONE
    if demands is None:
        flags |= _ALWAYS_DECLINES
    kind = (key, _numbers(flags, len(leaves)), bytes(leaves), bytes(packed), b"")
    is_example = demands is not None
    return KindJudgment(kind, None, None, report, file.is_in_table, is_example=is_example)


def _order_of(column: Column) -> str | None:
    """Return how the bounds of a column compare; None if they exclude nothing."""
    order = statistics.order_of(column)
    if order == statistics.DECIMAL and column.width is None:
        return None  # such bounds are not reliable
    return order


def _describe_bounds(footer: Footer, column: Column) -> tuple[int, ...] | None:
    """Return the first numbers of the kind of a column: flags, number of leaves, and what its
    bounds are; None if the scan does not compare them."""
    order = _order_of(column)
    if order in _WIDTHS and column.width not in _WIDTHS[order]:
        return None
    flags = _flags_of_bounds(footer, column)
    usual = statistics.undoubted_numbers(footer, column)
    low = high = 0
    if usual is not None:
        if order not in (statistics.SIGNED, statistics.UNSIGNED):
            return None
        flags |= _HAS_USUAL
        low = max(usual.start, _LEAST)
        high = usual.stop - 1
    return (
        flags,
        len(footer.columns),
        column.index,
        PHYSICAL_TYPES.index(column.physical),
        column.width or 0,
        _NO_ORDER if order is None else _ORDERS[order],
        low,
        high,
    )


def _numbers(flags: int, *others: int) -> bytes:
    numbers = array("q", [flags, *others])
    numbers.extend([0] * (10 - len(numbers)))
    return numbers.tobytes()


def _depends_on_more(footer: Footer, column: Column) -> bool:
    """Return whether what filters and statistics of a column mean depends on more than the kind of
    a file and what the scan checks."""
    is_plain = column.physical in PHYSICAL_TYPES and not (
        column.doubt or column.reading.doubt or column.variant or column.is_null_typed
    )
    return not is_plain or equals.uncertainty(footer, column) is not None


def _shows_rows(question: Question) -> bool:
    """Return whether the scan can read which rows have the values: the key of each shows its bytes,
    and none is rounded."""
    column = question.column
    if _order_of(column) in (None, statistics.FLOAT):
        return False
    if len(question.row.keys) != len(question.row.hashes):
        return False
    return not (column.max_repetition or column.reading.table_type)


def _flags_of_bounds(footer: Footer, column: Column) -> int:
    """Return which of the stated bounds count: see `statistics.stated_bounds`."""
    trust = statistics.trusted_bounds(footer, column)
    flags = 0
    if trust.newer:
        flags |= _HAS_ORDER
    if trust.older:
        flags |= _RELIABLE
    if trust.only_equal:
        flags |= _EQUAL_ONLY
    return flags


def _pack(keys: Sequence[Any], order: str | None, width: int | None) -> tuple[bytes, bytes]:
    """Return the keys of values in one block, and where each begins if they are of any length.
    Raises OverflowError, TypeError."""
    if order is None:
        return b"", b""
    if order in _CODES:
        return array(_CODES[order], keys).tobytes(), b""
    if order == statistics.DECIMAL:
        assert width is not None
        parts = [key.to_bytes(width, "big", signed=True) for key in keys]
        return b"".join(parts), b""
    offsets = array("Q", accumulate(map(len, keys), initial=0))
    return b"".join(keys), offsets.tobytes()
