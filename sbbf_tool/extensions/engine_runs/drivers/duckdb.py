"""DuckDB: reads filters whatever the settings, and reports scanned row groups in its profile, since
version 2.0."""

from __future__ import annotations

import json

import duckdb

from sbbf_tool.extensions.engine_runs.dialects import DuckDBDialect
from sbbf_tool.extensions.engine_runs.measure import Counts, Job, QueryCondition, RowDigest
from sbbf_tool.writers.writer import write_sql

_BATCH_ROWS = 10_000


class DuckDBDriver:
    version = str(duckdb.__version__)

    def __init__(self, request: QueryCondition) -> None:
        self._request = request
        self._dialect = DuckDBDialect()
        self._connection = duckdb.connect()
        self._set(
            "TimeZone = 'UTC'",
            "memory_limit = '2GB'",
            f"temp_directory = {write_sql(request.scratch)}",
        )
        # Otherwise a second run reads nothing.
        self._set("enable_external_file_cache = false", "autoinstall_known_extensions = false")

    def run(self, job: Job, rows: RowDigest) -> Counts:
        source = self._source(job)
        column = self._dialect.reference(self._request.path)
        ((kind,),) = self._connection.execute(
            f"SELECT column_type FROM (DESCRIBE SELECT {column} FROM {source})"
        ).fetchall()
        condition = self._dialect.condition(column, str(kind), [self._request.text])
        query = f"SELECT * FROM {source} WHERE {condition}"
        rows_of_profile = self._connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {query}"
        ).fetchall()
        counts = counts_of_profile(json.loads(rows_of_profile[0][1]))
        with rows.timed():
            result = self._connection.sql(query)
            # Older releases lack the first name, newer ones the second.
            if hasattr(result, "to_arrow_reader"):
                reader = result.to_arrow_reader(_BATCH_ROWS)
            else:
                reader = result.fetch_arrow_reader(_BATCH_ROWS)
            rows.add_batches(reader)
        return counts

    def _source(self, job: Job) -> str:
        files = ", ".join(map(write_sql, job.files))
        return f"read_parquet([{files}], hive_partitioning = false, union_by_name = true)"

    def _set(self, *settings: str) -> None:
        for setting in settings:
            try:
                self._connection.execute(f"SET {setting}")
            except duckdb.Error:  # a setting of other releases
                continue


def counts_of_profile(profile: dict[str, dict[str, int]]) -> Counts:
    """Return the counts in a profile; releases before 2.0 write none."""
    query = profile.get("query")
    if not isinstance(query, dict):
        return Counts()
    return Counts(
        row_groups_read=query.get("total_row_groups_scanned"),
        rows_scanned=query.get("total_rows_scanned"),
        bytes_read=profile.get("io", {}).get("total_bytes_read"),
    )
