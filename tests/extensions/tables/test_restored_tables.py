"""`remove-filter --ours TABLE`: one more version with files that have the bytes from before the
first change by `sbbf`, and the rows of the newest version."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from extensions.tables.iceberg.iceberg_tables import (
    delete_by_position,
    delete_by_vectors,
    edit_metadata,
    ids_of,
    open_static,
    to_hadoop,
)
from sbbf_tool.extensions.tables.iceberg.folder import FolderSource
from sbbf_tool.running.selection import find_table
from support.calls import call
from support.delta_logs import write_table_with_vector
from support.ducklakes import SmallLake
from support.present import count_present

pytestmark = pytest.mark.slow


@pytest.fixture(params=["delta", "iceberg 2", "iceberg 3", "ducklake"])
def table(request, tmp_path) -> str:
    """The name of a table in which rows are deleted by position, if its format can."""
    kind, _, version = request.param.partition(" ")
    folder = tmp_path / "t t"
    if kind == "delta":
        write_table_with_vector(folder, "i", [3, 17])
        return str(folder)
    if kind == "ducklake":
        lake = SmallLake(tmp_path, "sqlite")
        lake.add_file()
        return lake.events
    from extensions.tables.iceberg.iceberg_tables import rows, sql_catalog

    catalog = sql_catalog(tmp_path)
    py_table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    py_table.append(rows(0, 40))
    py_table.append(rows(40, 40))
    folder = to_hadoop(py_table)
    catalog.close()
    first, second = locations_of(folder)
    source = FolderSource(str(folder))
    if version == "3":
        edit_metadata(folder, format_version=3, next_row_id=0)
        delete_by_vectors(source, tmp_path, {first: [3], second: [4, 5]})
    else:
        delete_by_position(source, tmp_path, {first: [3], second: [4, 5]})
    return str(folder)


def locations_of(folder):
    return [f"file://{path}" for path in files_of(str(folder))]


def files_of(name):
    table = find_table(name)
    assert table is not None
    return {file.path: Path(file.path).read_bytes() for file in table.live_files()}


def test_files_are_as_before_and_rows_stay(table, capsys):
    column = "user_id" if table.startswith("ducklake:") else "id"
    present = count_present(table, range(80), column)
    before = files_of(table)
    assert call(capsys, "add-filter", table, "-c", column, "--in-place")[0] == 0
    assert call(capsys, "resize", table, "-c", column, "--fpp", "0.2", "--in-place")[0] == 0
    changed = files_of(table)
    assert changed.keys().isdisjoint(before)
    code, out, _ = call(capsys, "remove-filter", "--ours", table, "-n")
    assert (code, "Would restore" in out, files_of(table)) == (0, True, changed)
    code, out, _ = call(capsys, "remove-filter", "--ours", table, "--in-place")
    assert (code, f"committed {len(before)} file" in out) == (0, True)
    after = files_of(table)
    assert sorted(after.values()) == sorted(before.values())
    assert after.keys().isdisjoint({**before, **changed})
    assert count_present(table, range(80), column) == present
    code, out, _ = call(capsys, "remove-filter", "--ours", table, "--in-place")
    assert (code, "not changed by sbbf" in out, "nothing was committed" in out) == (0, True, True)


def test_other_commits_and_other_filters_stay(tmp_path, capsys):
    folder = tmp_path / "t"
    for start in (0, 100):
        rows = pa.table({"id": range(start, start + 100), "name": [f"n{start}"] * 100})
        properties = None
        if start:
            properties = deltalake.WriterProperties(
                column_properties={
                    "id": deltalake.ColumnProperties(
                        bloom_filter_properties=deltalake.BloomFilterProperties(True, 0.1, 100)
                    )
                }
            )
        deltalake.write_deltalake(folder, rows, mode="append", writer_properties=properties)
    before = files_of(str(folder))
    add = ("add-filter", folder, "-c", "id", "--rebuild", "all", "--in-place")
    assert call(capsys, *add)[0] == 0
    deltalake.write_deltalake(folder, pa.table({"id": [900], "name": ["n"]}), mode="append")
    files = files_of(str(folder))
    (new,) = [data for path, data in files.items() if "sbbf-" not in path]
    code, out, _ = call(capsys, "remove-filter", "--ours", folder, "--in-place")
    assert (code, "committed 2 files" in out) == (0, True)
    assert sorted(files_of(str(folder)).values()) == sorted([*before.values(), new])
    assert deltalake.DeltaTable(folder).to_pyarrow_table().num_rows == 201


@pytest.mark.parametrize("table", ["iceberg 2", "iceberg 3"], indirect=True)
def test_a_hadoop_table_names_the_command_that_undoes(table, capsys):
    before = files_of(table)
    expected = ids_of(open_static(Path(table)))
    out = call(capsys, "add-filter", table, "-c", "id", "--in-place")[1]
    *_, command, statement = out.splitlines()
    assert command == f"undo: sbbf remove-filter --ours {table} --in-place"
    assert statement.startswith("undo: CALL CATALOG.system.rollback_to_snapshot('NAMESPACE.TABLE'")
    out = call(capsys, "add-filter", table, "-c", "day", "--in-place")[1]
    *_, command, statement = out.splitlines()
    assert command == f"undo: sbbf remove-filter {table} -c day --in-place"
    assert call(capsys, *shlex.split(command)[2:])[0] == 0
    out = call(capsys, "remove-filter", "--ours", table, "--in-place")[1]
    assert re.findall("(?m)^undo: .{5}", out) == ["undo: CALL "]
    assert sorted(files_of(table).values()) == sorted(before.values())
    assert ids_of(open_static(Path(table))) == expected
