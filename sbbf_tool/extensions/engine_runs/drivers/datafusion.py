"""DataFusion: reports how many row groups each means of pruning examined and kept."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any

from datafusion import SessionConfig, SessionContext

from sbbf_tool.extensions.engine_runs.dialects import DataFusionDialect
from sbbf_tool.extensions.engine_runs.measure import Counts, Job, QueryCondition, RowDigest

_PRUNING_METRICS = ("row_groups_pruned_statistics", "row_groups_pruned_bloom_filter")


class DataFusionDriver:
    version = version("datafusion")

    def __init__(self, request: QueryCondition) -> None:
        self._request = request
        self._dialect = DataFusionDialect()

    def run(self, job: Job, rows: RowDigest) -> Counts:
        counts = Counts(row_groups_read=0, bytes_read=0)
        for file in job.files:
            context = SessionContext(SessionConfig().with_target_partitions(1))
            context.register_parquet("t", file)
            column = self._dialect.reference(self._request.path)
            (row,) = context.sql(
                f"SELECT arrow_typeof({column}) AS kind FROM t LIMIT 1"
            ).to_pylist() or [{"kind": None}]
            if row["kind"] is None:  # the file has no rows
                continue
            condition = self._dialect.condition(column, str(row["kind"]), [self._request.text])
            with rows.timed():
                plan = context.sql(f"SELECT * FROM t WHERE {condition}").execution_plan()
                for partition in range(plan.partition_count):
                    rows.add_batches(
                        batch.to_pyarrow() for batch in context.execute(plan, partition)
                    )
            add_scan_metrics(plan, counts)
        return counts


def add_scan_metrics(plan: Any, counts: Counts) -> None:
    """Add the counts of the scans of an executed plan; a count that a release does not report
    becomes None."""
    for operator, metrics in plan.collect_metrics():
        if not operator.startswith("DataSourceExec"):
            continue
        values: dict[str, list[list[int]]] = {}
        for metric in metrics.metrics():
            values.setdefault(metric.name, []).append(
                [int(number) for number in re.findall(r"\d+", str(metric).replace(",", ""))]
            )
        read = _count_read(values)
        counts.row_groups_read = (
            None
            if read is None or counts.row_groups_read is None
            else counts.row_groups_read + read
        )
        sizes = [metric.value for metric in metrics.metrics() if metric.name == "bytes_scanned"]
        is_counted = all(isinstance(size, int) for size in sizes) and bool(sizes)
        counts.bytes_read = (
            counts.bytes_read + sum(sizes) if is_counted and counts.bytes_read is not None else None
        )


def _count_read(values: dict[str, list[list[int]]]) -> int | None:
    """Return the number of row groups that remained after all pruning, from texts such as `4 total
    → 1 matched`."""
    if not all(name in values for name in _PRUNING_METRICS):
        return None
    total = num_skipped = 0
    for name in _PRUNING_METRICS:
        for numbers in values[name]:
            if len(numbers) != 2:
                return None
            total = max(total, numbers[0])
            num_skipped += numbers[0] - numbers[1]
    return total - num_skipped
