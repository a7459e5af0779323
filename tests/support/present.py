"""The values that `probe` finds in files or a table, by reading them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sbbf_tool import run
from sbbf_tool.verbs import Probe


def count_present(
    name: object, values: Iterable[Any], column: str = "id", **options: Any
) -> dict[Any, int]:
    """Return how many rows have each of these values; fail if reading does not show it."""
    texts = {str(value): value for value in values}
    counts: dict[Any, int] = {}
    for row in run(
        Probe(column, list(texts.values()), confirm=True, rows=True), str(name), **options
    ):
        assert row.report is not None, row
        assert row.report.inconclusive == ()
        assert {hit.answer for hit in row.report.hits} <= {"present"}, row
        assert sum(hit.count or 0 for hit in row.report.hits) == len(row.report.rows)
        for hit in row.report.hits:
            counts[texts[hit.value]] = counts.get(texts[hit.value], 0) + (hit.count or 0)
    return counts
