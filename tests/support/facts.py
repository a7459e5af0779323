"""The columns of the fixtures for which today's engines use Bloom filters."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

MIXED_COLUMNS = ["id", "k", "price", "ratio", "name", "uuid", "tag", "blob", "maybe"]
"""The columns of `*-plain.parquet` and `*-filters.parquet` that can have a filter."""

TYPED_COLUMNS = ["tiny", "small", "day", "at_utc", "at_local", "dec9", "dec18", "dec38"]
"""Columns of `spark-types.parquet`, which every engine can read."""

IGNORED_FILTERS = {
    "duckdb": {"dec38"},
    "datafusion": {"tiny", "small", "day", "at_utc", "at_local"},
    "clickhouse": {"price", "ratio", "day", "at_utc", "at_local", "dec9", "dec18", "dec38"},
    "spark": {"at_local"},
}
"""Columns of the types for which an engine ignores Bloom filters. When a newer release uses them, tests fail and this table changes."""
