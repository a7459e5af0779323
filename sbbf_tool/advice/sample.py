"""Distinct values, counted in a sample: two row groups per column in each of a few files.

Adding filters reads each value of their columns once, so counting must take less than that, also
for the columns that get no filter. Where no dictionary helps, beginnings of both row groups are
read first: if nearly all values of one also occur in the other, values repeat, no filter is
advised, and the rest is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sbbf_tool.advice.totals import Totals
from sbbf_tool.errors import OversizedPageError, SbbfError, UnreadableError
from sbbf_tool.file.distinct import (
    ESTIMATED,
    EXACT,
    EXTRAPOLATED,
    STANDARD_ERROR,
    Distinct,
    containment,
    count_distinct,
)
from sbbf_tool.file.parallel import in_parallel
from sbbf_tool.file.parquet_file import ParquetFile

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.storage.inputs import FileIn, Readable

SAMPLED_ROW_GROUPS = 2
EVERYWHERE = 0.9
"""Share of a row group's values in another from which values count as repeated: a filter skips
almost nothing."""
_GROWTH = 4
_FIRST_VALUES = (1 << 15, _GROWTH << 15)


def sample(
    path: Readable | FileIn,
    totals_by_column: Mapping[tuple[str, str], Totals],
    context: Context,
) -> Iterator[SbbfError]:
    """Count the distinct values of these columns in some row groups of a file, and add the counts
    to the samples of their totals.

    The columns are named by name and type. Yields the errors of unreadable row groups, and at last
    the first OversizedPageError.
    """
    with ParquetFile.open(path, context) as file:
        columns = file.footer.columns
        chunks = {}
        for column in columns:
            if (column.name, column.type_name) in totals_by_column:
                chunks[0, column.index] = _choose_row_groups(file, column)

        def count(key: tuple[int, int]) -> list[Distinct | SbbfError]:
            _, index = key
            return _count_column(file, columns[index], chunks[key])

        counts = in_parallel(count, chunks, context.jobs)
        oversized: OversizedPageError | None = None
        for (_, index), results in counts.items():
            totals = totals_by_column[columns[index].name, columns[index].type_name]
            for result in results:
                if isinstance(result, OversizedPageError):
                    oversized = oversized or result
                elif isinstance(result, SbbfError):
                    yield result
                else:
                    totals.samples.append(result)
        if oversized is not None:
            yield oversized


def _choose_row_groups(file: ParquetFile, column: Column) -> Sequence[int]:
    """Return row groups in which the column has values, spread over the file."""
    row_groups = []
    for number in range(file.footer.num_row_groups):
        meta = file.footer.chunk_meta(number, column.index)
        if not meta.has_only_nulls:
            row_groups.append(number)
    step = max(1, len(row_groups) // SAMPLED_ROW_GROUPS)
    return row_groups[::step][:SAMPLED_ROW_GROUPS]


def _count_column(
    file: ParquetFile, column: Column, row_groups: Sequence[int]
) -> list[Distinct | SbbfError]:
    """Count the distinct values in each of these row groups, or return why that is impossible."""
    if len(row_groups) > 1 and not _has_dictionary(file, column, row_groups):
        beginnings = _count_beginnings(file, column, row_groups)
        if beginnings is not None:
            return beginnings
    return [_count(file, number, column) for number in row_groups]


def _has_dictionary(file: ParquetFile, column: Column, row_groups: Sequence[int]) -> bool:
    for number in row_groups:
        if file.footer.chunk_meta(number, column.index).is_dictionary_encoded:
            return True
    return False


def _count_beginnings(
    file: ParquetFile, column: Column, row_groups: Sequence[int]
) -> list[Distinct | SbbfError] | None:
    """Count the distinct values in beginnings of these row groups; None if all values have to be
    read."""
    for enough in _FIRST_VALUES:
        beginnings = [_count(file, number, column, enough) for number in row_groups]
        first, second, *_ = beginnings
        if isinstance(first, SbbfError) or isinstance(second, SbbfError):
            return None
        share = min(containment(first, second) or 0.0, containment(second, first) or 0.0)
        if share >= EVERYWHERE or EXTRAPOLATED not in (first.how, second.how):
            return beginnings
        # The share in the next beginnings, if values are distributed uniformly.
        next_share = 1 - (1 - share) ** _GROWTH
        if next_share < EVERYWHERE:
            return None
    return None


def _count(
    file: ParquetFile, number: int, column: Column, enough: int | None = None
) -> Distinct | SbbfError:
    values = file.footer.chunk_meta(number, column.index).most_values
    try:
        return count_distinct(file, number, column, values, enough)
    except (UnreadableError, OversizedPageError) as error:
        return error


def describe_ndv_source(totals: Totals) -> tuple[str | None, bool]:
    """Return the source of the number of distinct values, and whether it is exact."""
    if totals.row_groups and totals.counted_dictionaries == totals.row_groups:
        return "the dictionaries of all row groups", True
    if totals.ndv is None or not totals.samples:
        return None, False
    methods = {sample.how for sample in totals.samples}
    row_groups = f"{len(totals.samples):,} of {totals.row_groups:,} row groups"
    if EXTRAPOLATED in methods:
        return f"extrapolated from the beginning of {row_groups} (an upper estimate)", False
    if ESTIMATED in methods:
        return f"all values of {row_groups}, accurate to {2 * STANDARD_ERROR:.1%}", False
    is_exact = len(totals.samples) == totals.row_groups
    source = "all values" if EXACT in methods else "the dictionaries"
    return f"{source} of {row_groups}", is_exact
