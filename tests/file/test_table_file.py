"""Files of a table: columns have the names of the table, also in files with encrypted or signed footers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sbbf_tool.editing.edit import Edit
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.file.table_file import TableFile, TableFiles
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.runner import works
from support.tables import each

RUN = "0123456789abcdef"


@pytest.fixture
def keys(fixtures) -> Keys:
    return Keys.from_json((fixtures / "encrypted" / "keys.json").read_text())


def swap(path: Path, keys: Keys) -> ColumnNames:
    """Swap the names of `id` and `name`."""
    with ParquetFile.open(path, keys) as file:
        columns = {column.short_path: column.short_path for column in file.footer.columns}
    return ColumnNames(by_path={**columns, ("id",): ("name",), ("name",): ("id",)})


@each("base", ["java-columns", "java-signed"])
def test_names_of_the_table_in_encrypted_files(fixtures, tmp_path, keys, base):
    source = fixtures / "encrypted" / f"{base}.parquet.encrypted"
    names = swap(source, keys)
    path = tmp_path / "data.parquet"
    path.write_bytes(source.read_bytes())
    work = works.add(FilterSpec(("name",)), Edit(in_place=True, keys=keys), rebuild="all")
    row = work.of_table(TableFiles(TableFile("", names, RUN)))(str(path))
    assert (row.status, row.reason) == ("ok", None)
    assert {chunk.column for chunk in row.report.filters} == {"name"}
    with ParquetFile.open(row.report.output, keys) as file:
        (index,) = {column.index for column in file.footer.columns if column.name == "id"}
        assert all(file.footer.filter_place(number, index) for number in range(file.footer.num_row_groups))


def test_a_locked_file_is_skipped_by_a_change_and_refused_by_a_command_that_reads(fixtures, tmp_path):
    source = fixtures / "encrypted" / "java-columns.parquet.encrypted"
    names = ColumnNames()
    skipped = works.add(FilterSpec(("id",)), Edit(in_place=True)).of_table(TableFiles(TableFile("", names, RUN)))(str(source))
    assert (skipped.status, skipped.exit_code) == ("skipped", 0)
    assert "the footer is encrypted" in skipped.reason
    row = works.inspect().of_table(TableFiles(TableFile("", names)))(str(source))
    assert (row.status, row.exit_code) == ("refused", 4)


def test_a_copy_that_would_lose_its_key_material_is_skipped(fixtures, tmp_path, keys):
    path = tmp_path / "data.parquet"
    path.write_bytes((fixtures / "encrypted" / "java-columns.parquet.encrypted").read_bytes())
    (tmp_path / "_KEY_MATERIAL_FOR_data.parquet.json").write_text("{}")
    work = works.add(FilterSpec(("id",)), Edit(in_place=True, keys=keys), rebuild="all")
    row = work.of_table(TableFiles(TableFile("", ColumnNames(), RUN)))(str(path))
    assert (row.status, row.exit_code) == ("skipped", 0)
    assert "readers look for its keys in a file that is named after it" in row.reason
    assert not list(tmp_path.glob("sbbf-*"))


def test_files_of_different_names_share_what_is_kept_between_files(fixtures):
    path, reuse = str(fixtures / "events.parquet"), Reuse()
    with ParquetFile.open(path) as file:
        plain = file.footer.columns[0].name
    for names in (None, ColumnNames(by_path={(plain,): ("x",)}), ColumnNames(by_path={(plain,): ("y",)}), None):
        with ParquetFile.open(path if names is None else TableFile(path, names), reuse=reuse) as file:
            expected = plain if names is None else names.by_path[(plain,)][0]
            assert file.footer.columns[0].name == expected
