"""Settings of a command that its command line does not state: click reads a variable,
`SBBF_<COMMAND>_<OPTION>`, or its `default_map`.

The map is the table of the command in the configuration file: `check` has the settings of `sbbf
check`, in `[tool.sbbf.check]` of a pyproject.toml, or in `[check]` of any other TOML file. An
option that allows or widens a change has neither. The tables `[[filters]]` declare filters, which
`apply` and `check` take. The key `engines`, before all tables, names the engines that read the
files, for the commands with this option. The table `spark` has settings of Spark without the
beginning of their names: `executor.instances = 100`.

A file that --config does not name is searched for: `sbbf.toml`, or a `pyproject.toml` with
`[tool.sbbf]`, in the working folder and the folders above it, as far as the first one with `.git`,
or the home folder. Another user may have put that file there. A command that changes files
therefore refuses a file that another user could have written; a command that only reads uses it,
with a warning.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from sbbf_tool.cli.options import SIZE, changes_files, name_of, settable_options
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen, field, replace
from sbbf_tool.hints import suggest
from sbbf_tool.numbers import parse_ratio
from sbbf_tool.storage.system_calls import READ

CONFIG_OPTION = "--config"
FILTERS, ENGINES, SPARK = "filters", "engines", "spark"
_MOST_BYTES = 16 << 20
_OWN_NAME, _PROJECT = "sbbf.toml", "pyproject.toml"
_IGNORE = "--config none ignores it"
_TAKE_FILTERS = ("apply", "check")
_META, LEAF = "sbbf.config", "sbbf.command"
_NEAR = 0.9
"""How similar a variable is to a setting if it is one that is misspelt; SBBF_VERSION and
SBBF_VERIFY_ON are less similar."""


class Config(Frozen):
    """The settings of one command in a configuration file."""

    path: str
    place: str
    """Name of the table in the file, such as `[tool.sbbf.check]`."""
    table: dict[str, Any]
    is_named: bool = True
    """Whether --config names the file; otherwise it was searched for."""
    exposure: str | None = None
    """Which other user may have written a file that was searched for."""
    filters: object = None
    """The tables that declare filters, if the command takes them and there are any."""
    spark: Mapping[str, str] = field(factory=dict)
    """The settings of Spark, by their full names."""


def read_settings(ctx: click.Context, words: Mapping[str, Any]) -> None:
    """Let click take the settings of a command from the configuration file, unless the words of the
    command line have them.

    Raises UsageError and click.BadParameter.
    """
    named = next(each for each in ctx.command.params if CONFIG_OPTION in each.opts)
    _ensure_known_variables(ctx, str(named.envvar).removesuffix("CONFIG"))
    path = (
        words.get("config")
        if isinstance(words.get("config"), str)
        else named.resolve_envvar_value(ctx)
    )
    config: Config | None = None
    if path not in (None, "none"):
        config = _read_config(path, ctx)
    elif path is None:
        config = _find_config(ctx)
    ctx.meta[_META] = config
    ctx.default_map = {} if config is None else _settings_of_file(ctx, config)


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


def source_of(ctx: click.Context, option: click.Parameter) -> str | None:
    """Return the name by which the command line states an option, or the variable, or the key; None
    if nothing does."""
    source = ctx.get_parameter_source(str(option.name))
    if source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
        return name_of(option) if source is ParameterSource.COMMANDLINE else str(option.envvar)
    config = used_config(ctx)
    is_in_file = source is ParameterSource.DEFAULT_MAP and config is not None
    return (
        f"{config.path}: {config.place}: {name_of(option).lstrip('-')}"
        if is_in_file and config is not None
        else None
    )


def describe_sources(ctx: click.Context | None, message: str) -> str:
    """Return, as the end of the message of an error, where the settings are from that it is about:
    it has the option, or the value."""
    leaf: click.Context | None = ctx.meta.get(LEAF) if ctx is not None else None
    options = settable_options(leaf.command) if leaf is not None else ()
    sources = [
        source_of(leaf, option)
        for option in options
        if leaf is not None and _is_about(message, option, leaf.params)
    ]
    ranges = message.replace(
        " ", "-"
    )  # of an option of the command line, only errors of its range name it
    known = ", ".join(
        name
        for name in sources
        if name and (name[:2] != "--" or ranges.startswith(f"{name[2:]}-must-be-"))
    )
    return f" (set: {known})" if known else ""


def _is_about(message: str, option: click.Option, values: Mapping[str, Any]) -> bool:
    name, value = name_of(option), values.get(str(option.name))
    words = name.lstrip("-").replace("-", " ")
    texts = [
        str(each)
        for each in (value if isinstance(value, tuple) else (value,))
        if isinstance(each, str) or words in message
    ]
    return name in message or any(
        re.search(rf"(?<!\w){re.escape(text)}(?!\w)", message) for text in texts
    )


def _ensure_known_variables(ctx: click.Context, start: str) -> None:
    """Raise UsageError for a variable that begins with `start`, as those of this command do, or
    nearly, and is not one of them.

    SBBF_MAX_FPP, without the command, is nearly one. Others stay: of other commands, of this
    package, such as SBBF_KERNEL, or of users.
    """
    variables = [str(option.envvar) for option in settable_options(ctx.command)]
    endings = tuple(variable.removeprefix(start[:-1]) for variable in variables)
    for name in {name for name in os.environ if name.startswith("SBBF_")} - {
        *variables,
        "SBBF_KEYS",
        "SBBF_VERSION",
    }:
        key = name.removeprefix(start).removeprefix("SBBF_").replace("_", "-").lower()
        is_fixed = key in _fixed_options(ctx.command)
        if is_fixed or name.startswith(start) or name.endswith(endings):
            from difflib import get_close_matches

            full = name.replace("SBBF_", start, 1)
            near = [full] if full in variables else get_close_matches(name, variables, 1, _NEAR)
            commands = tuple(
                f"SBBF_{command}_".replace("-", "_").upper()
                for command in _names_beside(_levels(ctx)[0])
            )
            if is_fixed or name.startswith(start) or (near and not name.startswith(commands)):
                hint = f"give --{key} on the command line" if is_fixed else "see sbbf help settings"
                raise UsageError(
                    f"unknown variable {name!r}", hint=f"did you mean {near[0]}?" if near else hint
                )


def _fixed_options(command: click.Command) -> set[str]:
    """Return the options that only the command line states, without their dashes."""
    options = {option for option in command.params if isinstance(option, click.Option)} - set(
        settable_options(command)
    )
    return {name_of(option).lstrip("-") for option in options}


def ensure_kind(option: click.Option, key: str, value: object, config: Config) -> None:
    """Raise UsageError if a value of a configuration file has another type than the option
    takes."""
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
        raise UsageError(
            f"{key} must be {description}, not {text}", file=config.path, place=config.place
        )


def _settings_of_file(ctx: click.Context, config: Config) -> dict[str, Any]:
    options = {
        name_of(option).lstrip("-"): option
        for option in settable_options(ctx.command)
        if name_of(option) != CONFIG_OPTION
    }
    lists_paths = {"paths"} if "--fail-on" in map(name_of, ctx.command.params) else set()
    for key in config.table.keys() & {"config", *_fixed_options(ctx.command)}:
        raise UsageError(
            f"--{key} has no key",
            file=config.path,
            place=config.place,
            hint="give it on the command line",
        )
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
    return (
        ("an integer", (int,))
        if isinstance(option.type, click.types.IntParamType)
        else ("a string", (str,))
    )


def _read_config(path: str, ctx: click.Context) -> Config:
    """Read the settings of a command from the file that --config names. Raises UsageError, also if
    it has none for any command."""
    config = _parse_config(path, _read(path, is_named=True), ctx, is_named=True)
    if config is None:
        raise UsageError(
            f"the file has no table {_place(path, _names_of(ctx))}, nor one of another command",
            file=path,
        )
    return config


def _find_config(ctx: click.Context) -> Config | None:
    """Return the settings of a command in the configuration file of the working folder; None if
    there is no file, or no such table.

    Raises UsageError if the file cannot be read, or if the command changes files and another user
    could have written the settings.
    """
    for path in _places():
        if not os.path.lexists(path):
            continue
        try:
            text = _read(path, is_named=False)
            if os.path.basename(path) == _PROJECT and not _has_own_part(path, text):
                continue
            config = _parse_config(path, text, ctx, is_named=False)
        except UsageError as error:
            hint = f"{error.hint}; {_IGNORE}" if error.hint else _IGNORE
            raise UsageError(error.message, file=path, place=error.place, hint=hint) from None
        if config is None:
            return None
        exposure = _exposure_of(path)
        if exposure is not None and changes_files(ctx.command):
            hint = f"use it with --config {path}, or ignore it with --config none"
            raise UsageError(
                f"the configuration file was not named, and {exposure}", file=path, hint=hint
            )
        return replace(config, is_named=False, exposure=exposure)
    return None


def _has_own_part(path: str, text: bytes) -> bool:
    """Return whether a pyproject.toml has a table of sbbf; one that does not name it, in UTF-8 or
    UTF-16, is not even parsed."""
    return b"sbbf" in text.replace(b"\0", b"") and "sbbf" in (
        _table_in(_parse(path, text), "tool", path) or {}
    )


def ensure_among(keys: Iterable[str], choices: Iterable[str], path: str, place: str) -> None:
    """Raise UsageError if a key is not one of the choices."""
    for key in keys:
        if key not in choices:
            raise UsageError(
                f"unknown setting {key!r}", file=path, place=place, hint=suggest(key, choices)
            )


def _places() -> Iterator[str]:
    """Yield the paths at which a configuration file may be, the first one first."""
    try:
        folder = os.getcwd()
    except OSError:
        return
    home = os.path.realpath(os.path.expanduser("~"))
    while True:
        yield os.path.join(folder, _OWN_NAME)
        yield os.path.join(folder, _PROJECT)
        parent = os.path.dirname(folder)
        if parent == folder or folder == home or os.path.lexists(os.path.join(folder, ".git")):
            return
        folder = parent


def _read(path: str, *, is_named: bool) -> bytes:
    """Read a file. Without `is_named`, a FIFO or device is an error, and opening it does not wait
    for a writer."""
    try:
        descriptor = os.open(path, os.O_RDONLY if is_named else READ)
        with open(descriptor, "rb") as stream:
            if not is_named and not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError("not a regular file", file=path)
            text = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError((error.strerror or "unreadable").lower(), file=path) from None
    except ValueError:
        raise UsageError("not a valid file name", file=path) from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"a configuration file must have at most {_MOST_BYTES:,} bytes", file=path)
    return text


def _parse(path: str, text: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"not TOML: {error}", file=path) from None


def _parse_config(path: str, text: bytes, ctx: click.Context, *, is_named: bool) -> Config | None:
    """Return the settings of a command; None if the file has none for it or, if --config names the
    file, for any command."""
    table: dict[str, Any] | None = _parse(path, text)
    whole = not is_named or os.path.basename(path) in (
        _OWN_NAME,
        _PROJECT,
    )  # the file, or this part of it, is for sbbf alone
    filters: object = None
    own: dict[str, Any] = {}
    spark: dict[str, str] = {}
    for name in _prefix(path):
        table = _table_in(table or {}, name, path)
    is_known = False
    names = _names_of(ctx)
    for at, level in enumerate(_levels(ctx)):
        if table is None:
            break
        choices = _names_beside(level) if at else [*_names_beside(level), FILTERS, ENGINES, SPARK]
        is_known |= at == 0 and not table.keys().isdisjoint(choices)
        if whole or at or not is_known:
            ensure_among(table, choices, path, _place(path, names[:at]))
        if at == 0:
            spark = _flatten(_table_in(table, SPARK, path) or {}, SPARK, path)
            filters = table.get(FILTERS) if names[0] in _TAKE_FILTERS else None
            takes_engines = any(
                f"--{ENGINES}" in parameter.opts for parameter in ctx.command.params
            )
            own = {ENGINES: table[ENGINES]} if takes_engines and ENGINES in table else {}
        table = _table_in(table, names[at], path)
    if table is None and (own or spark or filters is not None or (is_named and is_known)):
        table = {}
    return (
        None
        if table is None
        else Config(path, _place(path, names), own | table, filters=filters, spark=spark)
    )


def _table_in(table: Mapping[str, Any], name: str, path: str) -> dict[str, Any] | None:
    """Return the table of this name in another one; None if there is none. Raises UsageError if it
    is something else."""
    inner = table.get(name)
    if inner is None or isinstance(inner, dict):
        return inner
    raise UsageError(f"{name} must be a table, not {inner!r}", file=path)


def _flatten(value: object, name: str, path: str) -> dict[str, str]:
    """Return the settings in a table by their full names, as text. Raises UsageError."""
    if isinstance(value, dict):
        return {
            key: text
            for each, inner in value.items()
            for key, text in _flatten(inner, f"{name}.{each}", path).items()
        }
    if not isinstance(value, str | int | float):
        raise UsageError(f"{name} must be text, a number, true or false", file=path)
    return {name: str(value).lower() if isinstance(value, bool) else str(value)}


def place_of_filters(path: str) -> str:
    """Return the name of the tables that declare filters in a configuration file."""
    return f"[{_place(path, [FILTERS])}]"


def _place(path: str, names: Sequence[str]) -> str:
    names = (*_prefix(path), *names)
    return f"[{'.'.join(names)}]" if names else ""


def _prefix(path: str) -> tuple[str, ...]:
    """Return the names of the tables of a file inside which those of sbbf are."""
    return ("tool", "sbbf") if os.path.basename(path) == _PROJECT else ()


def _exposure_of(path: str) -> str | None:
    """Return who besides this user and root may write to a file or its folder; None if no other
    user may."""
    from sbbf_tool.storage.whole import find_writer

    folders = dict.fromkeys(
        os.path.dirname(name) for name in (os.path.abspath(path), os.path.realpath(path))
    )
    for name, place in (("it", path), *((f"its folder {folder}", folder) for folder in folders)):
        if (writer := find_writer(place)) is not None:
            return f"{writer} can write to {name}"
    return None


def _levels(ctx: click.Context) -> list[click.Context]:
    """Return the contexts of a command and of its groups, without the root."""
    return [] if ctx.parent is None else [*_levels(ctx.parent), ctx]


def _names_of(ctx: click.Context) -> list[str]:
    """Return the names of a command from the root."""
    return [level.info_name or "" for level in _levels(ctx)]


def _names_beside(ctx: click.Context) -> list[str]:
    """Return the names of the commands in the group of a command."""
    assert ctx.parent is not None
    group = ctx.parent.command
    assert isinstance(group, click.Group)
    return group.list_commands(ctx.parent)
