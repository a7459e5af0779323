"""Spark outside this process: runs of commands that change files, whose processes can be killed;
other programs, a Connect server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]

CLUSTER = "local-cluster[2,1,1024]"
_SECONDS_TO_START, _SECONDS_TO_END = 120, 60


def settings_of_spark(folder: Path, settings: Iterable[str]) -> list[str]:
    """Write these settings into a configuration file; return the option that names it."""
    lines = (
        f"{json.dumps(name.removeprefix('spark.'))} = {json.dumps(value)}"
        for name, _, value in (each.partition("=") for each in settings)
    )
    path = folder / "spark.toml"
    path.write_text("\n".join(("[spark]", *lines)))
    return ["--config", str(path)]


class Run:
    """A run as a context manager, which ends all its processes at exit."""

    def __init__(
        self,
        lake: Path,
        scratch: Path,
        *arguments: str,
        master: str = CLUSTER,
        python_path: Path | None = None,
        settings: Sequence[str] = (),
        command: str = "add-filter",
    ) -> None:
        self.lake = lake
        settings = [
            *settings,
            f"spark.local.dir={scratch / 'blocks'}",
            f"spark.sql.warehouse.dir={scratch / 'warehouse'}",
            "spark.task.maxFailures=20",
        ]
        conf = settings_of_spark(scratch, settings)
        words = [
            sys.executable,
            "-m",
            "sbbf_tool",
            command,
            str(lake),
            *arguments,
            "--in-place",
            "--on",
            f"spark:{master}",
            *conf,
        ]
        package = os.pathsep.join(
            str(path) for path in (python_path, REPOSITORY) if path is not None
        )
        self.log = scratch / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                words,
                cwd=scratch,
                env={**os.environ, "PYTHONPATH": package},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes: set[int] = set()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._processes |= set(self.descendants())
        for pid in (self.process.pid, *self._processes):
            kill(pid)
        self.process.wait()

    def descendants(self) -> list[int]:
        """Return every process that this run started, including children of children."""
        processes, frontier = [], [self.process.pid]
        while frontier:
            children = [child for pid in frontier for child in _children(pid)]
            processes += children
            frontier = children
        self._processes |= set(processes)
        return processes

    def executors(self) -> list[int]:
        return [
            pid for pid in self.descendants() if b"CoarseGrainedExecutorBackend" in _command(pid)
        ]

    def driver_jvm(self) -> int | None:
        return next((pid for pid in self.descendants() if b"SparkSubmit" in _command(pid)), None)

    def wait_until(self, is_so: Callable[[], object]) -> bool:
        """Wait until the condition holds; return False if the run ends before."""
        while self.process.poll() is None:
            self.descendants()
            if is_so():
                return True
            time.sleep(0.05)
        return False

    def read_output(self) -> str:
        return self.log.read_text(errors="replace")


def wait_for_end(processes: list[int]) -> None:
    """Wait until none of these processes is left."""
    started = time.monotonic()
    while alive := [pid for pid in processes if _command(pid)]:
        assert time.monotonic() - started < _SECONDS_TO_END, alive
        time.sleep(0.05)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += [int(child) for child in (task / "children").read_text().split()]
    return children


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def run_program(*arguments: str | Path, folder: Path) -> dict[str, Any]:
    """Run a program in `folder`, which cannot import this package by itself; return the JSON of its
    last line."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYSPARK_PYTHON")
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=inherited,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    _remove_work_of(result.get("application"))
    return result


def _remove_work_of(application: str | None) -> None:
    """Workers of a local cluster leave the output of executors in PySpark's own folder; no setting
    changes that."""
    import pyspark

    if application:
        shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)


@contextmanager
def connect_server(folder: Path, **more: object) -> Iterator[str]:
    """Start a Spark Connect server with its own Python processes by its own script, with `more`
    settings; yield its address."""
    import pyspark

    from sbbf_tool.spark.java import find_java, home_without_vector_module
    from sbbf_tool.spark.session import spark_version

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.local.dir": folder,
        "spark.log.level": "ERROR",
    }
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
    environment = {
        **os.environ,
        **{name: str(place) for name, place in places.items()},
        "SPARK_NO_DAEMONIZE": "1",
    }
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYTHONPATH", None)
    with open(folder / "server.txt", "w") as output:
        server = subprocess.Popen(
            ["bash", *command],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        _wait_for(server, port, folder / "server.txt")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, 15)
        server.wait(60)


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start a master and two workers of one core, on two hosts; yield its address. Spark runs no
    speculative copy on the host of the first attempt, and a local cluster has only one."""
    import pyspark

    from sbbf_tool.spark.java import find_java, home_without_vector_module
    from sbbf_tool.spark.session import spark_version

    folder.mkdir()
    output = folder / "daemons.txt"
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": home_without_vector_module(find_java(spark_version())),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder / "blocks"),
    }
    daemons: list[subprocess.Popen[bytes]] = []

    def start(name: str, host: str, *words: str) -> subprocess.Popen[bytes]:
        program = str(home / "bin" / "spark-class")
        command = [program, f"org.apache.spark.deploy.{name}", "--host", host, "--webui-port", "0"]
        with output.open("ab") as log:
            daemon = subprocess.Popen(
                [*command, *words],
                cwd=folder,
                env={**environment, "SPARK_LOCAL_IP": host},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        daemons.append(daemon)
        return daemon

    try:
        _wait_for(start("master.Master", "127.0.0.1", "--port", str(port)), port, output)
        for host in ("127.0.0.1", "127.0.0.2"):
            start("worker.Worker", host, "--cores", "1", "--memory", "1g", address)
        yield address
    finally:
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(60)


def _wait_for(server: subprocess.Popen[bytes], port: int, output: Path) -> None:
    started = time.monotonic()
    while time.monotonic() - started < _SECONDS_TO_START and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the server does not answer: {output.read_text()[-5000:]}")
