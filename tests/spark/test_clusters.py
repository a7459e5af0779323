"""The data source where executors are processes of their own: a local cluster, and a Spark Connect server without the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sbbf_tool import add_filters, check, inspect
from sbbf_tool.spark.shipping import ZIP_NAME
from support.lake_cluster import Run
from support.lake_folders import CLUSTER, LAKE_PROGRAM, REPOSITORY, connect_server, run_program
from support.lakes import digests, large_file, small_files

pytestmark = [pytest.mark.engines]
pytest.importorskip("pyspark")


@pytest.fixture
def lake(tmp_path, fixtures):
    folder = tmp_path / "lake"
    folder.mkdir()
    for number in range(3):
        add_filters(fixtures / "events.parquet", ["user_id", "session"], output=folder / f"{number}-events.parquet")
    (folder / "broken.parquet").write_text("no Parquet file")
    return folder


def assert_read(result: dict, lake: Path) -> None:
    """Every row, and every finding, is what this process says."""
    files = sorted(str(file) for file in lake.glob("*-events.parquet"))
    expected = [(file, row.row_group, row.column, row.fill_ratio) for file in files for row in inspect(file).filters]
    assert [
        (row["file"], row["row_group"], row["column"], row["fill_ratio"]) for row in result["rows"] if row["status"] == "ok"
    ] == expected
    assert [row["file"] for row in result["rows"] if row["status"] != "ok"] == [str(lake / "broken.parquet")]
    assert result["chosen"] == 9
    assert sorted(rule for rule in result["rules"] if rule) == sorted(finding.rule for file in files for finding in check(file).findings)


@pytest.mark.heavy
def test_a_cluster_of_worker_processes(lake, tmp_path):
    """The format is not registered: workers find the module `pyspark_sbbf`."""
    result = run_program(sys.executable, str(LAKE_PROGRAM), CLUSTER, str(lake), folder=tmp_path, PYTHONPATH=str(REPOSITORY))
    assert_read(result, lake)
    assert len({worker["parent"] for worker in result["workers"]}) == 2
    assert {worker["place"] for worker in result["workers"]} == {str(REPOSITORY / "sbbf_tool" / "__init__.py")}


@pytest.mark.heavy
def test_a_cluster_whose_workers_get_the_package_from_the_driver(lake, tmp_path):
    result = run_program(sys.executable, str(LAKE_PROGRAM), CLUSTER, str(lake), "ship", folder=tmp_path)
    assert_read(result, lake)
    assert len({worker["parent"] for worker in result["workers"]}) == 2
    assert all(ZIP_NAME in worker["place"] and worker["kernel"] == "numpy" for worker in result["workers"])


@pytest.mark.heavy
def test_a_connect_server_gets_the_package_from_its_client(lake, tmp_path):
    pytest.importorskip("grpc")
    with connect_server(tmp_path) as address:
        result = run_program(sys.executable, str(LAKE_PROGRAM), address, str(lake), "ship", folder=tmp_path)
    assert_read(result, lake)
    assert all(ZIP_NAME in worker["place"] and worker["kernel"] == "numpy" for worker in result["workers"])


@pytest.mark.heavy(minutes=3)
def test_a_cluster_writes_the_same_bytes_as_one_process(tmp_path):
    bytes_of_lake, sums = [], []
    for number, master in enumerate(("local[1]", CLUSTER)):
        scratch = tmp_path / str(number)
        lake = small_files(scratch / "lake", 4)
        large_file(lake / "large.parquet", row_groups=3, rows_a_group=5_000)
        before = digests(lake)
        with Run(lake, scratch, "-c", "id", "-c", "name", master=master) as run:
            assert run.process.wait() == 0, run.read_output()
            sums += [line for line in run.read_output().splitlines() if line.startswith("5 files: ")]
        bytes_of_lake.append(digests(lake))
        assert all(bytes_of_lake[-1][name] != digest for name, digest in before.items())
    assert bytes_of_lake[0] == bytes_of_lake[1]
    assert len(sums) == 2
    assert sums[0] == sums[1]


@pytest.mark.heavy
def test_an_unreachable_master(lake):
    """One line of ours, before Spark begins its retries."""
    command = [sys.executable, "-m", "sbbf_tool", "inspect", str(lake), "--master", "spark://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sbbf: spark://127.0.0.1:1: the server cannot be reached: " in done.stderr
    assert "Traceback" not in done.stderr
