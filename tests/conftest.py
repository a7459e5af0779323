"""What all rooms of the tests share: the choice of kernel, and real files made by others."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from sbbf_tool.errors import UsageError
from support.newer_pyarrow import reason_to_skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).parent.parent / "fixtures"
CONFORMANCE = "SBBF_CONFORMANCE"
START = time.monotonic()

# How long one example takes says more about the machine, and about what was imported before, than about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel", choices=("spec", "numpy", "compiled"), help="Run everything on this kernel rather than on the fastest that is built."
    )
    parser.addoption("--heavy-seconds", type=float, help="Start no heavy test later than this after the run began; those left are skipped.")
    parser.addoption("--oldest", action="store_true", help="Skip, by name, tests whose oracle is a newer pyarrow than the installed one.")
    parser.addoption("--bless", action="store_true", help="Write golden outputs, those of README and docs among them, as they are now.")


def pytest_configure(config: pytest.Config) -> None:
    # A checkout cannot keep this mode, and keys that others may read are a warning.
    (FIXTURES / "encrypted" / "keys.json").chmod(0o600)
    kernel = config.getoption("--kernel")
    if kernel:
        # Read at the first bulk operation, also by the processes that tests start.
        os.environ["SBBF_KERNEL"] = kernel


def pytest_runtest_setup(item: pytest.Item) -> None:
    seconds = item.config.getoption("--heavy-seconds")
    if seconds is not None and item.get_closest_marker("heavy") and time.monotonic() - START > seconds:
        pytest.skip(f"the {seconds:.0f} seconds for heavy tests are over")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.excinfo is not None and item.config.getoption("--oldest"):
        reason = reason_to_skip(item.nodeid, call.excinfo.value)
        if reason is not None:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {reason}")
    return report


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of small files that other writers made."""
    return FIXTURES


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder of real files with known answers that do not belong to this repository."""
    folder = os.environ.get(CONFORMANCE)
    if not folder:
        pytest.skip(f"{CONFORMANCE} names no folder of conformance files")
    return Path(folder)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark on two threads for the whole run: its files lie in a folder of their own, and its clock is UTC."""
    pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    from sbbf_tool.spark.java import find_java
    from sbbf_tool.spark.session import session, spark_version

    try:
        find_java(spark_version())
    except UsageError as error:
        pytest.skip(str(error))
    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.local.dir": scratch / "blocks",
        "spark.sql.warehouse.dir": scratch / "warehouse",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # half the work for a session of minutes
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 2,
    }
    started = session("local[2]", {name: str(value) for name, value in settings.items()})
    yield started
    started.stop()
