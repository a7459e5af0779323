"""Settings of a command that its command line does not state: click reads a variable, `SBBF_<COMMAND>_<OPTION>`, or its `default_map`.

The map is the table of the command in the configuration file. An option that allows or widens a change has neither.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from sbbf_tool.cli.config import ENGINES, Config, Level, ensure_among, find_config, read_config
from sbbf_tool.cli.options import SIZE, changes_files, name_of, settable_options
from sbbf_tool.errors import UsageError
from sbbf_tool.numbers import parse_ratio

CONFIG_OPTION = "--config"
_META, LEAF = "sbbf.config", "sbbf.command"
_NEAR = 0.9
"""How similar a variable is to a setting if it is one that is misspelt; SBBF_VERSION and SBBF_VERIFY_ON are less similar."""


def read_settings(ctx: click.Context, words: Mapping[str, Any]) -> None:
    """Let click take the settings of a command from the configuration file, unless the words of the command line have them.

    Raises UsageError and click.BadParameter.
    """
    named = next(each for each in ctx.command.params if CONFIG_OPTION in each.opts)
    _ensure_known_variables(ctx, str(named.envvar).removesuffix("CONFIG"))
    path = words.get("config") if isinstance(words.get("config"), str) else named.resolve_envvar_value(ctx)
    config: Config | None = None
    if path not in (None, "none"):
        config = read_config(path, _levels(ctx))
    elif path is None:
        config = find_config(_levels(ctx), changes=changes_files(ctx.command))
    ctx.meta[_META] = config
    ctx.default_map = {} if config is None else _settings_of_file(ctx, config)


def used_config(ctx: click.Context) -> Config | None:
    """Return the settings of the configuration file that the command uses."""
    config: Config | None = ctx.meta.get(_META)
    return config


def spark_settings(ctx: click.Context) -> dict[str, str]:
    """Return the settings of Spark in the configuration file. Raises UsageError if another user could have written them: they run code."""
    config = used_config(ctx)
    if config is None:
        return {}
    is_used = config.spark or ctx.get_parameter_source("runner") is ParameterSource.DEFAULT_MAP
    if is_used and config.exposure is not None:
        hint = f"use them with --config {config.path}"
        raise UsageError(f"settings of Spark can run code, and {config.exposure}", file=config.path, hint=hint)
    return dict(config.spark)


def source_of(ctx: click.Context, option: click.Parameter) -> str | None:
    """Return the name by which the command line states an option, or the variable, or the key; None if nothing does."""
    source = ctx.get_parameter_source(str(option.name))
    if source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
        return name_of(option) if source is ParameterSource.COMMANDLINE else str(option.envvar)
    config = used_config(ctx)
    is_in_file = source is ParameterSource.DEFAULT_MAP and config is not None
    return f"{config.path}: {config.place}: {name_of(option).lstrip('-')}" if is_in_file and config is not None else None


def describe_sources(ctx: click.Context | None, message: str) -> str:
    """Return, as the end of the message of an error, where the settings are from that it is about: it has the option, or the value."""
    leaf: click.Context | None = ctx.meta.get(LEAF) if ctx is not None else None
    options = settable_options(leaf.command) if leaf is not None else ()
    sources = [source_of(leaf, option) for option in options if leaf is not None and _is_about(message, option, leaf.params)]
    ranges = message.replace(" ", "-")  # of an option of the command line, only errors of its range name it
    known = ", ".join(name for name in sources if name and (name[:2] != "--" or ranges.startswith(f"{name[2:]}-must-be-")))
    return f" (set: {known})" if known else ""


def _is_about(message: str, option: click.Option, values: Mapping[str, Any]) -> bool:
    name, value = name_of(option), values.get(str(option.name))
    words = name.lstrip("-").replace("-", " ")
    texts = [str(each) for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, str) or words in message]
    return name in message or any(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", message) for text in texts)


def _ensure_known_variables(ctx: click.Context, start: str) -> None:
    """Raise UsageError for a variable that begins with `start`, as those of this command do, or nearly, and is not one of them.

    SBBF_MAX_FPP, without the command, is nearly one. Others stay: of other commands, of this package, such as SBBF_KERNEL, or of users.
    """
    variables = [str(option.envvar) for option in settable_options(ctx.command)]
    endings = tuple(variable.removeprefix(start[:-1]) for variable in variables)
    for name in {name for name in os.environ if name.startswith("SBBF_")} - {*variables, "SBBF_KEYS", "SBBF_VERSION"}:
        key = name.removeprefix(start).removeprefix("SBBF_").replace("_", "-").lower()
        is_fixed = key in _fixed_options(ctx.command)
        if is_fixed or name.startswith(start) or name.endswith(endings):
            from difflib import get_close_matches

            full = name.replace("SBBF_", start, 1)
            near = [full] if full in variables else get_close_matches(name, variables, 1, _NEAR)
            commands = tuple(f"SBBF_{command}_".replace("-", "_").upper() for command in _levels(ctx)[0].names())
            if is_fixed or name.startswith(start) or (near and not name.startswith(commands)):
                hint = f"give --{key} on the command line" if is_fixed else "see sbbf help settings"
                raise UsageError(f"unknown variable {name!r}", hint=f"did you mean {near[0]}?" if near else hint)


def _fixed_options(command: click.Command) -> set[str]:
    """Return the options that only the command line states, without their dashes."""
    options = {option for option in command.params if isinstance(option, click.Option)} - set(settable_options(command))
    return {name_of(option).lstrip("-") for option in options}


def ensure_kind(option: click.Option, key: str, value: object, config: Config) -> None:
    """Raise UsageError if a value of a configuration file has another type than the option takes."""
    description, types = _kind_of(option)
    description += " with at least one name, such as all" if key == ENGINES else ""
    fits = isinstance(value, types) and isinstance(value, bool) == (bool in types)
    if isinstance(value, list):
        fits = fits and all(isinstance(item, str) for item in value)
    elif isinstance(value, str) and float in types:
        fits = parse_ratio(value) is not None
    fits = fits and (key, value) != (ENGINES, [])
    if not fits:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
        raise UsageError(f"{key} must be {description}, not {text}", file=config.path, place=config.place)


def _settings_of_file(ctx: click.Context, config: Config) -> dict[str, Any]:
    options = {name_of(option).lstrip("-"): option for option in settable_options(ctx.command) if name_of(option) != CONFIG_OPTION}
    lists_paths = {"paths"} if "--fail-on" in map(name_of, ctx.command.params) else set()
    for key in config.table.keys() & {"config", *_fixed_options(ctx.command)}:
        raise UsageError(f"--{key} has no key", file=config.path, place=config.place, hint="give it on the command line")
    ensure_among(config.table, [*options, *lists_paths], config.path, config.place)
    settings = {}
    for key, value in config.table.items():
        if key in options:
            ensure_kind(options[key], key, value, config)
            settings[str(options[key].name)] = tuple(value) if isinstance(value, list) else value
    return settings


def _kind_of(option: click.Option) -> tuple[str, tuple[type, ...]]:
    """Return the values that an option takes in a configuration file, and their types."""
    if option.multiple:
        return "a list of strings", (list,)
    if option.is_flag:
        return "true or false", (bool,)
    if option.type is SIZE:
        return "an integer or a string", (int, str)
    if isinstance(option.type, click.types.FloatParamType):
        return "a number", (int, float, str)
    return ("an integer", (int,)) if isinstance(option.type, click.types.IntParamType) else ("a string", (str,))


def _levels(ctx: click.Context) -> list[Level]:
    """Return the names of a command from the root, each with the names of the commands beside it."""
    levels: list[Level] = []
    while ctx.parent is not None:
        group = ctx.parent.command
        assert isinstance(group, click.Group)
        levels.insert(0, Level(ctx.info_name or "", partial(group.list_commands, ctx.parent)))
        ctx = ctx.parent
    return levels
