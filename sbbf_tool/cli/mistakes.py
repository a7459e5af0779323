"""Mistakes on a command line, each as one line: in click's own words."""

from __future__ import annotations

import re

import click

from sbbf_tool.cli.options import name_of
from sbbf_tool.cli.settings import describe_sources
from sbbf_tool.errors import SbbfError, UsageError
from sbbf_tool.hints import suggest

_OF_COMMANDS = ("--config", "--format", "--report", "--quiet", "-q", "--jobs", "--keys", "--all")
"""Options that commands share, and that may be written before the command by mistake."""
_NO_CHOICE = re.compile(r"'(.*)' is not one of ", re.DOTALL)


def describe_mistake(error: click.ClickException | SbbfError, context: click.Context | None) -> str:
    """Describe a mistake: its place, what it is, what to do, and the settings that it is about."""
    if isinstance(error, SbbfError):
        message = str(error)
        if isinstance(error, UsageError):
            message += describe_sources(context, message)
        return message
    message = _describe(error)
    message += describe_sources(context, message)
    command = "sbbf"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        command = error.ctx.command_path
    return f"{message} (see {command} --help)"


def _describe(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        return _describe_unknown_option(error)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_name(error.param)} is missing"
    message = " ".join(error.message.split())
    if isinstance(error, click.BadParameter):
        message = _describe_value(error, message)
    # The dots of `PATH...` stay.
    line = message if message.endswith("...") else message.removesuffix(".")
    return re.sub(r"^(Option|Got) (?=['u])", "", line)


def _describe_value(error: click.BadParameter, message: str) -> str:
    """Return the message about a value, with its place; of choices, it names a similar one."""
    place = error.param_hint
    if error.param is not None:
        place = place or _name(error.param)
        match = _NO_CHOICE.match(message)
        if match is not None and isinstance(error.param.type, click.Choice):
            hint = suggest(match[1], map(str, error.param.type.choices))
            message = f"unknown {match[1]!r}; {hint}"
    return f"{place}: {message}" if isinstance(place, str) else message


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return name_of(parameter)
    return parameter.human_readable_name


def _describe_unknown_option(error: click.NoSuchOption) -> str:
    name = error.option_name
    for parameter in error.ctx.command.params if error.ctx is not None else ():
        if name in parameter.opts:
            key = name.lstrip("-")
            return (
                f"{key} is a setting, not an option: set the variable {parameter.envvar}, or "
                f"{key} in sbbf.toml"
            )
    if error.ctx is not None and error.ctx.parent is None and name in _OF_COMMANDS:
        return f"{name} belongs after the command: sbbf COMMAND {name} ..."
    message = f"unknown option {name!r}"
    near = " or ".join(sorted(error.possibilities or ()))
    return f"{message}; did you mean {near}?" if near else message
