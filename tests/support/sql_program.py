"""Program that queries filters on a Spark Connect server: `sql_program.py ADDRESS FILE`. It prints a JSON object with what it gets.

FILE has a column `id` of integers.
"""

from __future__ import annotations

import json
import sys

from sbbf_tool.spark import pipeline
from sbbf_tool.spark.session import session
from sbbf_tool.spark.shipping import ship


def main(address: str, path: str) -> None:
    spark = session(address)
    ship(spark)
    spark.createDataFrame([(path,)], "path string").createOrReplaceTempView("files")
    queries = {
        "filters": "SELECT f.file FROM files, LATERAL sbbf_filters(path) AS f",
        "answers": f"SELECT answer FROM sbbf_probe('{path}', 'id', 42)",
        "verified": f"SELECT is_verified FROM sbbf_verify('{path}')",
        "may_contain": "SELECT sbbf_may_contain(path, 'id', 42) FROM files",
    }
    values = {name: [row[0] for row in spark.sql(query).collect()] for name, query in queries.items()}
    lookup = pipeline.probe_keys(pipeline.discover(spark, path), "id", spark.range(120))
    values["hits"] = [hit[0] for (hits,) in lookup.select("report.hits").collect() for hit in hits]
    print(json.dumps(values))


main(*sys.argv[1:])
