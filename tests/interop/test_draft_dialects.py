"""How today's engines treat filters of the format's drafts: none uses them, two fail, and rows are lost only under a wrong header.

docs/reference/drafts.md says so. When one of these fails because an engine changed, that page is to change too.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool.bloom.dialects import DRAFTS, TODAYS
from support.draft_files import write_draft, write_draft_in_chunks
from support.engines import ClickHouse, DuckDB, Engine, PruningEngine
from support.questions import absent_value
from support.tables import each

FIXTURES = Path(__file__).parents[2] / "fixtures"
pytestmark = pytest.mark.engines

PLAIN = FIXTURES / "pyarrow-plain.parquet"
COLUMNS = ("id", "name")
DRAFT_DIALECTS = [dialect.name for dialect in DRAFTS if dialect.header != TODAYS]
IN_CHUNKS = {"draft1-raw in chunks": "draft1-raw", "draft1-page in chunks": "draft1-page"}
"""Files with their filters before the first pages, and their dialects."""
FAIL = {ClickHouse: "BloomFilterHeader", DuckDB: "TProtocolException: Invalid data"}
"""Engines that take a header they do not know for damage, and what they say."""


def stored_values(column: str) -> list[object]:
    return pq.read_table(PLAIN)[column].to_pylist()


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file for each dialect, and those with their filters before the pages."""
    folder = tmp_path_factory.mktemp("drafts")
    paths = {dialect.name: folder / f"{dialect.name}.parquet" for dialect in DRAFTS}
    for name, path in paths.items():
        write_draft(PLAIN, COLUMNS, path, name)
    for name, dialect in IN_CHUNKS.items():
        paths[name] = folder / f"{name}.parquet"
        write_draft_in_chunks(PLAIN, COLUMNS, paths[name], dialect)
    return paths


@each("dialect", [*DRAFT_DIALECTS, *IN_CHUNKS])
def test_a_query_fails_or_finds_every_row(dialect: str, drafts: dict[str, Path], engine: Engine) -> None:
    for column in COLUMNS:
        values = stored_values(column)
        for operand in (values[7], values[::40]):
            if type(engine) in FAIL:
                with pytest.raises(Exception, match=FAIL[type(engine)]):
                    engine.rows(drafts[dialect], column, operand)
                continue
            values_read = engine.rows(drafts[dialect], column, operand)[column].to_pylist()
            assert sorted(values_read) == sorted(operand if isinstance(operand, list) else [operand])


@each("dialect", [*DRAFT_DIALECTS, *IN_CHUNKS])
def test_nothing_is_skipped(dialect: str, drafts: dict[str, Path], pruning_engine: PruningEngine) -> None:
    if type(pruning_engine) in FAIL:
        return  # it fails the query
    for column in COLUMNS:
        scan = pruning_engine.row_groups_read(drafts[dialect], column, absent_value(PLAIN, column))
        assert scan.read == scan.total


def test_a_draft_under_todays_header_loses_rows(drafts: dict[str, Path], pruning_engine: PruningEngine) -> None:
    for column in COLUMNS:
        values = stored_values(column)
        assert sum(pruning_engine.rows(drafts["draft2-final"], column, value).num_rows for value in values[::50]) < len(values[::50])
