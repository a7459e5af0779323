"""Threads that look up different values in one process do not get each other's answers."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import add_filters, probe

STORED, ABSENT = ("1", "2", "3"), ("-1", "-2", "-3")


def test_each_thread_gets_its_own_answer(tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": np.arange(1000)}), path)
    add_filters(path, ["n"], in_place=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            reports = pool.map(lambda values: probe(path, "n", values, filters_only=True), [STORED, ABSENT] * 40)
            hits = [tuple(value.value for value in report.values if not value.is_absent) for report in reports]
    finally:
        sys.setswitchinterval(interval)
    assert hits == [STORED, ()] * 40
