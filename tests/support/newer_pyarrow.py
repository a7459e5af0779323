"""Tests whose oracle or writer needs a newer pyarrow than the oldest supported one, by what the older one lacks."""

from __future__ import annotations

from collections.abc import Generator

import pytest

MISSING = {
    "unexpected keyword argument 'bloom_filter_options'": "pyarrow 24 is the first that writes Bloom filters",
    "has no attribute 'bloom_filter_offset'": "pyarrow 24 is the first that tells where they are",
    "has no attribute 'bloom_filter_length'": "pyarrow 24 is the first that tells where they are",
    "unexpected keyword argument 'uniform_encryption'": "pyarrow 22 is the first that encrypts a file with one key",
    "Expected np.float16 instance": "this pyarrow makes half floats of numpy's alone",
    "Unhandled type for Arrow to Parquet schema conversion: string_view": "this pyarrow writes no string views",
    "Lists with non-zero length null components are not supported": "this pyarrow writes no such lists",
}
"""Part of an error's message, and the reason to skip a test that fails with it."""

WRONG = {
    "tests/parquet/test_values.py::test_int96": "pyarrow writes instants before 1970 in one form from 23 on",
    "tests/parquet/test_values_nested.py::test_an_empty_page_at_the_start_hides_no_value": "pyarrow 20 reads a row that is none",
    "tests/operations/test_prune_types.py::test_a_cast_that_keeps_values_does_not_prevent_pruning": "pyarrow 20 compares decimals wrongly",
    "tests/operations/test_prune_types.py::test_a_float_for_a_decimal_is_refused": "pyarrow 20 compares decimals wrongly",
    "tests/interop/test_encrypted_pyarrow.py::test_filters_added": "pages of pyarrow 20 under a signed footer do not authenticate",
}
"""Start of a test's name, and the defect of this pyarrow that makes it fail."""


def reason_to_skip(name: str, error: BaseException) -> str | None:
    """Return what pyarrow lacks for a test that ended with this error; None where the package is to blame."""
    for start, reason in WRONG.items():
        if name.startswith(start):
            return reason
    return next((reason for message, reason in MISSING.items() if message in str(error)), None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--oldest", action="store_true", help="Skip, by name, tests whose oracle is a newer pyarrow than the installed one.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.excinfo is not None and item.config.getoption("--oldest"):
        reason = reason_to_skip(item.nodeid, call.excinfo.value)
        if reason is not None:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {reason}")
    return report
