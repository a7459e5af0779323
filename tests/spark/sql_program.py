"""Queries of filters on a Spark Connect server: `sql_program.py ADDRESS FILE` prints a JSON object
with what it gets.

FILE has a column `id` of integers. `assert_answers` runs the program and compares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from sbbf_tool import inspect, probe


def assert_answers(python: str | Path, address: str, path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [python, "-W", "ignore", __file__, address, path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    num_filters = len(inspect(path).filters)
    hits = sorted(hit.value for hit in probe(path, "id", list(range(1000, 1600))).hits)
    assert hits
    assert json.loads(done.stdout) == {
        "filters": [str(path)] * num_filters,
        "answers": ["absent"] * 4,
        "verified": [True] * num_filters,
        "may_contain": [False],
        "hits": hits,
    }


def main(address: str, path: str) -> None:
    from sbbf_tool.spark import pipeline, probe_keys
    from sbbf_tool.spark.session import session
    from sbbf_tool.spark.shipping import ship

    spark = session(address)
    ship(spark)
    spark.createDataFrame([(path,)], "path string").createOrReplaceTempView("files")
    queries = {
        "filters": "SELECT f.file FROM files, LATERAL sbbf_filters(path) AS f",
        "answers": f"SELECT answer FROM sbbf_probe('{path}', 'id', 42)",
        "verified": f"SELECT is_verified FROM sbbf_verify('{path}')",
        "may_contain": "SELECT sbbf_may_contain(path, 'id', 42) FROM files",
    }
    values = {
        name: [row[0] for row in spark.sql(query).collect()] for name, query in queries.items()
    }
    lookup = probe_keys(pipeline.discover(spark, path), "id", spark.range(1000, 1600))
    values["hits"] = sorted(
        (hit[0] for (hits,) in lookup.select("report.hits").collect() for hit in hits), key=str
    )
    print(json.dumps(values))


if __name__ == "__main__":
    main(*sys.argv[1:])
