"""Which program wrote a file, by `created_by` (parquet.thrift `FileMetaData`): an application and its version."""

from __future__ import annotations

import re

TESTED = frozenset(
    {
        ("parquet-cpp-arrow", "20.0.0"),
        ("parquet-cpp-arrow", "26.0.1"),
        ("DuckDB", "v2.0.0"),
        ("parquet-mr", "1.17.0"),
        ("fastparquet-python", "2026.9.0"),
    }
)
"""Writers whose pages the tests read and compare, value by value, with what pyarrow decodes."""

_CREATED_BY = re.compile(r"(?P<application>.*?)\s+version\s+(?P<version>[^\s(]+)", re.DOTALL)


def parse_created_by(created_by: str | None) -> tuple[str, str] | None:
    """Application and version; None where the file does not state both."""
    match = _CREATED_BY.match(created_by) if isinstance(created_by, str) else None
    return (match["application"].strip(), match["version"]) if match else None


def is_tested(created_by: str | None) -> bool:
    """Whether the tests write with this version of this writer."""
    return parse_created_by(created_by) in TESTED
