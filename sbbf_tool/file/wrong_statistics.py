"""The statistics of a column chunk, compared with all its values, which are read for this purpose.

Verification of a filter does the same on its way (`membership`); here no filter is needed.
"""

from __future__ import annotations

from collections.abc import Callable

from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.chunk_hashes import StoredValues
from sbbf_tool.file.cross_check import is_tested
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.statistics import StatisticsCheck


def find_wrong_statistics(file: ParquetFile, row_group: int, column: Column) -> tuple[str, ...]:
    """Describe the statistics that the values of a chunk contradict, and what follows. Nothing is
    read if the footer states none.

    Raises UnreadableError and RefusedError if the values cannot be read.
    """
    check = StatisticsCheck(file.footer, row_group, column)
    if check.states_nothing or count_by_pages(file, row_group, column) is not None:
        return ()
    count = 0
    for values in file.values(row_group, column):
        check.add(values.extremes())
        count += len(values)
    return check.contradictions(count)


def count_by_pages(
    file: ParquetFile,
    row_group: int,
    column: Column,
    accepts: Callable[[memoryview], bool] = lambda hashes: True,
) -> int | None:
    """Count the values of a chunk if dictionaries and PLAIN pages show that they agree with the
    statistics, so that pyarrow need not decode them; None if not.

    `accepts` gets their hashes, run by run, and may decline them.
    """
    if column.max_repetition or not is_tested(file.footer.metadata.created_by):
        return None
    check = StatisticsCheck(file.footer, row_group, column)
    try:
        file.footer.ensure_counts(row_group, column)
        values = StoredValues(file, (row_group, column.index), check, counts_all=True)
        for hashes in filter(len, values.hashes()):
            if not accepts(hashes):
                return None
    except UnreadableError:
        return None
    return None if check.contradictions(values.count) else values.count
