"""The adapters report correctly: a later test that states "this engine used our filter" is able to fail.

The same rows with filters and without, both by pyarrow, and an absent value between the minimum and the maximum of every row
group. With filters an engine skips row groups; without, or with filters disabled, it reads every one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.engines import DuckDB, Engine, PruningEngine
from support.facts import FIXTURES, IGNORED_FILTERS, MIXED_COLUMNS, TYPED_COLUMNS
from support.questions import absent_value, matching, present_value

pytestmark = pytest.mark.engines

PLAIN = FIXTURES / "pyarrow-plain.parquet"
WITH_FILTERS = FIXTURES / "pyarrow-filters.parquet"


@pytest.mark.parametrize("column", MIXED_COLUMNS)
def test_an_absent_value_is_skipped_by_the_filters_alone(pruning_engine: PruningEngine, column: str) -> None:
    absent = absent_value(WITH_FILTERS, column)

    assert pruning_engine.row_groups_read(PLAIN, column, absent) == (4, 4)
    if pruning_engine.can_ignore_filters:
        assert pruning_engine.row_groups_read(WITH_FILTERS, column, absent, filters=False) == (4, 4)
    assert _skips(pruning_engine, WITH_FILTERS, column) == (column not in IGNORED_FILTERS[pruning_engine.name])


@pytest.mark.parametrize("column", TYPED_COLUMNS)
def test_logical_types(pruning_engine: PruningEngine, column: str) -> None:
    assert _skips(pruning_engine, FIXTURES / "spark-types.parquet", column) == (column not in IGNORED_FILTERS[pruning_engine.name])


@pytest.mark.parametrize("writer", ["spark", "duckdb", "datafusion", "pyarrow"])
def test_filters_of_every_writer_are_used(pruning_engine: PruningEngine, writer: str) -> None:
    assert _skips(pruning_engine, FIXTURES / f"{writer}-filters.parquet", "id")


@pytest.mark.parametrize("column", ["id", "uuid"])
def test_a_present_value_leaves_its_row_group(pruning_engine: PruningEngine, column: str) -> None:
    present = present_value(WITH_FILTERS, column)

    assert 1 <= pruning_engine.row_groups_read(WITH_FILTERS, column, present).read < 4


@pytest.mark.parametrize("column", ["id", "ratio", "name"])
def test_a_list_is_skipped_when_every_value_is_absent(pruning_engine: PruningEngine, column: str) -> None:
    absent, present = absent_value(WITH_FILTERS, column), present_value(WITH_FILTERS, column)
    is_used = column not in IGNORED_FILTERS[pruning_engine.name]

    assert (pruning_engine.row_groups_read(WITH_FILTERS, column, [absent, absent]).read < 4) == is_used
    assert pruning_engine.row_groups_read(WITH_FILTERS, column, [absent, present]).read >= 1


@pytest.mark.parametrize("column", MIXED_COLUMNS)
def test_every_engine_finds_the_rows(engine: Engine, column: str) -> None:
    absent, present = absent_value(WITH_FILTERS, column), present_value(WITH_FILTERS, column)

    assert engine.rows(WITH_FILTERS, column, absent).num_rows == 0
    for operand in (present, [absent, present]):
        assert engine.rows(WITH_FILTERS, column, operand).equals(matching(WITH_FILTERS, column, operand))


def test_duckdb_can_query_its_filters(duckdb_engine: DuckDB) -> None:
    absent, present = absent_value(WITH_FILTERS, "name"), present_value(WITH_FILTERS, "name")

    assert duckdb_engine.ruled_out(WITH_FILTERS, "name", absent) == [True] * 4
    assert duckdb_engine.ruled_out(WITH_FILTERS, "name", present).count(False) == 1
    assert duckdb_engine.ruled_out(PLAIN, "name", absent) == [False] * 4


def _skips(engine: PruningEngine, path: Path, column: str) -> bool:
    scan = engine.row_groups_read(path, column, absent_value(path, column))
    assert scan.total == 4
    return scan.read < scan.total
