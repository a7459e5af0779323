"""The report on every column of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sbbf_tool.file.hits import FileAnswers, tuple_of_few
from sbbf_tool.frozen import replace
from sbbf_tool.reports.probe import (
    Hit,
    InconclusiveRowGroups,
    LongSequence,
    ProbeReport,
    RowMatch,
    UnfitValue,
)

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile


def merge_reports(file: ParquetFile, values: Any, reports: Sequence[ProbeReport]) -> ProbeReport:
    """Merge the reports of every column into one, in which hits and rows name the column."""
    hits: list[Hit] = []
    inconclusive: list[InconclusiveRowGroups] = []
    num_unfit: Counter[tuple[str, int]] = Counter()
    unreadable: list[str] = []
    warnings: dict[str, None] = {}
    num_rows = 0
    for report in reports:
        name_column = partial(replace, column=report.column)
        hits += map(name_column, report.hits)
        inconclusive += map(name_column, report.inconclusive)
        for value in report.unfit:
            num_unfit[value.value, value.position] += 1
        unreadable += report.unreadable
        warnings.update(dict.fromkeys(report.warnings))
        num_rows += len(report.rows)
    unfit = []
    for (text, position), count in num_unfit.items():
        if count == len(reports):
            unfit.append(UnfitValue(text, position, "no column can hold the value"))

    def rows() -> Iterator[tuple[object, ...]]:
        for report in reports:
            for row in report.rows:
                yield tuple(vars(row).values())

    all_rows = tuple_of_few(LongSequence(RowMatch, rows, num_rows))
    return FileAnswers(tuple(hits), tuple(inconclusive), all_rows, unreadable).report(
        file,
        len(values),
        column=None,
        type="any",
        unfit=tuple(unfit),
        warnings=tuple(warnings),
    )
