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
        column = self._dialect.reference(self._request.path)
        for file in job.files:
            context = SessionContext(SessionConfig().with_target_partitions(1))
            context.register_parquet("t", file)
            types = context.sql(f"SELECT arrow_typeof({column}) AS kind FROM t LIMIT 1").to_pylist()
            if not types or types[0]["kind"] is None:  # the file has no rows
                continue
            kind = str(types[0]["kind"])
            condition = self._dialect.condition(column, kind, [self._request.text])
            with rows.timed():
                plan = context.sql(f"SELECT * FROM t WHERE {condition}").execution_plan()
                for partition in range(plan.partition_count):
                    batches = context.execute(plan, partition)
                    rows.add_batches(batch.to_pyarrow() for batch in batches)
            add_scan_metrics(plan, counts)
        return counts


def add_scan_metrics(plan: Any, counts: Counts) -> None:
    """Add the counts of the scans of an executed plan; a count that a release does not report
    becomes None."""
    for operator, metrics in plan.collect_metrics():
        if not operator.startswith("DataSourceExec"):
            continue
        values: dict[str, list[list[int]]] = {}
        sizes = []
        for metric in metrics.metrics():
            numbers = map(int, re.findall(r"\d+", str(metric).replace(",", "")))
            values.setdefault(metric.name, []).append(list(numbers))
            if metric.name == "bytes_scanned":
                sizes.append(metric.value)
        counts.row_groups_read = _add_counts(counts.row_groups_read, _count_read(values))
        is_counted = bool(sizes) and all(isinstance(size, int) for size in sizes)
        counts.bytes_read = _add_counts(counts.bytes_read, sum(sizes) if is_counted else None)


def _add_counts(total: int | None, more: int | None) -> int | None:
    """Add two counts; None if one of them is unknown."""
    if total is None or more is None:
        return None
    return total + more


def _count_read(values: dict[str, list[list[int]]]) -> int | None:
    """Return the number of row groups that remained after all pruning, from texts such as `4 total
    → 1 matched`."""
    if not all(name in values for name in _PRUNING_METRICS):
        return None
    total = 0
    num_skipped = 0
    for name in _PRUNING_METRICS:
        for numbers in values[name]:
            if len(numbers) != 2:
                return None
            examined, kept = numbers
            total = max(total, examined)
            num_skipped += examined - kept
    return total - num_skipped
