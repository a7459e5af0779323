"""The statistics of a column chunk, compared with all its values, which are read for this purpose.

Verification of a filter does the same on its way (`membership`); here no filter is needed.
"""

from __future__ import annotations

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
    if StatisticsCheck(file.footer, row_group, column).states_nothing:
        return ()
    if _agrees_with_pages(file, row_group, column):
        return ()
    from sbbf_tool.parquet.values import read_chunk

    check = StatisticsCheck(file.footer, row_group, column)
    count = 0
    pages = file.pages(row_group, column)
    for values in read_chunk(file.footer, row_group, column, pages):
        check.add(values.extremes())
        count += len(values)
    return check.contradictions(count)


def _agrees_with_pages(file: ParquetFile, row_group: int, column: Column) -> bool:
    """Return whether the values agree with the statistics as far as dictionaries and PLAIN pages
    show it, which pyarrow then need not decode."""
    if column.max_repetition or not is_tested(file.footer.metadata.created_by):
        return False
    check = StatisticsCheck(file.footer, row_group, column)
    try:
        file.footer.ensure_counts(row_group, column)
        values = StoredValues(file, (row_group, column.index), check, counts_all=True)
        for _ in values.hashes():
            pass
    except UnreadableError:
        return False
    return not check.contradictions(values.count)
