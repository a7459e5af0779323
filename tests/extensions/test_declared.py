"""The smallest extension: a package of its own brings a command, a rule and a kind of tables, and the core is not changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sbbf_tool.cli import run

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

RULES = (Rule("toy-rule", "toys", "info", Reads.FOOTER, "the toy is broken", "It was played with."),)
""",
    "sbbf_toy/table.py": """
import os
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.runner.table import LiveFile, Table

def is_name(name): return name.startswith("toy:")
def is_table(name): return is_name(name)
def find_table(name): return Toys(name) if is_name(name) else None

class Toys(Table):
    format, version, properties, columns = "Toy", "version 1", {}, ColumnNames()

    def __init__(self, name):
        self.name, self.location = name, name.removeprefix("toy:")

    def live_files(self):
        return [LiveFile(os.path.join(self.location, name), None) for name in sorted(os.listdir(self.location))]

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
        return subprocess.run([sys.executable, "-m", "sbbf_tool", *arguments], capture_output=True, text=True, env=environment)

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
    assert [document.get("files") for document in documents if document["schema"] == "sbbf.summary"] == [1], done.stderr


def test_a_package_that_an_extension_lacks_is_named(tmp_path, fixtures, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    assert run(["report", str(fixtures / "events.parquet"), "-o", str(tmp_path / "page.html")]) == 2
    assert run(["paimon", "inspect", str(fixtures / "paimon" / "orders")]) == 2
    of_report, of_paimon = capsys.readouterr().err.splitlines()
    assert "pip install 'sbbf-tool[report]'" in of_report
    assert "'sbbf-tool[paimon]'" in of_paimon
