"""What all rooms of the tests share: the choice of kernel, and real files made by others."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent.parent / "fixtures"
CONFORMANCE = "SBBF_CONFORMANCE"
START = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel", choices=("spec", "numpy", "compiled"), help="Run everything on this kernel rather than on the fastest that is built."
    )
    parser.addoption("--heavy-seconds", type=float, help="Start no heavy test later than this after the run began; those left are skipped.")
    parser.addoption("--bless", action="store_true", help="Write golden outputs, the README's among them, as they are now.")


def pytest_configure(config: pytest.Config) -> None:
    kernel = config.getoption("--kernel")
    if kernel:
        # Read at the first bulk operation, also by the processes that tests start.
        os.environ["SBBF_KERNEL"] = kernel


def pytest_runtest_setup(item: pytest.Item) -> None:
    seconds = item.config.getoption("--heavy-seconds")
    if seconds is not None and item.get_closest_marker("heavy") and time.monotonic() - START > seconds:
        pytest.skip(f"the {seconds:.0f} seconds for heavy tests are over")


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
