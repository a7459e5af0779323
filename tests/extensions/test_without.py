"""The package without each extension: the core works, says what is missing, and changes no file of a table as if it were a plain one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sbbf_tool
from sbbf_tool.extension import Extension, load
from support.tables import each

PACKAGE = Path(sbbf_tool.__file__).parent
PROGRAM = """
import contextlib, io, json, sys
import sbbf_tool
from sbbf_tool.cli import run

def call(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    return code, out.getvalue(), err.getvalue()

assert "probe" in dir(sbbf_tool)
if sys.argv[2] != "avro":  # which paimon and tables use
    exec("from sbbf_tool import *")
print(json.dumps([sbbf_tool.__file__, *map(call, json.loads(sys.argv[1]))]))
"""
COMMANDS = {
    "avro": ["--version"],  # it has no command of its own
    "conformance": ["conformance", "make", "corpus"],
    "engine_runs": ["explain", "plain.parquet", "id", "1", "--run", "duckdb"],
    "paimon": ["paimon", "inspect", "orders"],
    "report": ["report", "plain.parquet", "-o", "page.html"],
    "tables": ["repair", "plain.parquet", "--abandoned"],
}
"""Of each extension, a command that it brings, or an option."""
ROOTS = [["probe", "table", "id", "1"], ["add-filter", "table", "-c", "id", "--in-place"]]


@pytest.mark.slow
@each("name, command", COMMANDS.items(), every=3)
def test_the_package_without_an_extension(tmp_path, fixtures, name, command):
    brings = getattr(import_module(f"sbbf_tool.extensions.{name}"), "EXTENSION", Extension())
    shutil.copytree(PACKAGE, tmp_path / "sbbf_tool")
    shutil.rmtree(tmp_path / "sbbf_tool" / "extensions" / name)
    shutil.copy(fixtures / "pyarrow-plain.parquet", tmp_path / "plain.parquet")
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    (tmp_path / "table" / "_delta_log" / f"{0:020d}.json").write_text("{}")
    data_file = Path(shutil.copy(tmp_path / "plain.parquet", tmp_path / "table"))
    calls = [
        ["--help"], ["schema"], ["rule"], ["inspect", "plain.parquet"], ["add-filter", "plain.parquet", "-c", "id", "--in-place"],
        ["probe", "plain.parquet", "id", "-5"], ["add-filter", str(data_file), "-c", "id", "--in-place"], *ROOTS, command,
    ]  # fmt: skip
    program = [sys.executable, "-c", PROGRAM, json.dumps(calls), name]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    package, help_answer, schema, rule, inspected, added, probed, of_table, *at_root, own = json.loads(done.stdout)
    assert Path(package).parent == tmp_path / "sbbf_tool"
    assert [answer[0] for answer in (help_answer, schema, rule, inspected, added, probed)] == [0, 0, 0, 0, 0, 1]
    assert not re.findall(rf"^  ({'|'.join(brings.commands) or 'none'}) ", help_answer[1], re.MULTILINE)
    assert not {f"sbbf.{document}" for document in brings.documents} & set(schema[1].split())
    rules = {each.name for place in brings.rules.values() for each in load(place)}
    assert not rules & {line.partition(" ")[0] for line in rule[1].splitlines()}
    # Neither one file of a table nor a table is taken for plain files.
    assert of_table[0] == 4
    assert f"the file belongs to a Delta table ({tmp_path / 'table'})" in of_table[2]
    for code, _, err in at_root:
        assert (code, err.count("\n")) == (4 if name == "tables" else 3, 1)
        assert ("no extension is installed that reads tables of Delta" in err) == (name == "tables")
    assert data_file.read_bytes() == (fixtures / "pyarrow-plain.parquet").read_bytes()
    if name != "avro":
        assert (own[0], own[1], own[2].count("\n")) == (2, "", 1)
        assert own[2].startswith(f"sbbf: unknown {'command' if brings.commands else 'option'} ")
