"""Polars: prunes by statistics only, and reports nothing about it."""

from __future__ import annotations

from collections.abc import Iterable

import polars
import pyarrow.parquet as pq

from sbbf_tool.extensions.engine_runs.dialects import parse_texts
from sbbf_tool.extensions.engine_runs.measure import Counts, Job, QueryCondition, RowDigest


class PolarsDriver:
    version = polars.__version__

    def __init__(self, request: QueryCondition) -> None:
        self._request = request

    def run(self, job: Job, rows: RowDigest) -> Counts:
        if job.table is None:
            scan = polars.scan_parquet(job.files, glob=False, hive_partitioning=False)
            schema = pq.read_schema(job.files[0])
        else:
            scan = polars.scan_delta(job.table)
            schema = scan.collect_schema().to_frame().to_arrow().schema
        first, *fields = self._request.path
        kind = schema.field(first).type
        column = polars.col(first)
        for name in fields:
            kind = kind.field(name).type
            column = column.struct.field(name)
        # An item of the series would lose nanoseconds.
        series = polars.Series(polars.from_arrow(parse_texts([self._request.text], kind)))
        matching = scan.filter(column == polars.lit(series))
        with rows.timed():
            for frame in _collect(matching):
                rows.add_batches(frame.to_arrow().to_batches())
        return Counts()


def _collect(frame: polars.LazyFrame) -> Iterable[polars.DataFrame]:
    """Return the rows in batches, as releases can that have them, or as a whole."""
    if hasattr(frame, "collect_batches"):
        return frame.collect_batches()
    return [frame.collect()]
