"""A run has two doors, `sbbf_tool.run` and the command line: both refuse the same, in the same
words, and the library behind them needs no screen."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from extensions.tables.iceberg.iceberg_tables import sql_catalog, to_hadoop
from sbbf_tool import Edit, FilterSpec, SbbfError
from sbbf_tool.errors import NoColumnError
from sbbf_tool.extensions.index import build_index
from sbbf_tool.verbs import AddFilter, Apply, Inspect, Probe, Verify
from support.calls import call
from support.ducklakes import SmallLake
from support.lakes import digests, small_files
from support.tables import each

IN_PLACE = Edit(in_place=True)
ADD = AddFilter("id")


def delta_table(folder: Path) -> Path:
    deltalake.write_deltalake(folder, pa.table({"id": [1, 2], "user_id": [3, 150]}))
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the working folder: a lake, a Delta table, an index, and an empty folder."""
    monkeypatch.chdir(tmp_path)
    small_files(tmp_path / "lake", 2)
    shutil.copy(tmp_path / "lake" / "part-00000.parquet", "a.parquet")
    delta_table(tmp_path / "orders")
    Path("out").mkdir()
    build_index("lake", "id", "lake.sbbfx")
    return tmp_path


@each("what, library, command, text", [
        ("a table among others",
            lambda: list(sbbf_tool.run(Inspect(), ["orders", "lake"])),
            "inspect orders lake", "orders is a table: give it as the only path"),
        ("an index among others",
            lambda: list(sbbf_tool.run(Probe("id", [1]), ["lake.sbbfx", "lake"])),
            "probe lake.sbbfx lake -c id --value 1",
            "lake.sbbfx is an index: give it as the only path"),
        ("a change of an index",
            lambda: sbbf_tool.run(ADD, "lake.sbbfx", edit=IN_PLACE),
            "add-filter lake.sbbfx -c id --in-place", "an index is only read"),
        ("an index as files",
            lambda: list(sbbf_tool.run(Probe("id", [1]), "lake.sbbfx", as_files=True)),
            "probe lake.sbbfx id 1 --as-files", "an index stands for the files"),
        ("an existing folder as the output",
            lambda: sbbf_tool.run(ADD, "a.parquet", edit=Edit("out")),
            "add-filter a.parquet -c id -o out", "out is a folder: write out/"),
        ("an output for many files",
            lambda: sbbf_tool.run(ADD, "lake", edit=Edit("new.parquet")),
            "add-filter lake -c id -o new.parquet", "an output names one file"),
        ("an output among the files",
            lambda: sbbf_tool.run(ADD, "lake", edit=Edit("lake/new/")),
            "add-filter lake -c id -o lake/new/", "would be among the files of lake"),
        ("two targets",
            lambda: sbbf_tool.run(ADD, "a.parquet", edit=Edit("b.parquet", in_place=True)),
            "add-filter a.parquet -c id -o b.parquet --in-place", "two targets are given"),
        ("no target",
            lambda: sbbf_tool.run(ADD, "a.parquet", edit=Edit()),
            "add-filter a.parquet -c id", "no target is given"),
        ("a state among the data",
            lambda: list(sbbf_tool.run(Verify(), "lake", state="lake/state.parquet")),
            "verify lake --state lake/state.parquet", "the state would be one of the files"),
        ("a state and an output",
            lambda: sbbf_tool.run(ADD, "lake", edit=Edit("new/"), state="state"),
            "add-filter lake -c id -o new/ --state state",
            "a state is for files that are changed in place"),
        ("a table and an output",
            lambda: sbbf_tool.run(ADD, "orders", edit=Edit("new/")),
            "add-filter orders -c id -o new/", "a table changes in one commit"),
        ("a table whose files alone may change",
            lambda: sbbf_tool.run(
                ADD, "orders", edit=Edit(in_place=True, allow_table_files=True)),
            "add-filter orders -c id --in-place --allow table-files",
            "do not allow changes to files of tables"),
        ("an append to a table",
            lambda: sbbf_tool.run(ADD, "orders", edit=Edit(in_place=True, append=True)),
            "add-filter orders -c id --in-place --append", "nothing is appended"),
        ("a column that the table lacks",
            lambda: sbbf_tool.run(AddFilter("idd"), "orders", edit=IN_PLACE),
            "add-filter orders -c idd --in-place", "no column 'idd'"),
        ("properties of files",
            lambda: sbbf_tool.run(AddFilter("id", also_new_files=True), "lake", edit=IN_PLACE),
            "add-filter lake -c id --in-place --also-new-files", "only a table has properties"),
        ("all versions of files",
            lambda: list(sbbf_tool.run(Probe("id", [1]), "lake", all_versions=True)),
            "probe lake id 1 --all-versions", "all versions are those of a table"),
        ("a quick answer without an index",
            lambda: list(sbbf_tool.run(Probe("id", [1]), "lake", quick=True)),
            "probe lake id 1 --quick", "only an index on the column answers without a listing"),
        ("a column that no file has",
            lambda: list(sbbf_tool.run(Inspect("idd"), "lake")),
            "inspect lake -c idd", "no column 'idd'; did you mean id"),
    ])  # fmt: skip
def test_both_doors_refuse_in_the_same_words(folder, capsys, what, library, command, text):
    before = digests(folder)
    with pytest.raises(SbbfError) as refusal:
        library()
    code, out, err = call(capsys, *command.split())
    assert (out, code) == ("", refusal.value.exit_code)
    assert text in str(refusal.value)
    message = re.sub(r" \((-o|--[a-z- ]+|without --[a-z-]+)\)", "", err.splitlines()[0])
    # The library names the file of the first row in a message about all files.
    assert message.removeprefix("sbbf: ") in str(refusal.value)
    assert digests(folder) == before


def test_the_only_file_is_strict_through_both_doors(folder, capsys):
    (row,) = sbbf_tool.run(Verify("idd"), "a.parquet")
    assert row.status == "failed"
    assert isinstance(row.error, NoColumnError)
    assert call(capsys, "verify", "a.parquet", "-c", "idd")[0] == row.exit_code == 2


def test_declared_files_are_chosen_by_both_doors(folder, capsys):
    """Files that no entry declares are not looked at, and a declared table below a path has a
    commit of its own."""
    spec = FilterSpec("id", paths=("lake/part-00000.parquet", "orders"))
    Path("sbbf.toml").write_text(
        '[[filters]]\npaths = ["lake/part-00000.parquet", "orders"]\ncolumns = ["id"]\n'
    )
    summary = sbbf_tool.run(Apply([spec]), ".", edit=Edit(dry_run=True))
    code, out, _ = call(capsys, "apply", ".", "--dry-run")
    assert (code, dict(summary.files)) == (1, {"ok": 2})
    assert out.splitlines()[-1].startswith("2 files: 2 not as declared")
    summary = sbbf_tool.run(Apply([spec]), ".", edit=IN_PLACE)
    assert [commit.num_files for commit in summary.commits] == [1]
    assert call(capsys, "apply", ".")[0] == 0


_LIBRARY_ALONE = """
import sys

class NoScreen:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("click", "rich") or name.startswith("sbbf_tool.cli"):
            raise ImportError(f"{name} belongs to the command line")

sys.meta_path.insert(0, NoScreen())

from sbbf_tool import Edit, FilterSpec, run
from sbbf_tool.extensions.index import build_index
from sbbf_tool.verbs import *

file, index, *tables = sys.argv[1:]
edit = Edit(in_place=True)
for table in tables:
    summary = run(AddFilter("user_id"), table, edit=edit)
    assert summary.files == {"ok": 1} and len(summary.commits) == 1, (table, summary)
    summary = run(Apply([FilterSpec("user_id", paths=(table,))]), table, edit=edit)
    assert summary.files == {"skipped": 1}, (table, summary)
    (row,) = run(Probe("user_id", [150]), table)
    assert row.report.hits, table
    assert run(RemoveFilter("user_id"), table, edit=edit).files == {"ok": 1}
for verb in (AddFilter("id"), Resize("id", 0.5), Repair(), RemoveFilter()):
    assert run(verb, file, edit=edit).errors == (), verb
for verb in (Check(), Explain("id", 1), Inspect(), Probe("id", [1]), Verify()):
    rows = run(verb, file)
    rows = [] if verb.combines else list(rows)
    assert all(row.status == "ok" for row in rows), rows
run(Advise(), file)
build_index(file, "id", index)
assert not {"click", "rich"} & set(sys.modules)
"""


def test_the_library_needs_no_screen(tmp_path):
    shutil.copy(small_files(tmp_path / "lake", 1) / "part-00000.parquet", tmp_path / "a.parquet")
    delta_table(tmp_path / "delta")
    (tmp_path / "iceberg").mkdir()
    catalog = sql_catalog(tmp_path / "iceberg")
    iceberg = catalog.create_table("n.t", pa.schema({"user_id": pa.int64()}))
    iceberg.append(pa.table({"user_id": [150]}))
    ducklake = SmallLake(tmp_path / "ducklake", "sqlite")
    ducklake.add_file()
    tables = (tmp_path / "delta", to_hadoop(iceberg), ducklake.events)
    command = [sys.executable, "-c", _LIBRARY_ALONE, tmp_path / "a.parquet", tmp_path / "i.sbbfx"]
    process = subprocess.run([*command, *tables], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert pq.read_table(tmp_path / "a.parquet").num_rows
