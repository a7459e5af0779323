"""pypaimon-rust writes tables with indexes, and uses the indexes added to its tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, build_bloom64
from sbbf_tool.extensions.paimon.build_index import build
from sbbf_tool.extensions.paimon.commit_plan import IndexChange
from sbbf_tool.extensions.paimon.file_index import find_index
from sbbf_tool.extensions.paimon.index_container import build_container, lay_out
from sbbf_tool.extensions.paimon.index_options import IndexRequest, parse_bloom_columns
from sbbf_tool.extensions.paimon.publish import publish
from sbbf_tool.extensions.paimon.table import open_table
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_table
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
from sbbf_tool.extensions.paimon.verbs.remove_index import remove_paimon_index
from sbbf_tool.extensions.paimon.verbs.verify import verify_table
from sbbf_tool.storage.folders import LocalFolders
from support.environments import NotInstallableError
from support.paimon_engines import run_rust, rust_python

pytestmark = [pytest.mark.nightly, pytest.mark.environment(minutes=2), pytest.mark.timeout(900)]

INDEXED = ("in_file", "embedded", "partitioned", "tracked", "elsewhere", "moved")
PLAIN = ("plain_file", "plain_embedded", "plain_partitioned", "plain_tracked")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        rust_python()
    except NotInstallableError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("rust")
    outside = folder / "outside"
    outside.mkdir()
    tables = run_rust(command="make", warehouse=str(folder / "wh"), outside=str(outside))
    assert tables == [*INDEXED, *PLAIN]
    return folder / "wh"


@pytest.mark.parametrize("name", INDEXED)
def test_its_indexes_are_ours_byte_for_byte(warehouse: Path, name: str) -> None:
    table = open_table(LocalFolders(), str(warehouse / "fx.db" / name), allow_outside=True)
    assert sum(live.file.row_count for live in table.live_files) == 60
    report = verify_table(table)
    assert not report.has_false_negatives
    assert not report.problems
    assert not inspect_table(table).errors
    for live in table.live_files:
        container = find_index(table.files, live).container
        assert container is not None
        assert len(container.indexes) == 13
        for column, kinds in container.indexes.items():
            request = parse_bloom_columns(table.schema.options)[column]
            rebuilt = build(table.files, live.path, [IndexRequest(column, request.items, request.fpp)]).container
            assert rebuilt == build_container(lay_out({column: {KIND: container.body_of(kinds[KIND])}})), column


@pytest.mark.parametrize("name", PLAIN)
def test_indexes_added_to_its_tables_keep_every_row(warehouse: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "wh" / "fx.db" / name
    shutil.copytree(warehouse / "fx.db" / name, copy)
    report = add_paimon_index(str(copy), [IndexRequest(column) for column in ("s", "n", "ts9", "é😀")])
    assert not report.skipped
    assert report.snapshot_after == 3
    queries = [f"SELECT id FROM p.fx.{name} WHERE s = 'value {at}'" for at in (1, 2, 40, 41, 99)]
    queries += [f"SELECT id FROM p.fx.{name} WHERE n = {at * 1000 - 20}" for at in (0, 7, 99)]
    queries += [f"SELECT count(*), sum(id), count(DISTINCT s), sum(n) FROM p.fx.{name}", f"SELECT id FROM p.fx.{name} WHERE \"é😀\" = 'x7'"]
    before = run_rust(command="query", warehouse=str(warehouse), queries=queries)
    assert run_rust(command="query", warehouse=str(tmp_path / "wh"), queries=queries) == before
    assert before[0] == [["1"]]
    assert probe_paimon(str(copy), "s", ["value 40"], allow_outside=True).skipped
    for _ in range(2):
        assert remove_paimon_index(str(copy)).removed_indexes
        assert run_rust(command="query", warehouse=str(tmp_path / "wh"), queries=queries) == before
        add_paimon_index(str(copy), [IndexRequest("s")])
        assert run_rust(command="query", warehouse=str(tmp_path / "wh"), queries=queries) == before


@pytest.mark.parametrize("place", ["file", "embedded"])
def test_rust_reads_indexes_where_paimon_publishes_them(warehouse: Path, tmp_path: Path, place: str) -> None:
    """An empty filter excludes every value. Once published, it makes the engine lose the row, which shows that the engine queries it."""
    name = f"plain_{place}"
    copy = tmp_path / "wh" / "fx.db" / name
    shutil.copytree(warehouse / "fx.db" / name, copy)
    files = LocalFolders()
    table = open_table(files, str(copy), allow_outside=True)
    lie = build_container(lay_out({"s": {KIND: build_bloom64(BloomFilter64(np.zeros(9, np.uint8), 3))}}))
    lies = [IndexChange(live.entry, lie, f"{live.path}.index" if place == "file" else None) for live in table.live_files]
    query = [f"SELECT id FROM p.fx.{name} WHERE s = 'value 40'"]
    assert run_rust(command="query", warehouse=str(tmp_path / "wh"), queries=query) == [[["40"]]]
    assert publish(files, str(copy), lies) is not None
    assert run_rust(command="query", warehouse=str(tmp_path / "wh"), queries=query) == [[]]
