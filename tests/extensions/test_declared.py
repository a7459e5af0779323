"""The smallest extension, a package of its own, and the package without each extension: the core is
not changed and works."""

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
from sbbf_tool.cli import run
from sbbf_tool.extension import Extension, load
from support.tables import each

TOY = {
    "sbbf_toy/__init__.py": """
from sbbf_tool.extension import Extension

EXTENSION = Extension(
    commands={"toy": ("sbbf_toy.command", "Print the name of a toy.")},
    rules={"toy-check": "sbbf_toy.rules:RULES"},
    tables="sbbf_toy.table",
)
""",
    "sbbf_toy/command.py": """
import click
from sbbf_tool.cli.command import Command

@click.command(cls=Command)
@click.argument("name")
def command(name: str) -> None:
    "Print the name of a toy."
    click.echo(name)
""",
    "sbbf_toy/rules.py": """
from sbbf_tool.rules.facts import Reads
from sbbf_tool.rules.rule import Rule

RULES = (Rule("toy-rule", "toys", "info", "the toy is broken", "It was played with."),)
""",
    "sbbf_toy/table.py": """
import os
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.running.table import LiveFile, Table

def is_name(name): return name.startswith("toy:")
def is_table(name): return is_name(name)
def find_table(name, table_format=None): return Toys(name) if is_name(name) else None

class Toys(Table):
    format, version, properties, columns = "Toy", "version 1", {}, ColumnNames()

    def __init__(self, name):
        self.name, self.location = name, name.removeprefix("toy:")

    def live_files(self):
        names = sorted(os.listdir(self.location))
        return [LiveFile(os.path.join(self.location, name), None) for name in names]

    def ensure_changeable(self, *, conditional_put=False): ...
    def copy_path(self, file, name): ...
""",
    "sbbf_toy-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: sbbf-toy\nVersion: 1\n",
    "sbbf_toy-1.dist-info/entry_points.txt": "[sbbf_tool.extensions]\ntoy = sbbf_toy:EXTENSION\n",
}


@pytest.fixture
def sbbf(tmp_path: Path):
    for name, text in TOY.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-m", "sbbf_tool", *arguments],
            capture_output=True,
            text=True,
            env=environment,
        )

    return call


@pytest.mark.slow
def test_an_extension_brings_a_command_a_rule_and_a_kind_of_tables(sbbf, tmp_path, fixtures):
    assert "Print the name of a toy." in sbbf("--help").stdout
    assert sbbf("toy", "bear").stdout == "bear\n"
    assert "the toy is broken" in sbbf("rule", "toy-rule").stdout
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "a.parquet").write_bytes((fixtures / "pyarrow-filters.parquet").read_bytes())
    done = sbbf("probe", f"toy:{lake}", "id", "1", "--format", "json")
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [
        document.get("files") for document in documents if document["schema"] == "sbbf.summary"
    ] == [1], done.stderr


def test_a_package_that_an_extension_lacks_is_named(tmp_path, fixtures, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    assert run(["report", str(fixtures / "events.parquet"), "-o", str(tmp_path / "page.html")]) == 2
    assert run(["paimon", "inspect", str(fixtures / "paimon" / "orders")]) == 2
    of_report, of_paimon = capsys.readouterr().err.splitlines()
    assert "pip install '.[report]'" in of_report
    assert "'.[paimon]'" in of_paimon


PACKAGE = Path(sbbf_tool.__file__).parent
PROGRAM = """
import contextlib, io, json, sys
import sbbf_tool

def call(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    return code, out.getvalue(), err.getvalue()

assert "probe" in dir(sbbf_tool)
exec("from sbbf_tool import *")
from sbbf_tool.cli import run

print(json.dumps([sbbf_tool.__file__, *map(call, json.loads(sys.argv[1]))]))
"""

COMMANDS = {
    "avro": [
        "paimon",
        "inspect",
        str(PACKAGE.parent / "fixtures" / "paimon" / "orders"),
    ],  # it has no command of its own
    "conformance": ["conformance", "make", "corpus"],
    "engine_runs": ["explain", "plain.parquet", "id", "1", "--run", "duckdb"],
    "index": ["index", "plain.parquet", "-c", "id", "-o", "plain.sbbfx"],
    "paimon": ["paimon", "inspect", "orders"],
    "report": ["report", "plain.parquet", "-o", "page.html"],
    "tables": ["repair", "plain.parquet", "--abandoned", "24h"],
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
        ["--help"], ["schema"], ["rule"], ["inspect", "plain.parquet"],
        ["add-filter", "plain.parquet", "-c", "id", "--in-place"],
        ["probe", "plain.parquet", "id", "-5"],
        ["add-filter", str(data_file), "-c", "id", "--in-place"], *ROOTS, command,
    ]  # fmt: skip
    program = [sys.executable, "-c", PROGRAM, json.dumps(calls), name]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    package, help_answer, schema, rule, inspected, added, probed, of_table, *at_root, own = (
        json.loads(done.stdout)
    )
    assert Path(package).parent == tmp_path / "sbbf_tool"
    assert [answer[0] for answer in (help_answer, schema, rule, inspected, added, probed)] == [
        0,
        0,
        0,
        0,
        0,
        1,
    ]
    assert not re.findall(
        rf"^  ({'|'.join(brings.commands) or 'none'}) ", help_answer[1], re.MULTILINE
    )
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
    assert (own[0], own[1], own[2].count("\n")) == (2, "", 1)
    missing = (
        "the extension avro"
        if name == "avro"
        else f"unknown {'command' if brings.commands else 'option'} "
    )
    assert own[2].startswith(f"sbbf: {missing}")


ROOMS = (
    "advice", "bloom", "cli", "editing", "encryption", "faults", "file", "golden", "verbs",
    "parquet", "query_engines", "reports",
    "rules", "running", "storage", "writers",
)  # fmt: skip
ABOUT_EXTENSIONS = (
    "cli/test_apply_command.py::TestTables",
    "cli/test_completion.py::test_what_can_follow",
    "cli/test_declared_filters.py",
    "cli/test_configuration.py::test_commands_that_change_files",
    "cli/test_configuration.py::test_there_are_no_more_options",
    "cli/test_configuration.py::TestValues::test_of_other_commands_and_of_this_package_stay",
    "cli/test_configuration.py::TestValues::test_that_nothing_reads_are_errors_in_every_command",
    "cli/test_exit_codes.py",
    "cli/test_quiet_and_verbose.py::test_verbose",
    "cli/test_saved_reports.py::test_a_report_replaces_nothing_that_the_command_uses",
    "cli/test_same_mistakes.py::test_every_command_is_here",
    "cli/test_table_columns.py",
    "cli/test_mistakes.py::test_mistakes",
    "faults/test_delta_faults.py",
    "faults/test_fuzz.py",
    "faults/test_index_kills.py",
    "faults/test_table_faults.py",
    "file/test_table_file.py",
    "verbs/test_conditions.py::test_engines_convert_the_text_of_a_partition",
    "verbs/test_conditions.py::test_rows_of_a_delta_table",
    "verbs/test_prune.py::test_the_root_of_a_table_is_refused_and_its_dataset_is_pruned",
    "verbs/test_spellings_of_lists.py::test_declared_filters_and_the_index",
    "verbs/test_readings.py::test_the_schema_of_a_delta_table_counts_too",
    "query_engines/test_runs.py",
    "reports/test_tabular.py",
    "rules/test_filter_spec.py::test_the_paths_of_a_file_that_was_found_are_below_it",
    "running/test_file_times.py",
    "running/test_run.py::test_a_block_that_fails_commits_nothing",
    "running/test_run.py::test_a_table_commits_when_the_block_ends",
    "running/test_state.py::test_a_table_keeps_a_state_of_its_live_files",
    "verbs/test_page_limit.py",
    "writers/test_writer_settings.py::test_a_name_cannot_end_a_comment",
    "writers/test_writer_settings.py::test_columns_that_a_writer_cannot_be_given_are_notes",
    "writers/test_writer_settings.py::test_quotes_in_sql_are_doubled",
)
"""Tests of the core's rooms that need an extension: for a table, a query engine, a writer, or the
list of all commands."""


@pytest.mark.nightly(3)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("missing", [*([name] for name in COMMANDS), [*COMMANDS]], ids="-".join)
def test_the_core_s_own_tests_pass_without_extensions(tmp_path, missing):
    for name in (
        "fixtures",
        "docs",
        "thrift",
        "pyproject.toml",
        "setup.py",
        "README.md",
        ".pre-commit-hooks.yaml",
    ):
        (tmp_path / name).symlink_to(PACKAGE.parent / name)
    for name in ("sbbf_tool", "tests"):
        shutil.copytree(
            PACKAGE.parent / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in missing:
        shutil.rmtree(tmp_path / "sbbf_tool" / "extensions" / name)
    left_out = [
        f"--{'deselect' if '::' in name else 'ignore'}=tests/{name}" for name in ABOUT_EXTENSIONS
    ]
    selected = [
        "-m",
        "not heavy and not engines and not slow",
        *left_out,
        *(f"tests/{room}" for room in ROOMS),
    ]
    program = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *selected]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout[-4000:]
