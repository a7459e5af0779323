"""Filters without a set bit: they exclude every value, so they answer nothing about a column chunk that has values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from sbbf_tool import add_filters, explain, inspect, probe, prune
from support.samples import ROWS, write_column, write_events
from support.tables import each

REASON = "the filter is empty, but the column chunk has values"


def clear(path: Path, row_group: int, column: str) -> None:
    (stored,) = (each for each in inspect(path).filters if (each.row_group, each.column) == (row_group, column))
    data = bytearray(path.read_bytes())
    start, length = stored.offset + stored.header_bytes, stored.bitset_bytes
    data[start : start + length] = bytes(length)
    path.write_bytes(data)


def answers(path: Path, column: str, values: Sequence[object]) -> set[tuple[str, str | None]]:
    """Return the distinct answers of the first row group with their reasons."""
    row_groups = [value.row_groups[0] for value in probe(path, column, values, filters_only=True).values]
    return {(answer.answer, answer.reason) for answer in row_groups}


@pytest.fixture(params=[30, 800_000], ids=["small", "large"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file whose first filter is empty."""
    path = write_events(tmp_path / "events.parquet")
    add_filters(path, ["id"], in_place=True, ndv=request.param)
    clear(path, 0, "id")
    return path


# One value reads a block, some values read the bitset, and many are queried in bulk.
@each("count", [1, 100, ROWS * 7])
def test_no_stored_value_is_absent(path: Path, count: int) -> None:
    assert answers(path, "id", range(count)) == {("cannot say", REASON)}
    report = probe(path, "id", range(count), filters_only=True)
    assert [(each.row_groups, each.answer, each.reason) for each in report.inconclusive] == [((0,), "cannot say", REASON)]


def test_explain_and_prune_do_not_skip_its_row_group(path: Path) -> None:
    first, *_ = explain(path, "id", 7).row_groups
    assert (first.filter, first.filter_reason) == ("cannot say", REASON)
    # Engines skip it, which is the defect.
    assert next(engine for engine in explain(path, "id", 7).engines if engine.engine == "datafusion").harm == "loses rows"
    assert prune([path], "id", 7).dataset().to_table()["id"].to_pylist()[1] == 7


def test_a_chunk_without_a_count_of_nulls_may_have_values(tmp_path: Path) -> None:
    path = write_column(tmp_path / "v.parquet", pa.array([1, None]), write_statistics=False)
    add_filters(path, ["v"], in_place=True)
    clear(path, 0, "v")
    assert answers(path, "v", [1]) == {("cannot say", REASON)}
