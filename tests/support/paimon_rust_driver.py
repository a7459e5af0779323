"""Run by an interpreter that has pypaimon-rust: a request as JSON on standard input, its answer as JSON on standard output.

make    tables of fixed shapes below `warehouse`; their names
query   for each SQL query, the rows as lists, or the error's text
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from typing import Any

import pyarrow as pa
from pypaimon_rust.datafusion import SQLContext

COLUMNS = {
    "id": "BIGINT",
    "s": "STRING",
    "b": "BYTEA",
    "ti": "TINYINT",
    "si": "SMALLINT",
    "n": "INT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "dt": "DATE",
    "ts3": "TIMESTAMP(3)",
    "ts6": "TIMESTAMP(6)",
    "ts9": "TIMESTAMP(9)",
    "é😀": "STRING",
}


def rows(first: int) -> pa.RecordBatch:
    ids = range(first, first + 60, 2)
    times = [dt.datetime(1950 + at % 100, 1, 1, 1, 2, 3, 456789 + at) for at in ids]
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "s": [f"value {at}" if at % 9 else None for at in ids],
            "b": pa.array([b"b%d" % at for at in ids]),
            "ti": pa.array([at % 100 - 50 for at in ids], pa.int8()),
            "si": pa.array([at - 20 for at in ids], pa.int16()),
            "n": pa.array([at * 1000 - 20 for at in ids], pa.int32()),
            "f": pa.array([at / 7 if at % 5 else float("nan") for at in ids], pa.float32()),
            "d": pa.array([-at / 7 for at in ids]),
            "dt": pa.array([dt.date(1960, 1, 1) + dt.timedelta(at % 8) for at in ids]),
            "ts3": pa.array(times, pa.timestamp("us")).cast(pa.timestamp("ms"), safe=False),
            "ts6": pa.array(times, pa.timestamp("us")),
            "ts9": pa.array(times, pa.timestamp("us")).cast(pa.timestamp("ns")),
            "é😀": [f"x{at}" for at in ids],
        }
    )


def make(context: SQLContext, outside: str) -> list[str]:
    prefix = "file-index.bloom-filter."
    indexed = {prefix + "columns": ",".join(COLUMNS)} | {f"{prefix}{name}.items": "40" for name in COLUMNS}
    in_file = {"file-index.in-manifest-threshold": "1 b"}
    shapes: dict[str, tuple[dict[str, str], str]] = {
        "in_file": (indexed | in_file, ""),
        "embedded": (indexed | {"file-index.in-manifest-threshold": "1 mb"}, ""),
        "partitioned": (indexed, "PARTITIONED BY (dt)"),
        "tracked": (indexed | {"row-tracking.enabled": "true"}, ""),
        "elsewhere": (
            indexed | in_file | {"data-file.external-paths": f"file://{outside}", "data-file.external-paths.strategy": "round-robin"},
            "",
        ),
        "moved": (indexed | {"data-file.path-directory": "data"}, ""),
        "plain_file": (in_file, ""),
        "plain_embedded": ({"file-index.in-manifest-threshold": "1 mb"}, ""),
        "plain_partitioned": ({}, "PARTITIONED BY (dt)"),
        "plain_tracked": ({"row-tracking.enabled": "true"}, ""),
    }
    fields = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    for at, first in enumerate((0, 1)):
        context.register_batch(f"rows{at}", rows(first))
    for name, (options, partitioned) in shapes.items():
        settings = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        context.sql(f"CREATE TABLE p.fx.{name} ({fields}) {partitioned} WITH ({settings})")
        for at in range(2):
            context.sql(f"INSERT INTO p.fx.{name} SELECT * FROM rows{at}")
    return list(shapes)


def run_queries(context: SQLContext, queries: list[str]) -> list[Any]:
    answers: list[Any] = []
    for query in queries:
        batches = context.sql(query)
        answers.append([[str(cell) for cell in row.values()] for batch in batches for row in batch.to_pylist()])
    return answers


def main() -> None:
    question = json.load(sys.stdin)
    context = SQLContext()
    context.register_catalog("p", {"warehouse": question["warehouse"]})
    if question["command"] == "make":
        context.sql("CREATE SCHEMA IF NOT EXISTS p.fx")
        context.set_current_catalog("p")
        context.set_current_database("fx")
        print(json.dumps(make(context, question["outside"])))
    else:
        print(json.dumps(run_queries(context, question["queries"])))


main()
