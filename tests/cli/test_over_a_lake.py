"""What a nightly run over a lake meets: new files among filtered ones, several schemas, empty partitions, runs that are repeated."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run

ROWS = 3000


@pytest.fixture
def lake(tmp_path):
    """Four days of files, of which the first two have their filters."""
    random = np.random.default_rng(7)
    for day in range(1, 5):
        folder = tmp_path / "lake" / f"dt=2026-01-0{day}"
        folder.mkdir(parents=True)
        table = pa.table({"id": random.integers(0, 1 << 60, ROWS), "note": pa.array(["x"] * ROWS)})
        pq.write_table(table, folder / "part.parquet", row_group_size=1000)
    for day in (1, 2):
        assert run(["add-filter", str(tmp_path / "lake" / f"dt=2026-01-0{day}"), "-c", "id", "--in-place"]) == 0
    return tmp_path / "lake"


def test_advice_over_several_schemas_reaches_each_file(lake, capsys):
    folder = lake / "dt=2026-01-05"
    folder.mkdir()
    keys = np.random.default_rng(8).integers(0, 1 << 60, ROWS)
    pq.write_table(pa.table({"key": keys}), folder / "part.parquet", row_group_size=1000)
    capsys.readouterr()
    assert run(["add-filter", str(lake), "--advise", "--in-place", "--format", "json"]) == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["column"] for document in documents[:-1] for row in document["filters"]} == {"id", "key"}
    assert run(["verify", str(lake)]) == 0
