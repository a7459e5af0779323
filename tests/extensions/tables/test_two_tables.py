"""A folder that is the root of a Delta table and of an Iceberg table, as after a conversion in
place."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

import deltalake

from extensions.tables.iceberg.iceberg_tables import (
    convert,
    ids_of,
    open_static,
    rows,
    sql_catalog,
    to_hadoop,
)
from sbbf_tool import run as run_verb
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.extensions.tables.copies import find_unreferenced
from sbbf_tool.extensions.tables.iceberg.table import open_folder
from sbbf_tool.extensions.tables.locate import find_table
from sbbf_tool.verbs.probe import Probe

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path) -> Path:
    """Both tables have the same two files of 100 rows."""
    catalog = sql_catalog(tmp_path)
    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    table.append(rows(0, 100))
    table.append(rows(100, 100))
    folder = to_hadoop(table)
    catalog.close()
    write_log(folder, 0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    return folder


def write_log(folder: Path, version: int, *actions: Mapping[str, Any], **properties: str) -> None:
    """Write a version of the Delta table with all Parquet files below the folder."""
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "day", "type": "string", "nullable": True, "metadata": {}},
    ]
    metadata = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": properties,
    }
    lines = [*actions, {"metaData": metadata}]
    for path in sorted(folder.rglob("*.parquet")):
        add = {
            "path": str(path.relative_to(folder)),
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
        }
        lines.append({"add": add})
    (folder / "_delta_log").mkdir(exist_ok=True)
    log = folder / "_delta_log" / f"{version:020}.json"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))


def answer(capsys, *arguments):
    code = run([*map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_reading_says_which_table_it_took(folder, capsys):
    code, text = answer(capsys, "probe", folder, "id", 5000)
    assert (code, "a table of Delta and one of Iceberg" in text) == (1, True), text
    assert "--as FORMAT" in text
    for name in ("delta", "iceberg"):
        assert answer(capsys, "probe", folder, "id", 5000, "--as", name)[0] == 1
        code, text = answer(capsys, "inspect", folder, "--as", name)
        assert (code, "has a table" in text) == (0, False), text


@pytest.mark.parametrize("other", ["delta", "iceberg"])
def test_no_value_is_absent_where_the_other_table_has_more_files(folder, capsys, other):
    if other == "iceberg":
        convert(open_folder(str(folder)))
    else:
        deltalake.write_deltalake(folder, rows(200, 5), mode="append")
    taken = find_table(str(folder))
    assert taken.format == "Delta"
    expected = 0 if other == "iceberg" else 1
    code, text = answer(capsys, "probe", folder, "id", 5000)
    assert code == expected, text
    assert ("2 files of that of Iceberg are not in" in text) == (other == "iceberg"), text
    statuses = {row.status for row in run_verb(Probe("id", [5000]), str(folder))}
    assert ("skipped" in statuses) == (other == "iceberg")
    assert answer(capsys, "probe", folder, "id", 5000, "--as", "delta")[0] == 1
    assert answer(capsys, "probe", folder, "id", 5000, "--as", "iceberg")[0] == 1


def test_the_other_table_cannot_be_read(folder, capsys):
    next((folder / "metadata").glob("*.metadata.json")).write_text("{")
    code, text = answer(capsys, "probe", folder, "id", 5000)
    assert (code, "cannot be read" in text) == (0, True), text
    assert answer(capsys, "probe", folder, "id", 5000, "--as", "delta")[0] == 1


def test_a_change_is_refused_until_a_table_is_named(folder, capsys):
    before = {path.name for path in folder.rglob("*")}
    for command in (["add-filter", "-c", "id"], ["remove-filter"], ["repair"]):
        code, text = answer(capsys, command[0], folder, *command[1:], "--in-place")
        assert (code, "--as FORMAT" in text) == (4, True), text
    assert {path.name for path in folder.rglob("*")} == before
    for name in ("iceberg", "delta"):
        code, text = answer(capsys, "add-filter", folder, "-c", "id", "--in-place", "--as", name)
        assert (code, "2 filters added" in text) == (0, True), text
        assert ids_of(open_static(folder)) == list(range(200))
        assert deltalake.DeltaTable(folder).to_pyarrow_table().num_rows == 200


def test_a_clean_up_keeps_the_copies_of_the_other_table(folder, capsys):
    answer(capsys, "add-filter", folder, "-c", "id", "--in-place", "--as", "iceberg")
    copies = [file.path for file in open_folder(str(folder)).live_files()]
    for path in copies:
        os.utime(path, (0, 0))
    for name in ("delta", "iceberg"):
        assert find_unreferenced(find_table(str(folder), name), 0) == ([], [])
        answer(capsys, "repair", folder, "--abandoned", "1s", "--in-place", "--as", name)
    assert all(map(os.path.exists, copies))


def test_uniform_is_told(folder, capsys):
    write_log(folder, 1, **{"delta.universalFormat.enabledFormats": "iceberg"})
    text = answer(capsys, "probe", folder, "id", 5000)[1]
    assert "delta.universalFormat.enabledFormats is iceberg" in text


def test_a_format_must_be_that_of_a_table(folder, capsys, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.parquet").write_bytes(next((folder / "data").glob("*.parquet")).read_bytes())
    for arguments in ((plain,), (plain / "a.parquet",), (plain, plain), (folder, "--as-files")):
        code, text = answer(capsys, "inspect", *arguments, "--as", "iceberg")
        assert code == 2, text
    with pytest.raises(UsageError, match="no table of the format iceberg"):
        list(run_verb(Probe("id", [1]), str(plain), table_format="iceberg"))
    with pytest.raises(RefusedError, match="a table of Delta and one of Iceberg"):
        raise find_table(str(folder)).why_unchangeable
