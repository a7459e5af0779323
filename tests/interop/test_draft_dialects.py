"""How today's engines treat filters of the format's drafts: none uses them, two fail, and rows are
lost only under a wrong header.

docs/how-to/old-drafts.md says so. When one of these fails because an engine changed, that page is
to change too.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interop.query_engines import Question
from sbbf_tool.bloom.dialects import DRAFTS, TODAYS
from support.draft_files import write_draft, write_draft_in_chunks
from support.tables import each

pytestmark = pytest.mark.engines

COLUMNS = ("id", "name")
IDS = range(0, 2000, 5)
IN_CHUNKS = {"draft1-raw in chunks": "draft1-raw", "draft1-page in chunks": "draft1-page"}
"""Files with their filters before the first pages, and their dialects."""
FILES = [*(dialect.name for dialect in DRAFTS if dialect.header != TODAYS), *IN_CHUNKS]
FAIL = {"clickhouse": "BloomFilterHeader", "duckdb": "TProtocolException: Invalid data"}
"""Engines that take a header they do not know for damage, and what they say."""


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file for each dialect, and those with their filters before the pages."""
    folder = tmp_path_factory.mktemp("drafts")
    plain = folder / "plain.parquet"
    ids = [IDS[number * 7 % len(IDS)] for number in range(len(IDS))]
    pq.write_table(
        pa.table({"n": ids, "id": ids, "name": [f"name {number:04}" for number in ids]}),
        plain,
        row_group_size=100,
    )
    paths = {
        name: folder / f"{name}.parquet"
        for name in (*(dialect.name for dialect in DRAFTS), *IN_CHUNKS)
    }
    for name, path in paths.items():
        if name in IN_CHUNKS:
            write_draft_in_chunks(plain, COLUMNS, path, IN_CHUNKS[name])
        else:
            write_draft(plain, COLUMNS, path, name)
    return paths


def questions(*numbers: int) -> list[Question]:
    return [
        question
        for n in numbers
        for question in (Question(("id",), (str(n),)), Question(("name",), (f"name {n:04}",)))
    ]


@each(
    "name, file",
    product(["duckdb", "datafusion", "clickhouse", "pyarrow", "polars"], FILES),
    heavy=product(["spark"], FILES),
)
def test_a_query_fails_or_finds_every_row_and_skips_nothing(
    file: str, name: str, drafts: dict[str, Path], engines: Any
) -> None:
    engine, stored = engines(name), questions(0, 995, 1995)
    if name in FAIL:
        with pytest.raises(Exception, match=FAIL[name]):
            engine.answers(drafts[file], stored)
        return
    assert engine.answers(drafts[file], stored) == [[0], [0], [995], [995], [1995], [1995]]
    if name == "datafusion":
        assert [engine.scan(drafts[file], question) for question in questions(996)] == [(4, 4)] * 2


@each("name", ["duckdb", "datafusion", "clickhouse"], heavy=["spark"])
def test_a_draft_under_todays_header_loses_rows(
    name: str, drafts: dict[str, Path], engines: Any
) -> None:
    stored = questions(*IDS[::25])
    assert sum(map(bool, engines(name).answers(drafts["draft2-final"], stored))) < len(stored)
