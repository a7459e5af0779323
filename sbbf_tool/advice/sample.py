"""Distinct values, counted in a sample: two row groups per column, in a few files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sbbf_tool.advice.survey import Totals
from sbbf_tool.errors import SbbfError, UnreadableError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.encryption.keys import Keys

SAMPLED_ROW_GROUPS = 2


def sample(path: str, wanted: Mapping[tuple[str, str], Totals], keys: Keys | None, limit: MaxPageBytes) -> Iterator[SbbfError]:
    """Count the distinct values of these columns in some row groups of a file; yield what cannot be read, and why."""
    from sbbf_tool.file.distinct import count_distinct

    with ParquetFile.open(path, keys, limit) as file:
        for column in file.footer.columns:
            totals = wanted.get((column.name, column.type_name))
            if totals is None:
                continue
            metas = [file.footer.chunk_meta(number, column.index) for number in range(file.footer.num_row_groups)]
            filled = [number for number, meta in enumerate(metas) if not meta.has_only_nulls]
            step = max(1, len(filled) // SAMPLED_ROW_GROUPS)
            for number in filled[::step][:SAMPLED_ROW_GROUPS]:
                try:
                    totals.samples.append(count_distinct(file, number, column, metas[number].most_values))
                except UnreadableError as error:
                    yield error


def source_of(totals: Totals) -> tuple[str | None, bool]:
    """Return the source of the number of distinct values, and whether it is exact."""
    from sbbf_tool.file.distinct import COUNTED, ESTIMATED, EXTRAPOLATED, STANDARD_ERROR

    if totals.row_groups and totals.counted_dictionaries == totals.row_groups:
        return "the dictionaries of all row groups", True
    if totals.ndv is None or not totals.samples:
        return None, False
    hows = {found.how for found in totals.samples}
    where = f"{len(totals.samples):,} of {totals.row_groups:,} row groups"
    if EXTRAPOLATED in hows:
        return f"extrapolated from the beginning of {where}, an upper estimate", False
    if ESTIMATED in hows:
        return f"every value of {where}, counted within {2 * STANDARD_ERROR:.1%}", False
    exact = len(totals.samples) == totals.row_groups
    return f"every value of {where}{'' if COUNTED in hows else ', by their dictionaries'}", exact
