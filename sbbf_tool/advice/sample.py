"""Distinct values, counted in a sample: two row groups per column in each of a few files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sbbf_tool.advice.survey import Totals
from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.encryption.keys import Keys

if TYPE_CHECKING:
    from sbbf_tool.storage.inputs import FileIn, Readable

SAMPLED_ROW_GROUPS = 2


def sample(
    path: Readable | FileIn, totals_by_column: Mapping[tuple[str, str], Totals], keys: Keys | None, limit: MaxPageBytes
) -> Iterator[SbbfError]:
    """Count the distinct values of these columns in some row groups of a file; yield the errors of unreadable row groups."""
    from sbbf_tool.file.distinct import count_distinct

    with ParquetFile.open(path, keys, limit) as file:
        for column in file.footer.columns:
            totals = totals_by_column.get((column.name, column.type_name))
            if totals is None:
                continue
            metas = [file.footer.chunk_meta(number, column.index) for number in range(file.footer.num_row_groups)]
            row_groups = [number for number, meta in enumerate(metas) if not meta.has_only_nulls]
            step = max(1, len(row_groups) // SAMPLED_ROW_GROUPS)
            for number in row_groups[::step][:SAMPLED_ROW_GROUPS]:
                try:
                    totals.samples.append(count_distinct(file, number, column, metas[number].most_values))
                except UnreadableError as error:
                    yield error


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
