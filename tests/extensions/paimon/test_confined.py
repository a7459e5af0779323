"""A table's metadata names files of the table alone: nothing outside its folder is read without the user's word, and nothing written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.extensions.paimon.table import PATH_DIRECTORY, is_below, open_table
from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index
from sbbf_tool.extensions.paimon.verbs.inspect import inspect_paimon
from sbbf_tool.extensions.paimon.verbs.probe import probe_paimon
from sbbf_tool.extensions.paimon.verbs.verify import verify_paimon
from support.paimon_tables import NewFile, NewTable, TableMaker, columns, contents
from support.tables import each

INDEX_FILES = {"file-index.in-manifest-threshold": "1 b"}


def set_option(maker: TableMaker, name: str, value: str) -> None:
    for path in (maker.root / "schema").iterdir():
        schema = json.loads(path.read_bytes())
        schema["options"][name] = value
        path.write_text(json.dumps(schema))


@each(
    "command, directory",
    [("inspect", "a/../../other"), ("probe", "/etc"), ("verify", "file:/etc"), ("add-index", ".."), ("add-index", "s3://bucket/x")],
)
def test_an_option_that_leads_out_of_the_table_is_refused(new_table: NewTable, tmp_path, command, directory, capfd):
    maker = new_table()
    maker.commit(NewFile(columns()))
    set_option(maker, PATH_DIRECTORY, directory)
    before = contents(tmp_path)
    arguments = {"probe": ["id", "1"], "add-index": ["-c", "id"]}.get(command, [])
    assert run(["paimon", command, str(maker.root), *arguments]) == RefusedError.exit_code
    assert f"{PATH_DIRECTORY} leads out of the table: {directory}" in capfd.readouterr().err
    assert contents(tmp_path) == before


def external(new_table: NewTable, path: str, roots: str) -> TableMaker:
    maker = new_table(options={**INDEX_FILES, "data-file.external-paths": roots})
    maker.commit(NewFile(columns(), name="a.parquet", external_path=path))
    return maker


@each("path, roots", [("{0}/else/a.parquet", "{0}/elsewhere"), ("{0}/else/../secret/a.parquet", "{0}/else"), ("{0}/else/a.parquet", "")])
def test_an_external_path_must_be_below_the_declared_ones(files, new_table, tmp_path, path, roots):
    (tmp_path / "else").mkdir()
    maker = external(new_table, path.format(tmp_path), roots.format(tmp_path))
    (live,) = open_table(files, str(maker.root)).live_files
    assert "is not below the table's data-file.external-paths" in str(live.outside)
    assert is_below("file:/a/b/c.parquet", ["file:///a/b"])
    assert is_below("/a/b/c.parquet", [" /x", " /a/b/ "])
    assert not is_below("/a/bc/c.parquet", ["/a/b"])
    assert not is_below("/a/b/../c.parquet", ["/a/b"])
    assert not is_below("/a/b/c.parquet", ["", " "])


@pytest.fixture
def linked(new_table: NewTable, tmp_path: Path) -> TableMaker:
    """A table of two data files; one of them is a link to a file outside the table."""
    maker = new_table(options=INDEX_FILES)
    maker.commit(NewFile(columns(), name="a.parquet"), NewFile(columns(100), name="b.parquet"))
    secret = tmp_path / "secret.parquet"
    (maker.root / "bucket-0" / "b.parquet").rename(secret)
    (maker.root / "bucket-0" / "b.parquet").symlink_to(secret)
    return maker


def test_a_link_out_of_the_table_is_left_out(linked, tmp_path):
    report = add_paimon_index(str(linked.root), ["s"])
    assert [row.data_file for row in report.new_indexes] == ["a.parquet"]
    assert [(file.data_file, file.reason) for file in report.skipped] == [
        ("b.parquet", f"the file is outside the table, at {tmp_path}/secret.parquet")
    ]
    findings = [finding for finding in inspect_paimon(str(linked.root)).findings if finding.rule == "outside-table"]
    assert [finding.file for finding in findings] == ["b.parquet"]
    # It may hold any value.
    probed = probe_paimon(str(linked.root), "s", ["nowhere"])
    assert {file.data_file: file.answers[0].may_hold for file in probed.files} == {"a.parquet": False, "b.parquet": True}


def test_with_allow_outside_it_is_read_and_nothing_written_outside(linked, tmp_path):
    report = add_paimon_index(str(linked.root), ["s"], allow_outside=True)
    assert sorted(row.data_file for row in report.new_indexes) == ["a.parquet", "b.parquet"]
    # The index is beside the link, in the table.
    assert (linked.root / "bucket-0" / "b.parquet.index").is_file()
    assert sorted(os.listdir(tmp_path)) == sorted({linked.root.relative_to(tmp_path).parts[0], "secret.parquet"})
    assert not verify_paimon(str(linked.root), allow_outside=True).has_false_negatives


def test_an_index_file_outside_is_not_read(linked, tmp_path):
    add_paimon_index(str(linked.root), ["s"], allow_outside=True)
    index = linked.root / "bucket-0" / "a.parquet.index"
    index.rename(tmp_path / "stolen.index")
    index.symlink_to(tmp_path / "stolen.index")
    files = {file.data_file: file for file in verify_paimon(str(linked.root)).files}
    assert "leads outside the table" in str(files["a.parquet"].problem)
    assert "is outside the table" in str(files["b.parquet"].problem)


@each("part", ["manifest", "schema", "snapshot", "bucket-0"])
def test_folders_that_lead_out_are_not_followed(new_table, tmp_path, part):
    maker = new_table(options=INDEX_FILES)
    maker.commit(NewFile(columns(), name="a.parquet"))
    (maker.root / part).rename(tmp_path / "moved")
    (maker.root / part).symlink_to(tmp_path / "moved")
    before = contents(tmp_path)
    if part == "bucket-0":
        assert [file.data_file for file in add_paimon_index(str(maker.root), ["s"]).skipped] == ["a.parquet"]
    else:
        with pytest.raises(UnreadableError, match="leads outside the table"):
            add_paimon_index(str(maker.root), ["s"])
    assert contents(tmp_path) == before
