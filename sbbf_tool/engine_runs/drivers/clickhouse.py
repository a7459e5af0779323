"""ClickHouse inside this process (chdb): counts the rows on which it computed the condition, which are those of whole row groups.

Row groups that a filter excludes count in its event `ParquetReadRowGroups`, so that event shows nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import chdb
from chdb import session

from sbbf_tool.engine_runs.dialects import ClickHouseDialect
from sbbf_tool.engine_runs.measure import Counts, Job, Request, Rows, count_row_groups

_ROWS, _BYTES = "ParquetRowsFilterExpression", "ReadBufferFromFileDescriptorReadBytes"
_SETTINGS = (
    "use_parquet_metadata_cache = 0",
    "input_format_parquet_page_filter_push_down = 0",  # so that whole row groups are counted
    "max_memory_usage = 2000000000",
)
_TABLES = {"Delta": "deltaLakeLocal", "Iceberg": "icebergLocal"}


class Driver:
    def __init__(self, request: Request) -> None:
        self._request = request
        self._dialect = ClickHouseDialect()
        self._session: Any = _open(request.scratch)
        for setting in _SETTINGS:
            try:
                self._session.query(f"SET {setting}")
            except RuntimeError:  # a setting of other releases
                continue
        self.version = f"{self._ask('SELECT version() AS v')[0]['v']} (chdb {chdb.__version__})"

    def run(self, job: Job, rows: Rows) -> Counts:
        before = self._events()
        for source, names in self._sources(job):
            self._query(source, names, rows, filters=job.filters)
        after = self._events()
        scanned = after.get(_ROWS, 0) - before.get(_ROWS, 0)
        read = count_row_groups(scanned, job.sizes)
        return Counts(row_groups_read=read, rows_scanned=scanned, bytes_read=after.get(_BYTES, 0) - before.get(_BYTES, 0))

    def _sources(self, job: Job) -> Iterable[tuple[str, dict[str, str]]]:
        if job.table is not None and job.table_format is not None:
            os.chdir(os.path.dirname(job.table))  # it reads tables only below its working folder
            return [(f"{_TABLES[job.table_format]}({{path:String}})", {"path": job.table})]
        return [("file({path:String}, Parquet)", {"path": _escape_glob(file)}) for file in job.files]

    def _query(self, source: str, names: dict[str, str], rows: Rows, *, filters: bool) -> None:
        """Add the number of rows, and the sum of their hashes, which the engine computes because it returns whole results only."""
        column = self._dialect.reference(self._request.path)
        types = self._ask(f"SELECT toTypeName({column}) AS kind FROM {source} LIMIT 1", names)
        if not types:
            return
        kind = types[0]["kind"].removeprefix("Nullable(").removesuffix(")" if types[0]["kind"].startswith("Nullable(") else "")
        condition = self._dialect.condition(column, kind, [self._request.text])
        setting = f"SETTINGS input_format_parquet_bloom_filter_push_down = {int(filters)}"
        hashes = "sum(sipHash64(toString(tuple(*))))"
        with rows.timed():
            (row,) = self._ask(f"SELECT count() AS rows, {hashes} AS hashes FROM {source} WHERE {condition} {setting}", names)
        rows.add_sum(int(row["rows"]), int(row["hashes"]))

    def _events(self) -> dict[str, int]:
        events = self._ask(f"SELECT event, value FROM system.events WHERE event IN ('{_ROWS}', '{_BYTES}')")
        return {row["event"]: int(row["value"]) for row in events}

    def _ask(self, query: str, names: dict[str, str] | None = None) -> list[dict[str, Any]]:
        answer = self._session.query(query, "JSONEachRow", params=names or {}).bytes()
        return [json.loads(line) for line in answer.splitlines()]


def _open(folder: str) -> Any:
    opener: Any = session.Session
    return opener(folder)


def _escape_glob(path: str) -> str:
    return "".join(f"\\{letter}" if letter in "*?{}[]\\" else letter for letter in path)
