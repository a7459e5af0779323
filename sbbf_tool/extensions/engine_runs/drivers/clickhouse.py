"""ClickHouse inside this process (chdb): counts the rows on which it computed the condition, which
are those of whole row groups.

Row groups that a filter excludes count in its event `ParquetReadRowGroups`, so that event shows
nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import chdb
from chdb import session

from sbbf_tool.extensions.engine_runs.dialects import ClickHouseDialect, escape_glob
from sbbf_tool.extensions.engine_runs.measure import (
    Counts,
    Job,
    QueryCondition,
    RowDigest,
    count_row_groups,
)

_ROWS = "ParquetRowsFilterExpression"
_PAGES = "ParquetReadPages"
_BYTES = "ReadBufferFromFileDescriptorReadBytes"
_SETTINGS = (
    "use_parquet_metadata_cache = 0",
    "storage_file_read_method = 'pread'",  # it does not count bytes that it maps into memory
    "input_format_parquet_page_filter_push_down = 0",  # so that whole row groups are counted
    "max_memory_usage = 2000000000",
)
_TABLES = {"Delta": "deltaLakeLocal", "Iceberg": "icebergLocal"}


class ClickHouseDriver:
    def __init__(self, request: QueryCondition) -> None:
        self._request = request
        self._dialect = ClickHouseDialect()
        # Bytes and text have one type in ClickHouse, and its dialect takes 0x.. for bytes.
        self._text = request.text
        if request.is_text and request.text.startswith("0x"):
            self._text = f"0x{request.text.encode().hex()}"
        opener: Any = session.Session
        self._session = opener(request.scratch)
        for setting in _SETTINGS:
            try:
                self._session.query(f"SET {setting}")
            except RuntimeError:  # a setting of other releases
                continue
        (row,) = self._ask("SELECT version() AS v")
        self.version = f"{row['v']} (chdb {chdb.__version__})"

    def run(self, job: Job, rows: RowDigest) -> Counts:
        total: Counter[str] = Counter()
        for source, names in self._sources(job):
            column = self._dialect.reference(self._request.path)
            types = self._ask(f"SELECT toTypeName({column}) AS kind FROM {source} LIMIT 1", names)
            if not types:
                continue
            kind = re.sub(r"\ANullable\((.*)\)\Z", r"\1", types[0]["kind"])
            condition = self._dialect.condition(column, kind, [self._text])
            before = self._events()
            self._query(f"{source} WHERE {condition}", names, rows, filters=job.filters)
            total += self._events() - before
        # The rows of tables, and of files with a single column, are counted nowhere.
        if not total[_ROWS] and total[_PAGES]:
            return Counts(bytes_read=total[_BYTES], pages_read=total[_PAGES])
        return Counts(
            count_row_groups(total[_ROWS], job.sizes), total[_ROWS], total[_BYTES], total[_PAGES]
        )

    def _sources(self, job: Job) -> Iterable[tuple[str, dict[str, str]]]:
        if job.table is not None and job.table_format is not None:
            os.chdir(os.path.dirname(job.table))  # it reads tables only below its working folder
            return [(f"{_TABLES[job.table_format]}({{path:String}})", {"path": job.table})]
        return [("file({path:String}, Parquet)", {"path": escape_glob(file)}) for file in job.files]

    def _query(
        self, condition: str, names: dict[str, str], rows: RowDigest, *, filters: bool
    ) -> None:
        """Add the number of rows, and the sum of their hashes, which the engine computes because it
        returns whole results only."""
        query = (
            "SELECT count() AS rows, sum(sipHash64(toString(tuple(*)))) AS hashes FROM "
            f"{condition} SETTINGS input_format_parquet_bloom_filter_push_down = {int(filters)}"
        )
        with rows.timed():
            (row,) = self._ask(query, names)
        rows.add_sum(int(row["rows"]), int(row["hashes"]))

    def _events(self) -> Counter[str]:
        events = self._ask(
            f"SELECT event, value FROM system.events WHERE event IN ('{_ROWS}', '{_PAGES}', "
            f"'{_BYTES}')"
        )
        return Counter({row["event"]: int(row["value"]) for row in events})

    def _ask(self, query: str, names: dict[str, str] | None = None) -> list[dict[str, Any]]:
        answer = self._session.query(query, "JSONEachRow", params=names or {}).bytes()
        return [json.loads(line) for line in answer.splitlines()]
