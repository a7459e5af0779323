"""Facts about column chunks without a filter whose values are read because a rule about them is
selected by name: `check` otherwise reads only chunks that have a filter."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sbbf_tool.errors import AuthenticationError, RefusedError, UnreadableError
from sbbf_tool.file.parallel import Meter, in_parallel
from sbbf_tool.frozen import replace
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, StatisticsFacts

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet.columns import Column
    from sbbf_tool.parquet.splice import ChunkKey

RULES_ABOUT_STATISTICS = frozenset({"wrong-statistics", "wrong-null-count"})


def with_statistics(file: ParquetFile, facts: Sequence[ColumnFacts]) -> tuple[ColumnFacts, ...]:
    """Return the facts with those about the statistics of chunks without a filter; all their values
    are read."""
    bare = {
        (chunk.row_group, column.column.index): chunk
        for column in facts
        for chunk in column.chunks
        if chunk.verification is None and chunk.oversized_page is None
    }
    meter = Meter(file.run.progress, sum(chunk.chunk_bytes for chunk in bare.values()))

    def look(key: ChunkKey) -> ChunkFacts:
        column = file.footer.columns[key[1]]
        statistics = _compare(file, key[0], column)
        meter.advance(f"reading {column.name}", bare[key].chunk_bytes)
        return dataclasses.replace(bare[key], statistics=statistics)

    read = in_parallel(look, bare, file.run.jobs)
    return tuple(
        replace(
            column,
            chunks=tuple(
                read.get((chunk.row_group, column.column.index), chunk) for chunk in column.chunks
            ),
        )
        for column in facts
    )


def _compare(file: ParquetFile, row_group: int, column: Column) -> StatisticsFacts:
    from sbbf_tool.file.wrong_statistics import find_wrong_statistics

    if reason := file.encryption_of(row_group, column):
        return StatisticsFacts(problem=reason)
    try:
        return StatisticsFacts(find_wrong_statistics(file, row_group, column))
    except AuthenticationError:
        raise
    except (UnreadableError, RefusedError) as error:
        return StatisticsFacts(problem=error.message)


def unread_statistics(facts: Sequence[ColumnFacts]) -> Iterator[str]:
    """Yield place and reason for each chunk without a filter whose values cannot be read."""
    for column in facts:
        for chunk in column.chunks:
            if chunk.statistics is not None and chunk.statistics.problem is not None:
                yield f"column {column.name}, row group {chunk.row_group}: {chunk.statistics.problem}"
