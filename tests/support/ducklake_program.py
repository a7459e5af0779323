"""A DuckDB with its DuckLake extension, in a process of its own: each line of standard input is
SQL, each line of output its rows as JSON.

Arguments: folders of the packages with extensions. It runs in an environment that has nothing of
this repository.
"""

import importlib
import json
import sys
from pathlib import Path

import duckdb


def main() -> None:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for package in sys.argv[1:]:
        folder = Path(importlib.import_module(package).__file__).parent
        connection.load_extension(str(next(folder.rglob("*.duckdb_extension"))))
    for line in sys.stdin:
        try:
            answer = {"rows": connection.execute(json.loads(line)).fetchall()}
        except duckdb.Error as error:
            answer = {"error": str(error)}
        print(json.dumps(answer, default=str), flush=True)


main()
