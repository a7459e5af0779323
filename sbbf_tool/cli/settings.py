"""Settings of a command that its command line does not state: click reads a variable,
`SBBF_<COMMAND>_<OPTION>`, or its `default_map`.

The map is the table of the command in the configuration file. An option that allows or widens a
change has neither a variable nor a key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from sbbf_tool.cli.config_file import (
    ENGINES,
    Config,
    ensure_among,
    find_config,
    full_name,
    read_config,
)
from sbbf_tool.cli.options import RATIO, SIZE, Option, name_of, settable_options
from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.extension import is_index
from sbbf_tool.numbers import parse_ratio

CONFIG_OPTION = "--config"
LEAF = "sbbf.command"
_META = "sbbf.config"
_KEYS = ("SBBF_KEYS", "SBBF_KEYS_FILE", "SBBF_KERNEL")
"""Variables of all commands."""
_OTHER_VARIABLES = {
    *_KEYS,
    # Of installers, of the build, and of the tests.
    "SBBF_VERSION",
    "SBBF_WITHOUT_EXTENSIONS",
    "SBBF_COMPARE_SCANS",
    "SBBF_CONFORMANCE",
    "SBBF_LISTED_FILES",
    "SBBF_MANY_FILES",
    "SBBF_PAIMON_JAR",
    "SBBF_STAGES",
    "SBBF_TEST_ENVIRONMENTS",
}
"""Variables that are no settings of a command."""
_NEAR = 0.9
"""How similar a variable is to another one if it is a misspelt one."""
_NEAR_KEY = 0.85
"""The same of the names of options."""


def read_settings(ctx: click.Context, words: Mapping[str, Any]) -> None:
    """Let click take the settings of a command from the configuration file, unless the words of the
    command line have them.

    Raises UsageError and click.BadParameter.
    """
    named = next(each for each in ctx.command.params if CONFIG_OPTION in each.opts)
    _ensure_known_variables(ctx, str(named.envvar).removesuffix("CONFIG"))
    path = words.get("config")
    if not isinstance(path, str):
        path = named.resolve_envvar_value(ctx)
    config: Config | None = None
    if path not in (None, "none"):
        config = read_config(path, ctx)
    elif path is None:
        config = find_config(ctx)
    ctx.meta[_META] = config
    ctx.default_map = {}
    if config is not None:
        with ErrorPlace(config.path, config.place):
            ctx.default_map = _settings_of_file(ctx, config)


def used_config(ctx: click.Context) -> Config | None:
    """Return the settings of the configuration file that the command uses."""
    config: Config | None = ctx.meta.get(_META)
    return config


def spark_settings(ctx: click.Context) -> dict[str, str]:
    """Return the settings of Spark in the configuration file. Raises UsageError if another user
    could have written them: they run code."""
    config = used_config(ctx)
    if config is None:
        return {}
    is_used = config.spark or ctx.get_parameter_source("runner") is ParameterSource.DEFAULT_MAP
    if is_used and config.exposure is not None:
        hint = f"use them with --config {config.path}"
        raise UsageError(
            f"settings of Spark can run code, and {config.exposure}", file=config.path, hint=hint
        )
    return dict(config.spark)


def index_of(ctx: click.Context, path: str) -> str | None:
    """Return the index of a lake that the configuration file names; None if it names none. Raises
    UsageError if another user could have named it: an index decides which files are opened."""
    config = used_config(ctx)
    if config is None:
        return None
    index = config.indexes.get(full_name(path))
    if index is not None and not is_index(index):
        raise UsageError(
            f"the index of {path} must be the name of an index, not {index}",
            file=config.path,
            hint="its name ends with .sbbfx",
        )
    if index is not None and config.exposure is not None:
        raise UsageError(
            f"an index decides which files are opened, and {config.exposure}",
            file=config.path,
            hint=f"use it with --config {config.path}, or ignore it with --config none",
        )
    return index


def source_of(ctx: click.Context, option: click.Parameter) -> str | None:
    """Return the name by which the command line states an option, or the variable, or the key; None
    if nothing does."""
    source = ctx.get_parameter_source(str(option.name))
    if source is ParameterSource.COMMANDLINE:
        return name_of(option)
    if source is ParameterSource.ENVIRONMENT:
        return str(option.envvar)
    config = used_config(ctx)
    if source is ParameterSource.DEFAULT_MAP and config is not None:
        return f"{config.path}: {config.place}: {name_of(option).lstrip('-')}"
    return None


def describe_sources(ctx: click.Context | None, message: str) -> str:
    """Return, as the end of the message of an error, where the settings are from that it is about:
    it has the option, or the value."""
    leaf: click.Context | None = ctx.meta.get(LEAF) if ctx is not None else None
    if leaf is None:
        return ""
    sources = []
    for option in settable_options(leaf.command):
        if not _is_about(message, option, leaf.params):
            continue
        source = source_of(leaf, option)
        if source and not (source.startswith("--") and not _is_of_range(message, source)):
            sources.append(source)
    return f" (set: {', '.join(sources)})" if sources else ""


def _is_about(message: str, option: Option, values: Mapping[str, Any]) -> bool:
    """Return whether a message has the name of the option, or its value."""
    name = name_of(option)
    if name in message:
        return True
    value = values.get(str(option.name))
    has_words = option.key.replace("-", " ") in message
    for part in value if isinstance(value, tuple) else (value,):
        if not isinstance(part, str) and not has_words:
            continue
        if re.search(rf"(?<!\w){re.escape(str(part))}(?!\w)", message):
            return True
    return False


def _is_of_range(message: str, name: str) -> bool:
    """Return whether a message states the range of an option. Of the options of the command line,
    only these are named."""
    return message.replace(" ", "-").startswith(f"{name[2:]}-must-be-")


def _ensure_known_variables(ctx: click.Context, start: str) -> None:
    """Raise UsageError for a variable of this program that nothing reads: neither this command,
    whose variables begin with `start`, nor another one."""
    own = [str(option.envvar) for option in settable_options(ctx.command)]
    unknown = {name for name in os.environ if name.startswith("SBBF_")}
    for name in sorted(unknown - _OTHER_VARIABLES - set(own)):
        # Only the commands are imported with whose name the variable begins.
        if name in _variables_below(ctx.find_root(), name):
            continue
        key = name.removeprefix(start).removeprefix("SBBF_").replace("_", "-").lower()
        near = _find_variable(name, start, own)
        hint = "see sbbf help settings"
        if near is None and key in _fixed_options(ctx.command):
            hint = f"give --{key} on the command line"
        elif near is None:
            near = _find_variable(name, start, [*_variables_below(ctx.find_root())])
        if near is not None:
            hint = f"did you mean {near}?"
        raise UsageError(f"unknown variable {name!r}", hint=hint)


def _find_variable(name: str, start: str, variables: Sequence[str]) -> str | None:
    """Return the variable that is probably meant: `name` with the command, or a similar one; None
    if there is none."""
    from difflib import get_close_matches

    full = name.replace("SBBF_", start, 1)
    if full in variables:
        return full
    similar = get_close_matches(name, [*variables, *_KEYS], 1, _NEAR)
    if similar:
        return similar[0]
    key = name.removeprefix(start).removeprefix("SBBF_")
    by_key: dict[str, str] = {}
    for variable in variables:
        # Without the command, the words of which no key repeats.
        words = variable.split("_")[1:]
        for at in range(1, len(words)):
            by_key.setdefault("_".join(words[at:]), variable)
    near = get_close_matches(key, by_key, 1, _NEAR_KEY)
    return by_key[near[0]] if near else None


def _variables_below(
    ctx: click.Context, name: str = "", group: click.Group | None = None, start: str = "SBBF_"
) -> Iterator[str]:
    """Yield the variables of all commands, or of those with whose name a variable begins."""
    if group is None:
        root = ctx.command
        assert isinstance(root, click.Group)
        group = root
    for word in group.list_commands(ctx):
        own_start = f"{start}{word}_".replace("-", "_").upper()
        if name and not name.startswith(own_start):
            continue
        command = group.get_command(ctx, word)
        if isinstance(command, click.Group):
            yield from _variables_below(ctx, name, command, own_start)
        elif command is not None:
            for option in settable_options(command):
                yield str(option.envvar)


def _fixed_options(command: click.Command) -> set[str]:
    """Return the options that only the command line states, without their dashes."""
    options = {option for option in command.params if isinstance(option, Option)}
    return {option.key for option in options - set(settable_options(command))}


def ensure_kind(option: click.Option, key: str, value: object) -> None:
    """Raise UsageError if a value of a configuration file has another type than the option
    takes."""
    kind = _kind_of(option)
    if kind.has(value) and (key, value) != (ENGINES, []):
        return
    description = kind.description
    if key == ENGINES:
        description += " with at least one name, such as all"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    raise UsageError(f"{key} must be {description}, not {text}")


def _settings_of_file(ctx: click.Context, config: Config) -> dict[str, Any]:
    options = {option.key: option for option in settable_options(ctx.command)}
    options.pop("config", None)
    for key in config.table.keys() & {"config", *_fixed_options(ctx.command)}:
        raise UsageError(f"--{key} has no key", hint="give it on the command line")
    keys = [*options]
    if "--fail-on" in map(name_of, ctx.command.params):
        keys.append("paths")
    ensure_among(config.table, keys, config.place)
    settings = {}
    for key, value in config.table.items():
        if key in options:
            ensure_kind(options[key], key, value)
            settings[str(options[key].name)] = tuple(value) if isinstance(value, list) else value
    return settings


class _ValueKind(NamedTuple):
    """The values that an option takes in a configuration file."""

    description: str
    types: tuple[type, ...]

    def has(self, value: object) -> bool:
        if isinstance(value, str) and float in self.types:
            return parse_ratio(value) is not None
        # A bool is an int to Python.
        if not isinstance(value, self.types) or isinstance(value, bool) != (bool in self.types):
            return False
        return not isinstance(value, list) or all(isinstance(item, str) for item in value)


def _kind_of(option: click.Option) -> _ValueKind:
    if option.multiple:
        return _ValueKind("a list of strings", (list,))
    if option.is_flag:
        return _ValueKind("true or false", (bool,))
    if option.type is SIZE:
        return _ValueKind("an integer or a string", (int, str))
    if option.type is RATIO or option.type is click.FLOAT:
        return _ValueKind("a number", (int, float, str))
    if isinstance(option.type, click.types.IntParamType):
        return _ValueKind("an integer", (int,))
    return _ValueKind("a string", (str,))
