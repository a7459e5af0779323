"""Options set by environment variables: which options have one, and their precedence."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import click
import pytest

from parts.commands import read_commands
from sbbf_tool.cli import cli, run
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.options import _SECTION, PureSetting, changes_files, name_of, settable_options
from sbbf_tool.cli.options import SECTIONS as OPTION_SECTIONS
from support.tables import each

# Options without a variable: those that allow or widen a change, write a file, name keys, or run a program.
NOWHERE = {
    "--abandoned", "--advise",
    "--allow", "--also-new-files", "--append", "--compact",
    "--rebuild", "--in-place", "--keys", "--output", "--plan",
    "--ours", "--reader", "--remove-undeclared", "--report", "--state",
    "--writer",
}  # fmt: skip
# In commands that change files, these choose what is changed.
ONLY_READING = {"--column", "--files-from"}


@each("name", list(read_commands()))
def test_no_variable_allows_or_widens_a_change(name):
    command = read_commands()[name]
    options = {name_of(parameter) for parameter in command.params if isinstance(parameter, click.Option)}
    without = options & (NOWHERE | (ONLY_READING if changes_files(command) else set()))
    assert {name_of(option) for option in settable_options(command)} == options - without
    assert {name_of(option) for option in command.params if option.envvar is not None} == options - without


def test_commands_that_change_files():
    changing = {name for name, command in read_commands().items() if changes_files(command)}
    of_paimon = {"paimon build", "paimon add-index", "paimon remove-index"}
    assert changing == {"apply", "add-filter", "remove-filter", "resize", "repair", "index", *of_paimon}


def test_no_variable_is_that_of_two_options():
    variables = [option.envvar for command in read_commands().values() for option in command.params if option.envvar is not None]
    assert len(variables) == len(set(variables))
    assert not {"SBBF_KEYS", "SBBF_KEYS_FILE", "SBBF_KERNEL"} & set(variables)


class TestValues:
    @pytest.fixture
    def path(self, fixtures: Path) -> str:
        return str(fixtures / "pyarrow-filters.parquet")

    def test_that_are_invalid_keep_no_help_from_being_printed(self, path, monkeypatch, capfd):
        """mistakes.txt has the others."""
        monkeypatch.setenv("SBBF_CHECK_JOBS", "\x1b[31m")
        assert run(["check", path]) == 2
        assert capfd.readouterr().err.startswith("sbbf: SBBF_CHECK_JOBS: '\\x1b[31m' is not a valid whole number")
        assert run(["check", "--help"]) == 0

    def test_of_other_commands_and_of_this_package_stay(self, path, monkeypatch):
        others = "SIZE_MAX_BYTES KERNEL KEYS KEYS_FILE CONFORMANCE WITHOUT_EXTENSIONS VERSION MAX_FPP"
        for name in (f"SBBF_{other}" for other in others.split()):
            monkeypatch.setenv(name, "")
        assert run(["resize", path, "--dry-run", "--fpp", "0.5"]) == 0
        assert run(["verify", path]) == 0

    def test_a_variable_may_keep_a_command_from_changing_a_file(self, path, tmp_path, monkeypatch):
        copy = Path(shutil.copy(path, tmp_path))
        before = copy.read_bytes()
        monkeypatch.setenv("SBBF_REMOVE_FILTER_DRY_RUN", "1")
        assert run(["remove-filter", str(copy)]) == 0
        assert copy.read_bytes() == before


MOST_OPTIONS = 55
"""This number may only fall: a new option replaces another, or is a value of one, an argument, or a setting."""
TWO_SCREENS = 2 * 50


def test_there_are_no_more_options():
    options = [option for command in (cli, *read_commands().values()) for option in command.params if isinstance(option, click.Option)]
    names = {name_of(option) for option in options if not isinstance(option, PureSetting)} | {"--help"}
    assert len(names) == MOST_OPTIONS, sorted(names)


@each("name", list(read_commands()))
def test_options_are_listed_by_section(name, capfd):
    command = read_commands()[name]
    assert isinstance(command, Command)
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.opts for option in options if name_of(option) not in _SECTION and not hasattr(option, "about")] == []
    assert run([*name.split(), "--help"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) <= TWO_SCREENS
    headings = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [section for section in OPTION_SECTIONS if section in headings]
    assert headings[-1] == "Settings"
    words = {word.strip(",") for line in lines if line.startswith("  -") for word in line.split()}
    options = {
        name_of(parameter) for parameter in command.params if isinstance(parameter, click.Option) and not isinstance(parameter, PureSetting)
    }
    assert options <= words
    settings = {name_of(parameter).lstrip("-") for parameter in command.params if isinstance(parameter, PureSetting)}
    assert settings == {line.split()[0] for line in lines if re.match(r"  [a-z-]+ = ", line)}


def test_what_a_bug_report_needs(capfd):
    for options in (["--version", "--verbose"], ["-v", "-V"]):
        assert run(options) == 0
        lines = capfd.readouterr().out.splitlines()
        assert lines[0].startswith("sbbf ")
        names = [line.partition(":")[0] for line in lines[1:]]
        packages = ["pyarrow", "numpy", "click", "rich", "xxhash", "cramjam"]
        extras = [name for name in names if name.startswith("extra ")]
        assert names == ["kernel", "thrift", "footers", "Python", "platform", *packages, *extras, "Java"]
        assert {"extra encryption", "extra objects", "extra spark"} <= set(extras)
        assert not {"extra docs", "extra test"} & set(extras)
