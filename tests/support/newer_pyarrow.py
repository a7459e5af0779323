"""Tests whose oracle or writer needs a newer pyarrow than the oldest supported one, by what the
older one lacks."""

from __future__ import annotations

from collections.abc import Generator

import pyarrow as pa
import pytest

MISSING = {
    "unexpected keyword argument 'bloom_filter_options'": (
        "pyarrow 24 is the first that writes Bloom filters"
    ),
    "has no attribute 'bloom_filter_offset'": "pyarrow 24 is the first that tells where they are",
    "has no attribute 'bloom_filter_length'": "pyarrow 24 is the first that tells where they are",
    "unexpected keyword argument 'uniform_encryption'": (
        "pyarrow 22 is the first that encrypts a file with one key"
    ),
    "has no attribute 'create_decryption_properties'": (
        "this pyarrow takes keys from a key service alone"
    ),
    "Expected np.float16 instance": "this pyarrow makes half floats of numpy's alone",
    "Unhandled type for Arrow to Parquet schema conversion: string_view": (
        "this pyarrow writes no string views"
    ),
    "unexpected keyword argument 'store_decimal_as_integer'": (
        "pyarrow 17 is the first that pyiceberg writes files with"
    ),
    "module 'pyarrow.types' has no attribute 'is_string_view'": (
        "pyarrow 17 is the first that pyiceberg writes files with"
    ),
    "field() takes at least 2 positional arguments": (
        "pyarrow 15 is the first that deltalake makes fields with"
    ),
    "Unhandled type for Arrow to Parquet schema conversion: halffloat": (
        "pyarrow 15 is the first that writes half floats"
    ),
    "Metadata contains Thrift LogicalType that is not recognized": (
        "pyarrow 15 is the first that opens files with half floats"
    ),
    "BYTE_STREAM_SPLIT only supports FLOAT and DOUBLE": (
        "pyarrow 17 is the first that splits streams of other types"
    ),
    "Unsupported cast from double to halffloat": (
        "pyarrow 15 is the first that computes with half floats"
    ),
    "'ParquetWriter' object has no attribute 'add_key_value_metadata'": (
        "pyarrow 16 is the first that adds pairs of a footer"
    ),
    "unexpected keyword argument 'write_page_checksum'": (
        "pyarrow 15 is the first that writes checksums of pages"
    ),
    "has no attribute 'SortingColumn'": "pyarrow 15 is the first that writes sorting columns",
    "has no attribute 'from_stream'": "pyarrow 15 is the first that reads Arrow from any object",
    "module 'pyarrow' has no attribute 'uuid'": "this pyarrow has no such type",
    "Invalid or unsupported format string: 'vu'": (
        "pyarrow 16 is the first that takes the string views of deltalake"
    ),
    "LaterType": "this pyarrow has no such type",
    "Lists with non-zero length null components are not supported": (
        "this pyarrow writes no such lists"
    ),
}
"""Part of an error's message, and the reason to skip a test that fails with it."""

_ICEBERG = "pyarrow 17 is the first that pyiceberg writes files with"
_BEHIND_CHUNKS = "pyarrow 14 writes bytes after each column chunk that nothing references"
_TIMES_IN_UTC = "this pyarrow writes times of the day as times in UTC, which no comparison decides"
WRONG = {
    "tests/verbs/test_conditions.py::test_no_row_is_lost": _TIMES_IN_UTC,
    "tests/file/test_layout.py::test_a_copy_behind_the_pages_is_referenced_and_stays": (
        _BEHIND_CHUNKS
    ),
    "tests/verbs/test_inspect.py::test_a_long_footer_is_found_too": _BEHIND_CHUNKS,
    "tests/rules/test_rules.py::TestUnreferencedBytes": _BEHIND_CHUNKS,
    # The first error of these pages is in a program that writes a table, and not in the message of
    # the test.
    "tests/test_docs.py::test_programs_run_and_settings_are_accepted[docs/how-to/iceberg.md": (
        _ICEBERG
    ),
    "tests/test_docs.py::test_commands_print_what_is_shown[docs/how-to/iceberg.md": _ICEBERG,
    "tests/test_docs.py::test_commands_print_what_is_shown[docs/tutorial/first-filter.md": (
        _BEHIND_CHUNKS
    ),
    "tests/parquet/test_values_nested.py::test_an_empty_page_at_the_start_hides_no_value": (
        "pyarrow 20 reads a row that is none"
    ),
    "tests/verbs/test_prune.py::test_a_cast_that_keeps_values_does_not_prevent_pruning": (
        "pyarrow 20 compares decimals wrongly"
    ),
    "tests/verbs/test_prune.py::test_a_float_for_a_decimal_is_refused": (
        "pyarrow 20 compares decimals wrongly"
    ),
    "tests/interop/test_encrypted_pyarrow.py::test_filters_added": (
        "pages of pyarrow 20 under a signed footer do not authenticate"
    ),
}
"""Start of a test's name, and the defect of this pyarrow that makes it fail."""


class LaterType:
    """A stand-in for a type that the installed pyarrow does not have: the test that uses it fails,
    and is skipped."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name


def arrow_type(name: str, *parameters: int) -> pa.DataType | LaterType:
    """Return the type that pyarrow makes with the function of this name."""
    make = getattr(pa, name, None)
    return LaterType(name.rstrip("_")) if make is None else make(*parameters)


def reason_to_skip(name: str, error: BaseException) -> str | None:
    """Return what pyarrow lacks for a test that ended with this error; None where the package is to
    blame."""
    for start, reason in WRONG.items():
        if name.startswith(start):
            return reason
    if isinstance(error, BaseExceptionGroup):  # of a test that walks a table
        reasons = [reason_to_skip(name, part) for part in error.exceptions]
        return reasons[0] if all(reasons) else None
    return next((reason for message, reason in MISSING.items() if message in str(error)), None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--oldest",
        action="store_true",
        help="Skip, by name, tests whose oracle is a newer pyarrow than the installed one.",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.excinfo is not None and item.config.getoption("--oldest"):
        reason = reason_to_skip(item.nodeid, call.excinfo.value)
        if reason is not None:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {reason}")
    return report
