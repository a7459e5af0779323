"""The oldest PySpark that has Python data sources, 4.0.0, in an environment of its own, passes the tests of data source and pipeline."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.environments import NotInstallableError, install_python
from support.lake_folders import REPOSITORY

pytestmark = [pytest.mark.engines, pytest.mark.heavy(minutes=5), pytest.mark.environment(minutes=3)]

OLDEST = "4.0.0"


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment with that PySpark, in which all the rest is that of the environment that runs the tests."""
    try:
        python = install_python(f"pyspark-{OLDEST}", f"pyspark=={OLDEST}", shared=True)
    except NotInstallableError as error:
        pytest.skip(str(error))
    version = subprocess.run([python, "-c", "import pyspark; print(pyspark.__version__)"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == OLDEST
    return python


def pass_on(python: Path, *tests: str) -> None:
    # This PySpark leaves sockets for the garbage collector.
    command = [python, "-W", "ignore::ResourceWarning", "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["-W", "ignore::pytest.PytestUnraisableExceptionWarning", "-W", "ignore::ResourceWarning"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([*command, *tests], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-5000:]


def test_the_data_source(python):
    pass_on(python, "tests/spark/test_data_source.py")


def test_the_pipeline_and_its_command(python):
    pass_on(python, "tests/runner/test_pipeline.py")
