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
        kind = schema.field(self._request.path[0]).type
        column = polars.col(self._request.path[0])
        for name in self._request.path[1:]:
            kind, column = kind.field(name).type, column.struct.field(name)
        # An item of the series would lose nanoseconds.
        series = polars.Series(polars.from_arrow(parse_texts([self._request.text], kind)))
        matching = scan.filter(column == polars.lit(series))
        with rows.timed():
            is_streaming = hasattr(matching, "collect_batches")
            frames: Iterable[polars.DataFrame] = (
                matching.collect_batches() if is_streaming else [matching.collect()]
            )
            rows.add_batches(batch for frame in frames for batch in frame.to_arrow().to_batches())
        return Counts()
