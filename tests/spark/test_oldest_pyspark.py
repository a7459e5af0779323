"""The oldest PySpark, in an environment of its own with the pandas, numpy and pyarrow of its time,
passes the tests of the pipeline and of the functions of SQL; and a command runs with each PySpark
that the page names, as its install lines install it.

The Connect server is the one of the environment that runs the tests: that of 3.5 is in no package
of PyPI.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from sbbf_tool.spark.java import find_java, home_without_vector_module
from spark.sql_program import assert_answers
from support.clusters import REPOSITORY, connect_server
from support.environments import NotInstallableError, install_python
from support.lakes import MIXED, mixed

pytestmark = [
    pytest.mark.engines,
    pytest.mark.nightly(minutes=3),
    pytest.mark.environment(minutes=3),
]

PAGE = REPOSITORY / "docs" / "how-to" / "spark.md"
OLDEST = "3.5.0"
OF_ITS_TIME = ("pandas==1.5.3", "numpy==1.26.0", "pyarrow==14.0.1")


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment with that PySpark, in which all the rest is that of the
    environment that runs the tests."""
    try:
        python = install_python(
            f"pyspark-{OLDEST}", f"pyspark[connect]=={OLDEST}", *OF_ITS_TIME, shared=True
        )
    except NotInstallableError as error:
        pytest.skip(str(error))
    version = subprocess.run(
        [python, "-c", "import pyspark; print(pyspark.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.strip() == OLDEST
    return python


def run(python: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        **variables,
        "PYTHONPATH": str(REPOSITORY),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.run(
        [python, *words],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )


def statuses_by_command(python: Path, lake: Path, *runner: str, **variables: str) -> dict[str, str]:
    """Add filters to a mixed lake; return the status of each file."""
    done = run(
        python,
        "-m",
        "sbbf_tool",
        "add-filter",
        str(lake),
        "-c",
        "id",
        "-c",
        "name",
        "--in-place",
        "--format",
        "json",
        *runner,
        **variables,
    )
    assert done.returncode == 4, done.stderr[-3000:]
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert documents.pop()["schema"] == "sbbf.summary"
    return {
        document["file"].removeprefix(f"{lake}/").removesuffix(".parquet"): document.get(
            "status", "ok" if document.get("filters") else "skipped"
        )
        for document in documents
    }


@pytest.mark.parametrize("module", ["running/test_pipeline.py", "spark/test_sql_functions.py"])
def test_the_pipeline_and_functions_of_sql(python, module):
    # This PySpark leaves sockets for the garbage collector, and compares versions with distutils.
    ignored = ("-W", "ignore::ResourceWarning", "-W", "ignore::DeprecationWarning")
    options = (
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestUnraisableExceptionWarning",
    )
    done = run(python, *ignored, "-m", "pytest", *options, *ignored, f"tests/{module}")
    assert done.returncode == 0, done.stdout[-5000:]


def test_a_command_with_a_master(python, tmp_path):
    statuses = statuses_by_command(python, mixed(tmp_path / "lake"), "--on", "spark:local[2]")
    assert statuses == MIXED


def test_a_command_with_a_connect_server(python, tmp_path):
    with connect_server(tmp_path) as address:
        statuses = statuses_by_command(python, mixed(tmp_path / "lake"), "--on", f"spark:{address}")
    assert statuses == MIXED


def documented_requirements(extra: str) -> list[str]:
    """What a line of the page installs, apart from this package."""
    assert f"`pip install '.[{extra}]'`" in PAGE.read_text()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"][extra]]


@pytest.mark.parametrize(
    ("extra", "series"), [("spark35", "3.5"), ("spark", "4.0"), ("spark", "4.3")]
)
def test_a_command_with_what_the_page_installs(tmp_path, extra, series):
    assert series in PAGE.read_text()
    requirements = [*documented_requirements(extra), f"pyspark=={series}.*"]
    digest = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:8]
    try:
        python = install_python(f"pyspark-{series}-{digest}", *requirements)
    except NotInstallableError as error:
        pytest.skip(str(error))
    number = tuple(map(int, series.split(".")))
    java = {"JAVA_HOME": home_without_vector_module(find_java(number))}
    lake = mixed(tmp_path / "lake")
    assert statuses_by_command(python, lake, "--on", "spark:local[2]", **java) == MIXED


def test_queries_with_a_connect_server(python, tmp_path, fixtures):
    path = fixtures / "pyarrow-filters.parquet"
    with connect_server(tmp_path) as address:
        assert_answers(python, address, path)
