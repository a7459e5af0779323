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
    bare = {}
    for column in facts:
        for chunk in column.chunks:
            if chunk.verification is None and chunk.oversized_page is None:
                bare[chunk.row_group, column.column.index] = chunk
    meter = Meter(file.context.progress, sum(chunk.chunk_bytes for chunk in bare.values()))

    def look(key: ChunkKey) -> ChunkFacts:
        row_group, index = key
        column = file.footer.columns[index]
        statistics = _compare(file, row_group, column)
        meter.advance(f"reading {column.name}", bare[key].chunk_bytes)
        return dataclasses.replace(bare[key], statistics=statistics)

    compared = in_parallel(look, bare, file.context.jobs)
    columns = []
    for column in facts:
        index = column.column.index
        chunks = [compared.get((chunk.row_group, index), chunk) for chunk in column.chunks]
        columns.append(replace(column, chunks=tuple(chunks)))
    return tuple(columns)


def _compare(file: ParquetFile, row_group: int, column: Column) -> StatisticsFacts:
    from sbbf_tool.file.wrong_statistics import find_wrong_statistics

    missing_key = file.encryption_of(row_group, column)
    if missing_key:
        return StatisticsFacts(problem=missing_key)
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
            statistics = chunk.statistics
            if statistics is not None and statistics.problem is not None:
                place = f"column {column.name}, row group {chunk.row_group}"
                yield f"{place}: {statistics.problem}"
