"""Hadoop tables of Iceberg Java: rows before and after, row ids, deletes, later commits, and concurrent writers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

from sbbf_tool import advise, inspect
from sbbf_tool.extensions.tables.iceberg.folder import FolderSource
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable, open_folder
from support.environments import NotInstallableError
from support.iceberg_java import JavaIceberg, start_iceberg
from support.iceberg_tables import ADD, RacingSource, convert, make_copies

pytestmark = [pytest.mark.nightly(2), pytest.mark.environment(minutes=1), pytest.mark.xdist_group("iceberg-java")]


@pytest.fixture(scope="module")
def java() -> Iterator[JavaIceberg]:
    pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    try:
        with start_iceberg() as iceberg:
            yield iceberg
    except NotInstallableError as error:
        pytest.skip(str(error))


def test_emitted_properties_lead_to_filters(java, tmp_path):
    """Iceberg writes the filters that the settings promise; this release does not know the NDV, and uses the largest size."""
    ids = Random(5).sample(range(2**60), 4000)
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": ids, "name": [f"name {number:x}" for number in ids]}), path, row_group_size=2000)
    settings = advise(path, emit="iceberg", engine_names=["clickhouse"]).emit
    properties = dict(re.findall(r"'(\S+)' = '(\S+)'", settings.text))
    java.write_rows(tmp_path / "new.parquet", properties, ids[:2000])
    filters = {row.column: row for row in inspect(tmp_path / "new.parquet").filters}
    assert {column: row.bitset_bytes for column, row in filters.items()} == {entry.column: entry.bitset_bytes for entry in settings.columns}
    assert max(row.estimated_fpp for row in filters.values()) <= 0.0125


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_stay_and_java_goes_on(java, tmp_path, version):
    folder = tmp_path / "t"
    table = java.create(folder, version)
    java.append(table, 0, 100)
    java.append(table, 100, 100)
    before = java.read(folder, "id", "name")
    assert convert(open_folder(str(folder))).num_files == 2
    assert java.read(folder, "id", "name") == before
    table.refresh()
    java.append(table, 200, 10)
    assert convert(open_folder(str(folder))).num_files == 3
    assert java.ids(folder) == list(range(210))
    table.refresh()
    delete = table.newDelete()
    delete.deleteFile(java.find_file(table, 200))
    delete.commit()
    java.append(table, 300, 1)
    assert java.ids(folder) == [*range(200), 300]


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_reach_the_copies(java, tmp_path, version):
    folder = tmp_path / "t"
    table = java.create(folder, version, partition="name")
    java.append(table, 0, 100, "name=a")
    java.append(table, 0, 100, "name=b")
    table.newRowDelta().addDeletes(java.equality_deletes(table, range(50), "name=a")).commit()
    java.append(table, 0, 10, "name=a")
    before = java.read(folder, "id", "name")
    assert len(before) == 160
    assert convert(open_folder(str(folder))).num_files == 3
    assert java.read(folder, "id", "name") == before


def test_deletion_vectors_keep_their_files_and_row_ids_stay(java, tmp_path):
    folder = tmp_path / "t"
    table = java.create(folder, 3)
    for start in (0, 100, 200):
        java.append(table, start, 100)
    java.delete_vector(table, java.data_files(table)[0], [0, 1, 2])
    before = java.row_ids(folder)
    assert len(before) == 297
    assert len({number for _, number in before}) == 297
    assert convert(open_folder(str(folder))).num_files == 2
    assert java.row_ids(folder) == before
    table.refresh()
    java.append(table, 300, 10)
    after = java.row_ids(folder)
    assert after[:297] == before
    assert len({number for _, number in after}) == 307


def test_a_table_that_becomes_format_3_gets_row_ids(java, tmp_path):
    folder = tmp_path / "t"
    table = java.create(folder, 2)
    java.append(table, 0, 100)
    java.append(table, 100, 100)
    table.updateProperties().set("format-version", "3").commit()
    copies = make_copies(open_folder(str(folder)))
    assert open_folder(str(folder)).commit(copies[:1], ADD).num_files == 1
    numbers = java.row_ids(folder)
    assert sorted(number for _, number in numbers) == list(range(200))
    table.refresh()
    java.append(table, 200, 10)
    assert java.row_ids(folder)[:200] == numbers
    assert len({number for _, number in java.row_ids(folder)}) == 210


def test_commits_are_built_again_after_those_of_java(java, tmp_path):
    folder = tmp_path / "t"
    table = java.create(folder, 2)
    file = java.append(table, 0, 100)
    java.append(table, 100, 100)
    rival = java.load(folder)
    source = RacingSource(
        FolderSource(str(folder)),
        lambda: java.append(rival, 200, 10),
        lambda: rival.newRowDelta().addDeletes(java.position_deletes(rival, {file.location(): [0]})).commit(),
        lambda: rival.newRowDelta().addDeletes(java.equality_deletes(rival, [150])).commit(),
    )
    commit = convert(IcebergTable(source))
    assert (commit.rebuilds, commit.num_files, len(commit.vanished)) == (3, 1, 1)
    assert java.ids(folder) == [number for number in range(1, 210) if number != 150]
