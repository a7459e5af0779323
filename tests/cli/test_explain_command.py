"""`sbbf explain` on the command line."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from support.tables import each


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"n": list(range(-100, 100, 2))}), path, row_group_size=50)
    assert run(["add-filter", str(path), "-c", "n", "--in-place"]) == 0
    return str(path)


@each("value, code", [("-4", 0), ("-3", 1), ("500", 1), ("x", 2)])
def test_exit_codes(numbers, value, code):
    assert run(["explain", numbers, "n", value]) == code


def test_a_table_of_row_groups_and_a_table_of_engines(numbers, capfd):
    capfd.readouterr()
    assert run(["explain", numbers, "n", "51"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].endswith("column n, INT64, value 51")
    assert [line.split()[5:] for line in lines[2:4]] == [["absent", "absent", "absent"], ["maybe", "absent", "absent"]]
    assert any("Spark" in line and "100" in line.split() for line in lines[5:])
    assert any("Polars" in line and line.split()[-2:] != ["100", "%"] for line in lines[5:])


def test_two_values(fixtures, capfd):
    assert run(["explain", str(fixtures / "events.parquet"), "user_id", "42", "43"]) == 2
    assert "user_id is not a file: explain takes one value after the column" in capfd.readouterr().err
    assert run(["explain", str(fixtures / "events.parquet"), "no.parquet", "user_id", "42"]) == 3
    assert "explain takes one value" not in capfd.readouterr().err


@each("seconds", ["-1", "0", "nan", "inf", "1e300"])
def test_a_time_that_is_no_limit(capfd, seconds):
    assert run(["explain", "f.parquet", "id", "-1", "--run", "pyarrow", "--timeout", seconds]) == 2
    assert f"the time limit must be above 0, and at most 2,592,000 seconds (30 days), not {float(seconds):g}" in capfd.readouterr().err
