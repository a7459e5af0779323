"""Executors that are processes of their own: a local cluster, and a Spark Connect server without
the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest

from sbbf_tool import add_filters, check, inspect, verify
from sbbf_tool.file.keys import read_keys
from sbbf_tool.spark.shipping import ZIP_NAME, write_zip
from spark.sql_program import assert_answers
from support.clusters import (
    CLUSTER,
    REPOSITORY,
    Run,
    connect_server,
    run_program,
    settings_of_spark,
)
from support.lakes import digests, large_file, mixed, small_files
from support.shown_keys import KEYS, assert_no_key

pytestmark = [pytest.mark.engines, pytest.mark.heavy]
pytest.importorskip("pyspark")
LAKE_PROGRAM = Path(__file__).with_name("lake_program.py")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a Connect server, and the folder of its log and its event log, which its UI
    and a history server show."""
    pytest.importorskip("grpc")
    folder = tmp_path_factory.mktemp("server")
    (folder / "events").mkdir()
    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder / "events",
        "spark.eventLog.compress": "false",
    }
    with connect_server(folder, **logged) as address:
        yield address, folder


def run_sbbf(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "sbbf_tool", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@pytest.fixture
def lake(tmp_path, fixtures):
    folder = tmp_path / "lake"
    folder.mkdir()
    for number in range(3):
        add_filters(
            fixtures / "events.parquet",
            ["user_id", "session"],
            output=folder / f"{number}-events.parquet",
        )
    (folder / "broken.parquet").write_text("no Parquet file")
    return folder


def assert_read(result: dict, lake: Path) -> None:
    """Every row, and every finding, is what this process says."""
    files = sorted(str(file) for file in lake.glob("*-events.parquet"))
    expected = [
        (file, row.row_group, row.column, row.fill_ratio)
        for file in files
        for row in inspect(file).filters
    ]
    assert [
        (row["file"], row["row_group"], row["column"], row["fill_ratio"])
        for row in result["rows"]
        if row["status"] == "ok"
    ] == expected
    assert [row["file"] for row in result["rows"] if row["status"] != "ok"] == [
        str(lake / "broken.parquet")
    ]
    assert result["chosen"] == 9
    assert sorted(rule for rule in result["rules"] if rule) == sorted(
        finding.rule for file in files for finding in check(file).findings
    )


def test_a_cluster_whose_workers_get_the_package_from_the_driver(lake, tmp_path):
    result = run_program(LAKE_PROGRAM, CLUSTER, str(lake), "ship", folder=tmp_path)
    assert_read(result, lake)
    assert len({worker["parent"] for worker in result["workers"]}) == 2
    assert all(
        ZIP_NAME in worker["place"] and worker["kernel"] == "numpy" for worker in result["workers"]
    )


def test_a_connect_server_gets_the_package_from_its_client(lake, tmp_path, server):
    result = run_program(LAKE_PROGRAM, server[0], str(lake), "ship", folder=tmp_path)
    assert_read(result, lake)
    assert all(
        ZIP_NAME in worker["place"] and worker["kernel"] == "numpy" for worker in result["workers"]
    )


def test_functions_of_sql_on_a_connect_server(fixtures, server):
    assert_answers(sys.executable, server[0], fixtures / "pyarrow-filters.parquet")


def test_a_connect_server_shows_no_key(tmp_path, fixtures, server):
    """Keys go to it in the function that is to be mapped."""
    pytest.importorskip("cryptography")
    address, folder = server
    path = shutil.copy(
        fixtures / "encrypted" / "java-signed.parquet.encrypted", tmp_path / "signed.parquet"
    )
    done = run_sbbf(
        "add-filter", path, "-c", "name", "--in-place", "--keys", KEYS, "--on", f"spark:{address}"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert [result.is_verified for result in verify(path, keys=read_keys(str(KEYS))).filters] == [
        True
    ] * 3
    logs = [
        path
        for path in (folder / "events").rglob("*")
        if path.is_file() and not path.name.endswith(".crc")
    ]
    output = (
        done.stdout
        + done.stderr
        + b"".join(path.read_bytes() for path in (*logs, folder / "server.txt")).decode("latin-1")
    )
    assert "SparkListenerConnectOperationStarted" in output
    assert "SparkListenerSQLExecutionStart" in output
    assert_no_key(output)


def test_executors_with_another_version(tmp_path):
    source, other, lake = tmp_path / "source.zip", tmp_path / "other.zip", mixed(tmp_path / "lake")
    before = digests(lake)
    write_zip(source)
    with ZipFile(source) as archive, ZipFile(other, "w") as changed:
        for name in archive.namelist():
            changed.writestr(
                name,
                archive.read(name)
                + (b'__version__ = "9.9"\n' if name == "sbbf_tool/__init__.py" else b""),
            )
    settings = settings_of_spark(tmp_path, [f"spark.submit.pyFiles={other}"])
    done = run_sbbf(
        "add-filter", lake, "-c", "id", "--in-place", "--on", "spark:local[1]", *settings
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"sbbf: executors have sbbf-tool 9.9, and the driver has {version('sbbf-tool')}; "
    )
    assert done.stderr.count("\n") == 1
    assert digests(lake) == before


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
            sums += [
                line for line in run.read_output().splitlines() if line.startswith("5 files: ")
            ]
        bytes_of_lake.append(digests(lake))
        assert all(bytes_of_lake[-1][name] != digest for name, digest in before.items())
    assert bytes_of_lake[0] == bytes_of_lake[1]
    assert len(sums) == 2
    assert sums[0] == sums[1]


def test_an_unreachable_master(lake):
    """One line of ours, before Spark begins its retries."""
    done = run_sbbf("inspect", lake, "--on", "spark:spark://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "sbbf: spark://127.0.0.1:1: the server cannot be reached: " in done.stderr
    assert "Traceback" not in done.stderr
