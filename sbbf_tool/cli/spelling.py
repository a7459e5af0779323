"""Fixes as commands, and the options that have gone. No other package knows an option."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sbbf_tool.display import quote_word
from sbbf_tool.extension import named
from sbbf_tool.hints import Fix, Parameter

if TYPE_CHECKING:
    import click

_OPTIONS = {"columns": "-c", "num_bytes": "--max-bytes"}
"""The option of a parameter, if it is not the parameter's name after two dashes."""
_COMMANDS = {
    "add_filters": ("add-filter",),
    "remove_filters": ("remove-filter",),
    "resize_filters": ("resize",),
    "repair": ("repair",),
}
"""The command of a function, if it is not the function's name."""

_GONE = {
    "--each-file --wide --all-types": "use --all",
    "--master --runner --remote": "use --on spark, or --on spark:MASTER",
    "--conf": "write settings of Spark into the table [spark] of sbbf.toml",
    "--table": "give the PATH spark:db.table",
    "--force": "use --allow weak-filters",
    "--allow-table-files": "use --allow table-files",
    "--allow-outside": "use --allow outside-files",
    "--commit": "use --allow conditional-put",
    "--unreadable": "use --select unreadable-index",
    "--names": "use --format names",
    "--null-separated": "use --format names0",
    "--any-column": "give the column '*'",
    "--stats": "use --verbose",
    "--engine --mine": "give the names of engines or releases as arguments",
    "--matrix": "use sbbf engines all",
    "--list-rules": "use sbbf rule",
    "--declared": "use --select declared",
    "--no-bitsets": "use --quick",
    "--drop": "use --rebuild none",
    "--bytes": "use --max-bytes",
    "--emit": "use --writer",
    "--queries": "use --query @FILE",
    "--against": "use --baseline",
    "--exact": "use --strict",
    "--only": "use --select",
    "--branch": "give the folder of the branch, TABLE/branch/branch-NAME",
    "--older-than": "use --abandoned AGE",
    "--no-config": "use --config none",
    "--color": "set the variable NO_COLOR or FORCE_COLOR",
    "--debug": "use --verbose",
}
"""What to do in place of options of earlier versions and of other programs."""


def describe_unknown_option(error: click.NoSuchOption) -> str:
    """Describe an option that a command does not have, and what may be meant."""
    name, where = error.option_name, error.ctx.command_path if error.ctx else "sbbf"
    setting = next((each for each in error.ctx.command.params if name in each.opts), None) if error.ctx else None
    if setting is not None:
        key = name.lstrip("-")
        return f"{key} is a setting, not an option: set the variable {setting.envvar}, or {key} in sbbf.toml (see {where} --help)"
    near = " or ".join(sorted(error.possibilities or ()))
    hint = next((hint for names, hint in _GONE.items() if name in names.split()), f"did you mean {near}?" if near else "")
    return f"unknown option {name!r}{f'; {hint}' if hint else ''} (see {where} --help)"


def command_of(fix: Fix) -> tuple[str, ...]:
    """Return the command that makes a change, as a list of program and arguments."""
    arguments = [word for name, value in fix.parameters().items() for word in _words(name, value)]
    words = ("sbbf", *(_COMMANDS.get(fix.verb) or named("fixes").get(fix.verb, (fix.verb,))))
    if any(name.startswith("-") for name in fix.files):
        return (*words, *arguments, "--", *fix.files)
    return (*words, *fix.files, *arguments)


def write_command(fix: Fix) -> str:
    """Return the command that makes a change, in shell syntax."""
    return quote_command(command_of(fix))


def quote_command(words: Iterable[str]) -> str:
    """Return a command in shell syntax."""
    return " ".join(map(quote_word, words))


def _words(name: str, value: Parameter) -> list[str]:
    option = _OPTIONS.get(name) or f"--{name.replace('_', '-')}"
    if value is True:
        return [option]
    if isinstance(value, tuple):
        return [word for item in value for word in (option, item)]
    return [option, f"{value:g}" if isinstance(value, float) else str(value)]
