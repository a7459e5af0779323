"""Settings of a command that its command line does not state: environment variables, then the configuration file.

Each option that does not allow or widen a change has a variable, `SBBF_<COMMAND>_<OPTION>`, and a key in the table of its command. A
variable with several values is split as a shell splits words.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click

from sbbf_tool.cli.config import LIKENESS, Config, Level, ensure_among, find_config, read_config
from sbbf_tool.cli.options import changes_files, name_of, settable_options
from sbbf_tool.cli.sizes import SIZE
from sbbf_tool.errors import UsageError

CONFIG_OPTIONS = ("--config", "--no-config")
_META = "sbbf.settings"


class Setting(NamedTuple):
    value: Any
    source: str
    """The variable, or the file with table and key."""
    is_in_file: bool


class Settings(NamedTuple):
    values: Mapping[str, Setting]
    """Settings by name of the parameter."""
    config: Config | None = None


class _Kind(NamedTuple):
    description: str
    fits: Callable[[object], bool]


_NAMES = _Kind("a list of strings", lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value))
_RATIO = _Kind("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))
_COUNT = _Kind("an integer", lambda value: isinstance(value, int) and not isinstance(value, bool))
_FLAG = _Kind("true or false", lambda value: isinstance(value, bool))
_SIZE = _Kind("an integer or a string", lambda value: isinstance(value, str) or _COUNT.fits(value))
_TEXT = _Kind("a string", lambda value: isinstance(value, str))


def variable_of(command_path: str, option: click.Parameter) -> str:
    """Return the variable of an option, such as `SBBF_ADD_FILTER_FPP` for `--fpp` of `sbbf add-filter`."""
    return f"{command_path} {name_of(option).lstrip('-')}".replace(" ", "_").replace("-", "_").upper()


def settings_of(ctx: click.Context, config_path: str | None, *, ignores_config: bool) -> Settings:
    """Return the settings of a command. Raises UsageError and click.BadParameter, which name the variable or file."""
    variables = _settings_of_environment(ctx)
    for name, setting in variables.items():
        if name == "config" and config_path is None:
            config_path = setting.value
        ignores_config |= name == "no_config" and click.BOOL.convert(setting.value, None, ctx)
    config: Config | None = None
    if config_path is not None:
        config = read_config(config_path, _levels(ctx))
    elif not ignores_config:
        config = find_config(_levels(ctx), changes=changes_files(ctx.command))
    return Settings({**(_settings_of_file(ctx, config) if config is not None else {}), **variables}, config)


def expected_of(option: click.Parameter) -> str | None:
    """Return what a variable of this option must be; None if the error of click says so."""
    assert isinstance(option, click.Option)
    kind = _kind_of(option)
    return kind.description if kind in (_FLAG, _RATIO, _COUNT) else None


def warn_of_variables(ctx: click.Context) -> None:
    """Warn of variables that begin as those of a command do and set none of its options."""
    prefix = f"{ctx.command_path} ".replace(" ", "_").replace("-", "_").upper()
    names = [name for name in os.environ if name.startswith(prefix)]
    if not names:
        return
    from difflib import get_close_matches

    from sbbf_tool.cli.render import warn

    options = {variable_of(ctx.command_path, option): name_of(option) for option in ctx.command.params if isinstance(option, click.Option)}
    settable = {variable_of(ctx.command_path, option) for option in settable_options(ctx.command)}
    for name in names:
        if name in settable:
            continue
        if name in options:
            reason = f"{options[name]} can be given on the command line only"
        else:
            suffixes = [variable.removeprefix(prefix) for variable in settable]
            near = get_close_matches(name.removeprefix(prefix), suffixes, n=1, cutoff=LIKENESS)
            reason = f"{ctx.command_path} has no such option" + (f"; did you mean {prefix}{near[0]}?" if near else "")
        warn(f"the variable {name} is ignored: {reason}")


def remember(ctx: click.Context, settings: Settings) -> None:
    ctx.meta[_META] = settings


def remembered(ctx: click.Context) -> Settings:
    """Return the settings of the command that runs."""
    settings: Settings = ctx.meta.get(_META) or Settings({})
    return settings


def ensure_kind(option: click.Option, key: str, value: object, config: Config) -> None:
    """Raise UsageError if a value of a configuration file has another type than the option takes."""
    kind = _kind_of(option)
    if not kind.fits(value):
        text = str(value).lower() if isinstance(value, bool) else repr(value)
        raise UsageError(f"{key} must be {kind.description}, not {text}", file=config.path, place=config.place)


def _settings_of_environment(ctx: click.Context) -> dict[str, Setting]:
    settings = {}
    for option in settable_options(ctx.command):
        variable = variable_of(ctx.command_path, option)
        if (text := os.environ.get(variable)) and option.name is not None:
            try:
                settings[option.name] = Setting(tuple(shlex.split(text)) if option.multiple else text, variable, False)
            except ValueError as error:
                message = f"{variable} is split into words as a shell splits them: {str(error).lower()}, in {text!r}"
                raise click.UsageError(message, ctx) from None
    return settings


def _settings_of_file(ctx: click.Context, config: Config) -> dict[str, Setting]:
    options = {name_of(option).lstrip("-"): option for option in settable_options(ctx.command) if name_of(option) not in CONFIG_OPTIONS}
    lists_paths = {"paths"} if "--fail-on" in map(name_of, ctx.command.params) else set()
    fixed = {name_of(option).lstrip("-") for option in ctx.command.params if isinstance(option, click.Option)} - options.keys()
    for key in config.table:
        if key in fixed:
            raise UsageError(f"--{key} has no key", file=config.path, place=config.place, hint="give it on the command line")
    ensure_among(config.table, [*options, *lists_paths], config.path, config.place)
    settings = {}
    for key, value in config.table.items():
        if key in options and (name := options[key].name) is not None:
            ensure_kind(options[key], key, value, config)
            settings[name] = Setting(tuple(value) if isinstance(value, list) else value, f"{config.path}: {config.place}: {key}", True)
    return settings


def _kind_of(option: click.Option) -> _Kind:
    if option.multiple:
        return _NAMES
    if option.is_flag:
        return _FLAG
    if option.type is SIZE:
        return _SIZE
    if isinstance(option.type, click.types.FloatParamType):
        return _RATIO
    return _COUNT if isinstance(option.type, click.types.IntParamType) else _TEXT


def _levels(ctx: click.Context) -> list[Level]:
    """Return the names of a command from the root, each with the names of the commands beside it."""
    levels: list[Level] = []
    while ctx.parent is not None:
        group = ctx.parent.command
        assert isinstance(group, click.Group)
        levels.insert(0, Level(ctx.info_name or "", group.list_commands(ctx.parent)))
        ctx = ctx.parent
    return levels
