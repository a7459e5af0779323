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
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.errors import OversizedPageError, SbbfError, UnreadableError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parallel import in_parallel
from sbbf_tool.file.parquet_file import ParquetFile

if TYPE_CHECKING:
    from sbbf_tool.file.distinct import Distinct
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
    keys: Keys | None,
    limit: MaxPageBytes,
    jobs: int | None = None,
) -> Iterator[SbbfError]:
    """Count the distinct values of these columns in some row groups of a file, `jobs` columns
    concurrently (None: one per core).

    Yields the errors of unreadable row groups, and at last the first OversizedPageError.
    """
    with ParquetFile.open(path, keys, limit) as file:
        chunks: dict[tuple[int, int], Sequence[int]] = {}
        for column in file.footer.columns:
            if (column.name, column.type_name) in totals_by_column:
                metas = (
                    file.footer.chunk_meta(number, column.index)
                    for number in range(file.footer.num_row_groups)
                )
                row_groups = [
                    number for number, meta in enumerate(metas) if not meta.has_only_nulls
                ]
                step = max(1, len(row_groups) // SAMPLED_ROW_GROUPS)
                chunks[0, column.index] = row_groups[::step][:SAMPLED_ROW_GROUPS]
        counts = in_parallel(
            lambda key: _count_column(file, file.footer.columns[key[1]], chunks[key]), chunks, jobs
        )
        oversized: OversizedPageError | None = None
        for (_, index), results in counts.items():
            totals = totals_by_column[
                file.footer.columns[index].name, file.footer.columns[index].type_name
            ]
            for result in results:
                if isinstance(result, OversizedPageError):
                    oversized = oversized or result
                elif isinstance(result, SbbfError):
                    yield result
                else:
                    totals.samples.append(result)
        if oversized is not None:
            yield oversized


def _count_column(
    file: ParquetFile, column: Column, row_groups: Sequence[int]
) -> list[Distinct | SbbfError]:
    """Count the distinct values in each of these row groups, or return why that is impossible."""
    from sbbf_tool.file.distinct import EXTRAPOLATED, containment

    if len(row_groups) > 1 and not any(
        file.footer.chunk_meta(number, column.index).is_dictionary_encoded for number in row_groups
    ):
        for enough in _FIRST_VALUES:
            first, second, *_ = beginnings = [
                _count(file, number, column, enough) for number in row_groups
            ]
            if isinstance(first, SbbfError) or isinstance(second, SbbfError):
                break
            share = min(containment(first, second) or 0.0, containment(second, first) or 0.0)
            if share >= EVERYWHERE or EXTRAPOLATED not in (first.how, second.how):
                return beginnings
            if (
                1 - (1 - share) ** _GROWTH < EVERYWHERE
            ):  # the share in the next beginnings, if values are distributed uniformly
                break
    return [_count(file, number, column) for number in row_groups]


def _count(
    file: ParquetFile, number: int, column: Column, enough: int | None = None
) -> Distinct | SbbfError:
    from sbbf_tool.file.distinct import count_distinct

    try:
        return count_distinct(
            file, number, column, file.footer.chunk_meta(number, column.index).most_values, enough
        )
    except (UnreadableError, OversizedPageError) as error:
        return error


def describe_ndv_source(totals: Totals) -> tuple[str | None, bool]:
    """Return the source of the number of distinct values, and whether it is exact."""
    from sbbf_tool.file.distinct import ESTIMATED, EXACT, EXTRAPOLATED, STANDARD_ERROR

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
    return f"{'all values' if EXACT in methods else 'the dictionaries'} of {row_groups}", is_exact
