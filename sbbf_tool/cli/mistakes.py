"""Mistakes on a command line, each as one line: in click's own words."""

from __future__ import annotations

import re

import click

from sbbf_tool.cli.options import name_of
from sbbf_tool.cli.settings import describe_sources
from sbbf_tool.errors import SbbfError, UsageError
from sbbf_tool.hints import suggest

_NO_CHOICE = re.compile(r"'(.*)' is not one of ", re.DOTALL)


def describe_mistake(error: click.ClickException | SbbfError, context: click.Context | None) -> str:
    """Describe a mistake: where it is, what it is, and what to do, with the settings that it is
    about."""
    message = str(error) if isinstance(error, SbbfError) else _describe(error)
    sources = (
        describe_sources(context, message)
        if isinstance(error, click.ClickException | UsageError)
        else ""
    )
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "sbbf"
    return f"{message}{sources}{'' if isinstance(error, SbbfError) else f' (see {where} --help)'}"


def _describe(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        return _describe_unknown_option(error)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_name(error.param)} is missing"
    message = " ".join(error.message.split())
    if isinstance(error, click.BadParameter):
        place = error.param_hint or (error.param and _name(error.param))
        if (
            error.param is not None
            and isinstance(error.param.type, click.Choice)
            and (match := _NO_CHOICE.match(message))
        ):
            message = (
                f"unknown {match[1]!r}; {suggest(match[1], map(str, error.param.type.choices))}"
            )
        message = f"{place}: {message}" if isinstance(place, str) else message
    # The dots of `PATH...` stay.
    line = message if message.endswith("...") else message.removesuffix(".")
    return re.sub(r"^(Option|Got) (?=['u])", "", line)


def _name(parameter: click.Parameter) -> str:
    return (
        name_of(parameter) if isinstance(parameter, click.Option) else parameter.human_readable_name
    )


def _describe_unknown_option(error: click.NoSuchOption) -> str:
    name = error.option_name
    setting = (
        next((each for each in error.ctx.command.params if name in each.opts), None)
        if error.ctx
        else None
    )
    if setting is not None:
        key = name.lstrip("-")
        return (
            f"{key} is a setting, not an option: set the variable {setting.envvar}, or "
            f"{key} in sbbf.toml"
        )
    near = " or ".join(sorted(error.possibilities or ()))
    return f"unknown option {name!r}{f'; did you mean {near}?' if near else ''}"
