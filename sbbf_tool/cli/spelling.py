"""Fixes as commands, and hints with their options. No other package knows an option."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sbbf_tool.display import quote_word
from sbbf_tool.extension import named
from sbbf_tool.hints import Fix, Parameter

_OPTIONS = {"columns": "-c"}
"""The option of a parameter, if it is not the parameter's name after two dashes."""
_COMMANDS = {
    "add_filters": ("add-filter",),
    "remove_filters": ("remove-filter",),
    "resize_filters": ("resize",),
    "repair": ("repair",),
}
"""The command of a function, if it is not the function's name."""
_HINTS = {
    "name another file": "-o",
    "change the file in place": "--in-place",
    "change it in place": "--in-place",
    "change them in place": "--in-place",
    "change the files in place": "--in-place",
    "take the files below it as files": "--as-files",
    "say which of the two it is": "--as FORMAT",
    "do not take them as files": "without --as-files",
    "leave the state out": "without --state",
    "list the lake": "without --quick",
    "save the report of a check as JSON or Parquet": "--report FILE.json",
    "search its newest version": "without --all-versions",
    "the stated number of distinct values": "--ndv",
    "only try it": "--dry-run",
    "force that they are written": "--allow weak-filters",
    "allow changes to files of tables": "--allow table-files",
    "add a filter of that size in place of the old one": "add-filter --rebuild all",
}
"""The options by which the command line follows a hint, whose words name none."""


def name_options(message: str) -> str:
    """Write the options behind the hints of a message."""
    start, separator, hint = message.partition("; ")
    hint = re.sub("|".join(_HINTS), lambda match: f"{match[0]} ({_HINTS[match[0]]})", hint)
    return start + separator + hint


def command_of(fix: Fix, options: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the command that makes a change, with further options, as a list of program and
    arguments."""
    arguments = []
    for name, value in fix.parameters().items():
        arguments += _words(name, value)
    command = _COMMANDS.get(fix.verb) or named("fixes").get(fix.verb, (fix.verb,))
    words = ("sbbf", *command, *options)
    if any(name.startswith("-") for name in fix.files):
        # PATHs may follow `--`.
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
        words: list[str] = []
        for item in value:
            words += (option, item)
        return words
    if isinstance(value, float):
        return [option, f"{value:g}"]
    return [option, str(value)]
