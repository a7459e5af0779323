"""The help of every command: sections, each option in one of them, and no longer than two screens."""

from __future__ import annotations

import subprocess
import sys

import click

from sbbf_tool.cli import COMMANDS, run
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.options import SECTIONS as OPTION_SECTIONS
from sbbf_tool.cli.options import is_known
from support.every_command import commands
from support.tables import each

TWO_SCREENS = 2 * 50


def test_the_list_of_commands_imports_no_command():
    program = "import sys; from sbbf_tool.cli import run; run(['--help']); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    assert "sbbf_tool.cli.command" in modules
    assert not {entry.module for entry in COMMANDS.values()} & set(modules)


@each("name", list(commands()))
def test_options_are_listed_by_section(name, capfd):
    command = commands()[name]
    assert isinstance(command, Command)
    assert [parameter.opts for parameter in command.params if isinstance(parameter, click.Option) and not is_known(parameter)] == []
    assert run([*name.split(), "--help"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) <= TWO_SCREENS
    headings = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [section for section in OPTION_SECTIONS if section in headings]
    assert headings[-1] == "General"
    words = {word.strip(",") for line in lines if line.startswith("  -") for word in line.split()}
    assert {max(parameter.opts, key=len) for parameter in command.params if isinstance(parameter, click.Option)} <= words


def test_what_a_bug_report_needs(capfd):
    for options in (["--version", "--verbose"], ["-v", "-V"]):
        assert run(options) == 0
        lines = capfd.readouterr().out.splitlines()
        assert lines[0].startswith("sbbf ")
        names = [line.partition(":")[0] for line in lines[1:]]
        packages = ["pyarrow", "numpy", "click", "rich", "xxhash", "cramjam"]
        extras = [f"extra {name}" for name in ("encryption", "objects", "iceberg", "paimon", "report", "spark")]
        assert names == ["kernel", "thrift", "footers", "Python", "platform", *packages, *extras, "Java"]
