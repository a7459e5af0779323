"""Commands where Spark is elsewhere: a cluster of processes, a Connect server without the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sbbf_tool import verify
from sbbf_tool.file.keys import read_keys
from support.lake_folders import CLUSTER, REPOSITORY, connect_server
from support.shown_keys import KEYS, assert_no_key

pytestmark = [pytest.mark.engines, pytest.mark.heavy]
pytest.importorskip("pyspark")


@pytest.fixture
def lake(tmp_path, fixtures):
    folder = tmp_path / "lake"
    for day in (1, 2, 3):
        (folder / f"day={day}").mkdir(parents=True)
        shutil.copyfile(fixtures / "events.parquet", folder / f"day={day}" / "events.parquet")
    (folder / "day=3" / "broken.parquet").write_text("no Parquet file")
    return folder


def add_filters(lake: Path, folder: Path, *command: str, runner: tuple[str, ...] = ()) -> dict[str, str]:
    """Runs the command on all days but the first; answers with the status of each file."""
    words = [*command, "add-filter", str(lake), "-c", "user_id", "--in-place", "--where", "day >= 2", "--format", "json", *runner]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 3, done.stderr[-3000:]
    assert f"sbbf: {lake}/day=3/broken.parquet: " in done.stdout + done.stderr  # spark-submit makes one stream of both
    documents = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert documents.pop()["schema"] == "sbbf.summary"
    return {document["file"].removeprefix(f"{lake}/"): document.get("status", "ok") for document in documents}


EXPECTED = {"day=2/events.parquet": "ok", "day=3/events.parquet": "ok", "day=3/broken.parquet": "failed"}


def assert_done(lake: Path, statuses: dict[str, str]) -> None:
    assert statuses == EXPECTED
    assert [len(verify(lake / f"day={day}" / "events.parquet").filters) for day in (1, 2, 3)] == [0, 3, 3]
    assert all(result.is_verified for day in (2, 3) for result in verify(lake / f"day={day}" / "events.parquet").filters)


def test_on_a_cluster_of_processes(lake, tmp_path):
    assert_done(lake, add_filters(lake, tmp_path, sys.executable, "-m", "sbbf_tool", runner=("--master", CLUSTER)))


def test_on_a_connect_server_without_the_package(lake, tmp_path):
    pytest.importorskip("grpc")
    with connect_server(tmp_path) as address:
        assert_done(lake, add_filters(lake, tmp_path, sys.executable, "-m", "sbbf_tool", runner=("--master", address)))


def test_a_connect_server_shows_no_key(lake, tmp_path, fixtures):
    """Keys go to it in the function that is to be mapped. Its event log is what its UI and a history server show."""
    pytest.importorskip("grpc")
    pytest.importorskip("cryptography")
    signed, events = lake / "day=1" / "signed.parquet", tmp_path / "events"
    shutil.copy(fixtures / "encrypted" / "java-signed.parquet.encrypted", signed)
    events.mkdir()
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events, "spark.eventLog.compress": "false"}
    with connect_server(tmp_path, **logged) as address:
        words = ["add-filter", str(signed), "-c", "name", "--in-place", "--keys", str(KEYS), "--master", address]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run([sys.executable, "-m", "sbbf_tool", *words], env=environment, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [result.is_verified for result in verify(signed, keys=read_keys(str(KEYS))).filters] == [True] * 3
    logs = [path for path in events.rglob("*") if path.is_file() and not path.name.endswith(".crc")]
    output = b"".join([done.stdout, done.stderr, *(path.read_bytes() for path in (*logs, tmp_path / "server.txt"))]).decode("latin-1")
    assert "SparkListenerConnectOperationStarted" in output
    assert "SparkListenerSQLExecutionStart" in output
    assert_no_key(output)
