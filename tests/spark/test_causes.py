"""What Spark's errors become: one line with the cause and a hint, whichever way Spark has wrapped
it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sbbf_tool import run
from sbbf_tool.errors import SbbfError
from sbbf_tool.spark.causes import find_cause
from sbbf_tool.spark.runner import Spark
from sbbf_tool.verbs import Inspect
from support.clusters import REPOSITORY, Run, kill
from support.lakes import small_files
from support.tables import each

pytestmark = pytest.mark.engines
pytest.importorskip("pyspark")

IN_WORKER = """\
An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/srv/pyspark/serializers.py", line 1, in loads
    return cloudpickle.loads(obj)
           ^^^^^^^^^^^^^^^^^^^^^^
KeyError: 'first'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/pyspark/worker.py", line 2, in main
ModuleNotFoundError: No module named 'sbbf_tool'
"""
BY_PY4J = """\
An error occurred while calling o51.start.
: java.io.IOException: Cannot run program "python3.12": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
"""
OF_TASK = """\
An error occurred while calling o144.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: \
Task 0 in stage 2.0 failed 4 times, most recent failure: \
Lost task 0.3 in stage 2.0 (TID 19) (127.0.0.1 executor 3): {reason}
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:4568)
"""
LOST_EXECUTOR = (
    "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) "
    "Reason: Command exited with code 137"
)
LOST_WORKER = (
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider "
    "setting 'a' to 'true'.\n"
    "\tat org.apache.spark.api.python.A(PythonRunner.scala:1136)\nCaused by: "
    "java.io.EOFException\n\t... 24 more\n"
)
WITH_CAUSE = (
    "org.apache.spark.SparkException: no block\nCaused by: "
    "java.net.ConnectException: Connection refused\n\t... 3 more\n"
)
OF_CONNECT = (
    "<_InactiveRpcError of RPC that terminated with:\n\tstatus = "
    'StatusCode.UNAVAILABLE\n\tdetails = "failed to connect"\n>'
)


@each(
    "text, cause",
    [
        (IN_WORKER, "ModuleNotFoundError: No module named 'sbbf_tool'"),
        (
            BY_PY4J,
            'java.io.IOException: Cannot run program "python3.12": error=2, No such file or '
            "directory",
        ),
        (OF_TASK.format(reason=LOST_EXECUTOR), LOST_EXECUTOR),
        (OF_TASK.format(reason=LOST_WORKER), "Python worker exited unexpectedly (crashed)"),
        (OF_TASK.format(reason=WITH_CAUSE), "java.net.ConnectException: Connection refused"),
        (OF_CONNECT, "failed to connect"),
        (
            "java.lang.RuntimeException: a\nCaused by: java.lang.B: b\nCaused by: java.lang.C: c\n",
            "java.lang.C: c",
        ),
        ("one line", "one line"),
        ("", ""),
    ],
)
def test_the_cause_in_the_text_of_an_error(text, cause):
    assert find_cause(text) == cause


def failing_function(kind: str):
    """Return a function that fails in a worker; it is nested, so that the worker need not import
    this module."""

    def fail(batches):
        if kind == "memory":
            raise MemoryError
        if kind == "disk":
            raise OSError(28, os.strerror(28))
        if kind == "killed":
            os.kill(os.getpid(), 9)
        import no_such_module  # noqa: F401

        yield from batches

    return fail


@each(
    "kind, words",
    [
        ("memory", ["Spark failed: MemoryError; ", "spark.executor.memoryOverhead"]),
        (
            "disk",
            ["No space left on device; free space in spark.local.dir", "run the command again"],
        ),
        (
            "killed",
            ["Spark failed: Python worker exited unexpectedly", "spark.executor.memoryOverhead"],
        ),
        (
            "module",
            [
                "the executors have no Python module 'no_such_module'; install",
                "PYSPARK_PYTHON",
                "--py-files",
            ],
        ),
    ],
)
def test_errors_of_workers(spark, kind, words):
    from sbbf_tool.reports.rows import ListedFile
    from sbbf_tool.spark.rows import collect_few, ddl_of, map_in_arrow

    with pytest.raises(SbbfError) as error:
        collect_few(map_in_arrow(spark.range(1), failing_function(kind), ddl_of(ListedFile)))
    message = str(error.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


def test_pyspark_cannot_write_its_files(spark, tmp_path, monkeypatch):
    """The driver writes rows into `spark.local.dir`, and calls Python's functions for it."""
    monkeypatch.setattr(spark.sparkContext, "_temp_dir", str(tmp_path / "missing"))
    with pytest.raises(SbbfError, match=r"^Spark failed: \[Errno 2\] No such file or directory"):
        list(run(Inspect(), tmp_path, on=Spark()))


def test_an_error_with_a_query_is_one_error(spark, capfd):
    """PySpark logs such errors with a logger of its own, and prints them."""
    from sbbf_tool import UsageError
    from sbbf_tool.spark import pipeline

    with pytest.raises(
        UsageError, match=r"^there is no table or view `no_such` in Spark's catalog$"
    ):
        pipeline.discover(spark, "no_such", table=True)
    assert capfd.readouterr().err == ""


WITHOUT_PACKAGE = """\
import sys
class Without:
    def find_spec(name, path=None, target=None):
        if name == "sbbf_tool":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Without)
"""


@pytest.mark.heavy
def test_workers_without_the_package(tmp_path):
    """Their Python is this one, but cannot import the package."""
    small_files(tmp_path / "lake", 1)
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(WITHOUT_PACKAGE)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{blocked}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYTHONPATH": str(REPOSITORY)}
    program = (
        "from sbbf_tool import run; from sbbf_tool.spark.runner import Spark; from "
        "sbbf_tool.verbs import Inspect\n"
        "list(run(Inspect(), 'lake', on=Spark('local[1]')))"
    )
    for command in (
        ["-m", "sbbf_tool", "inspect", "lake", "--on", "spark:local[1]"],
        ["-c", program],
    ):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (done.returncode, done.stdout) == (3 if "-m" in command else 1, "")
        *before, line = done.stderr.splitlines()
        assert "the executors have no Python module 'sbbf_tool'; install this package" in line
        assert "PYSPARK_PYTHON" in line
        assert len(before) < (40 if "-c" in command else 1)
        assert not any("Caused by" in text or "worker.py" in text for text in before)


@pytest.mark.heavy
def test_a_killed_jvm(tmp_path):
    lake = small_files(tmp_path / "lake", 2)
    scratch = slow_workers(tmp_path)
    with Run(lake, scratch, "-c", "id", master="local[1]", python_path=scratch) as run:
        assert run.wait_until(lambda: any(path.name.startswith(".") for path in lake.iterdir())), (
            run.read_output()
        )
        jvm = run.driver_jvm()
        assert jvm is not None
        kill(jvm)
        assert run.process.wait(120) == 3
        (line,) = run.read_output().splitlines()
    assert line.startswith(
        "sbbf: Spark failed: the driver's JVM was killed by signal 9; if it ran out of memory, "
        "raise spark.driver.memory"
    )


def slow_workers(tmp_path: Path) -> Path:
    """Return a folder with which, on the path, processes of Python wait long in each fsync."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "sitecustomize.py").write_text(
        "import os, time\nos.fsync = lambda fd: time.sleep(120)\n"
    )
    return scratch
