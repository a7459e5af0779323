"""Sail, a query engine with its own Delta implementation, in a process of its own: SQL and rows as
in ducklake_program.

It runs in an environment that has nothing of this repository.
"""

import json
import sys

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession


def main() -> None:
    server = SparkConnectServer()
    server.start()
    _, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
    for line in sys.stdin:
        try:
            answer = {"rows": [list(row) for row in session.sql(json.loads(line)).collect()]}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer, default=str), flush=True)
    session.stop()
    server.stop()


main()
