"""The queries of `sql_program` in another process, and what they answer."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from sbbf_tool import inspect, probe
from support.lake_folders import REPOSITORY


def run_queries(python: str | Path, address: str, path: Path) -> dict[str, list[object]]:
    command = [python, "-W", "ignore", REPOSITORY / "tests" / "support" / "sql_program.py", address, path]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    values: dict[str, list[object]] = json.loads(done.stdout)
    return values


def assert_answers(values: dict[str, list[object]], path: Path) -> None:
    num_filters = len(inspect(path).filters)
    hits = sorted(hit.value for hit in probe(path, "id", list(range(120))).hits)
    assert hits
    assert sorted(values.pop("hits"), key=str) == hits
    assert values == {
        "filters": [str(path)] * num_filters,
        "answers": ["absent"] * 4,
        "verified": [True] * num_filters,
        "may_contain": [False],
    }
