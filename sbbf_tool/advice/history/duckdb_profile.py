"""Scans in a profile of DuckDB: `PRAGMA enable_profiling = 'json'`, or the output of `EXPLAIN (ANALYZE, FORMAT JSON)`.

The scan of Parquet files has the files, and the filters that it checks; a filter operator above it has the conditions that it does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sbbf_tool.advice.history.scans import Scan
from sbbf_tool.advice.queries import Condition, parse_query
from sbbf_tool.errors import UsageError

_SCANS = ("READ_PARQUET", "PARQUET_SCAN")


def parse_profile(text: bytes) -> dict[str, Any] | None:
    """Return the profile; None for other text."""
    try:
        profile = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return profile if isinstance(profile, dict) and _roots(profile) is not None else None


def _roots(profile: dict[str, Any]) -> list[Any] | None:
    """Return the operators at the top of the plan; releases before 2.0 have them elsewhere."""
    operators = profile.get("operator", profile.get("children"))
    return operators if isinstance(operators, list) else None


def list_scans(profile: dict[str, Any]) -> Iterator[Scan]:
    """Yield the scans of Parquet files. The bytes that the query read are known only if it has one scan."""
    inputs = profile.get("io")
    bytes_read = inputs.get("total_bytes_read") if isinstance(inputs, dict) else profile.get("total_bytes_read")
    nodes: list[tuple[Any, tuple[Condition, ...]]] = [(node, ()) for node in _roots(profile) or ()]
    scans = []
    while nodes:
        node, above = nodes.pop()
        if not isinstance(node, dict):
            continue
        extra = node.get("extra_info")
        extra = extra if isinstance(extra, dict) else {}
        kind = str(node.get("type", node.get("operator_type", "")))
        conditions = tuple(_conditions_in(extra.get("Filters")))
        if str(extra.get("Function", "")).upper() in _SCANS:
            scans.append((_texts(extra.get("Filename(s)")), (*conditions, *above)))
        # A filter applies to the scan below it, if nothing but projections are between them.
        passed = above if kind == "PROJECTION" else tuple(_conditions_in(extra.get("Expression"))) if kind == "FILTER" else ()
        children = node.get("children")
        nodes += [(child, passed) for child in children] if isinstance(children, list) else []
    size = bytes_read if len(scans) == 1 and isinstance(bytes_read, int) and bytes_read > 0 else None
    for files, conditions in scans:
        yield Scan(tuple(files), conditions, size)


def _conditions_in(value: object) -> Iterator[Condition]:
    """Yield the conditions by = and IN; other expressions are left out."""
    for text in _texts(value):
        for part in text.removeprefix("optional: ").split(" AND "):
            stripped = part.strip()
            while stripped.startswith("(") and stripped.endswith(")"):
                stripped = stripped[1:-1].strip()
            try:
                yield from parse_query(stripped).conditions
            except UsageError:
                continue


def _texts(value: object) -> list[str]:
    """Return one or several texts; older releases join them by line ends."""
    if isinstance(value, str):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
