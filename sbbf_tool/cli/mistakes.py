"""Mistakes on a command line, each as one line: click's own words for them, and the options that have gone."""

from __future__ import annotations

import re

import click

from sbbf_tool.cli.options import name_of
from sbbf_tool.hints import suggest

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

_NO_CHOICE = re.compile(r"'(.*)' is not one of ", re.DOTALL)


def describe_mistake(error: click.ClickException) -> str:
    """Describe a mistake: where it is, what it is, and what to do."""
    if isinstance(error, click.NoSuchOption):
        return _describe_unknown_option(error)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_name(error.param)} is missing"
    message = " ".join(error.message.split())
    if isinstance(error, click.BadParameter):
        place = error.param_hint or (error.param and _name(error.param))
        if error.param is not None and isinstance(error.param.type, click.Choice) and (match := _NO_CHOICE.match(message)):
            message = f"unknown {match[1]!r}; {suggest(match[1], map(str, error.param.type.choices))}"
        message = f"{place}: {message}" if isinstance(place, str) else message
    # The dots of `PATH...` stay.
    line = message if message.endswith("...") else message.removesuffix(".")
    return re.sub(r"^(Option|Got) (?=['u])", "", line)


def _name(parameter: click.Parameter) -> str:
    return name_of(parameter) if isinstance(parameter, click.Option) else parameter.human_readable_name


def _describe_unknown_option(error: click.NoSuchOption) -> str:
    name = error.option_name
    setting = next((each for each in error.ctx.command.params if name in each.opts), None) if error.ctx else None
    if setting is not None:
        key = name.lstrip("-")
        return f"{key} is a setting, not an option: set the variable {setting.envvar}, or {key} in sbbf.toml"
    possibilities = sorted(error.possibilities or ())
    is_plural = f"{name}s" in possibilities  # --engine has gone from `sbbf engines` alone
    near = f"did you mean {' or '.join([f'{name}s'] if is_plural else possibilities)}?" if possibilities else ""
    hint = near if is_plural else next((hint for names, hint in _GONE.items() if name in names.split()), near)
    return f"unknown option {name!r}{f'; {hint}' if hint else ''}"
