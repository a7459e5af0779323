"""Spark outside this process: separate programs, worker processes of a cluster, a Connect server."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
LAKE_PROGRAM = Path(__file__).parent / "lake_program.py"
CLUSTER = "local-cluster[2,1,1024]"
_SECONDS_TO_START = 120


def run_program(python: str, *arguments: str, folder: Path, **environment: str) -> dict[str, Any]:
    """Run a program in `folder`; return the JSON of its last line. It can import this package only if `environment` provides it."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    done = subprocess.run([python, *arguments], cwd=folder, env={**inherited, **environment}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-5000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    _remove_work_of(result.get("application"))
    return result


def _remove_work_of(application: str | None) -> None:
    """Workers of a local cluster leave the output of executors in PySpark's own folder; no setting changes that."""
    import pyspark

    if application:
        shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)


@contextmanager
def connect_server(folder: Path, **more: object) -> Iterator[str]:
    """Start a Spark Connect server with its own Python processes by its own script, with `more` settings; yield its address."""
    import pyspark

    from sbbf_tool.spark.java import find_java, home_without_vector_module
    from sbbf_tool.spark.session import spark_version

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    settings = {"spark.connect.grpc.binding.port": port, "spark.ui.enabled": "false", "spark.local.dir": folder, "spark.log.level": "ERROR"}
    settings |= more
    command = [str(home / "sbin" / "start-connect-server.sh"), "--master", "local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    places = {
        "SPARK_HOME": home,
        "SPARK_LOG_DIR": folder / "logs",
        "SPARK_PID_DIR": folder,
        "JAVA_HOME": home_without_vector_module(find_java(spark_version())),
    }
    environment = {**os.environ, **{name: str(place) for name, place in places.items()}, "SPARK_NO_DAEMONIZE": "1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYTHONPATH", None)
    with open(folder / "server.txt", "w") as output:
        server = subprocess.Popen(["bash", *command], cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        _wait_for(server, port, folder / "server.txt")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, 15)
        server.wait(60)


def _wait_for(server: subprocess.Popen[bytes], port: int, output: Path) -> None:
    started = time.monotonic()
    while time.monotonic() - started < _SECONDS_TO_START and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the Connect server does not answer: {output.read_text()[-5000:]}")
