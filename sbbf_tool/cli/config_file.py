"""Configuration files: where they are searched for, what they may contain, and the table that has
the settings of a command.

The table of `sbbf check` is `[tool.sbbf.check]` in a pyproject.toml, or `[check]` in any other TOML
file. The tables `[[filters]]` declare filters, which `apply` and `check` take. The key `engines`,
before all tables, names the engines that read the files, for the commands with this option. The
table `spark` has settings of Spark without the beginning of their names: `executor.instances =
100`.

A file that --config does not name is searched for: `sbbf.toml`, or a `pyproject.toml` with
`[tool.sbbf]`, in the working folder and the folders above it, as far as the first one with `.git`,
or the home folder. Another user may have put that file there. A command that changes files
therefore refuses a file that another user could have written; a command that only reads uses it,
with a warning.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from sbbf_tool.cli.options import changes_files
from sbbf_tool.errors import ErrorPlace, UsageError
from sbbf_tool.extension import is_table_name
from sbbf_tool.frozen import Frozen, field, replace
from sbbf_tool.hints import suggest
from sbbf_tool.storage.names import is_url, local_path
from sbbf_tool.storage.system_calls import READ

FILTERS = "filters"
ENGINES = "engines"
SPARK = "spark"
INDEXES = "indexes"
_MOST_BYTES = 16 << 20
_OWN_NAME = "sbbf.toml"
_PROJECT = "pyproject.toml"
_IGNORE = "--config none ignores it"
_TAKE_FILTERS = ("apply", "check")


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
    indexes: Mapping[str, str] = field(factory=dict)
    """The indexes by the lakes that they are of; names mean the same in every working folder."""


def read_config(path: str, ctx: click.Context) -> Config:
    """Read the settings of a command from the file that --config names. Raises UsageError, also if
    it has none for any command."""
    with ErrorPlace(path):
        config = _parse_config(path, _read(path, is_named=True), ctx, is_named=True)
        if config is None:
            raise UsageError(
                f"the file has no table {_place(path, _names_of(ctx))}, nor one of another command"
            )
        return config


def find_config(ctx: click.Context) -> Config | None:
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
            if os.path.basename(path) == _PROJECT and not _has_own_part(text):
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


def _has_own_part(text: bytes) -> bool:
    """Return whether a pyproject.toml has a table of sbbf; one that does not name it, in UTF-8 or
    UTF-16, is not even parsed."""
    if b"sbbf" not in text.replace(b"\0", b""):
        return False
    tools = _table_in(_parse(text), "tool")
    return tools is not None and "sbbf" in tools


def ensure_among(keys: Iterable[str], choices: Iterable[str], place: str) -> None:
    """Raise UsageError if a key is not one of the choices."""
    for key in keys:
        if key not in choices:
            raise UsageError(f"unknown setting {key!r}", place=place, hint=suggest(key, choices))


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
    """Read a file. Without `is_named`, a FIFO or device is an error.

    Opening it does not wait for a writer."""
    try:
        descriptor = os.open(path, os.O_RDONLY if is_named else READ)
        with open(descriptor, "rb") as stream:
            if not is_named and not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError("not a regular file")
            text = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError((error.strerror or "unreadable").lower()) from None
    except ValueError:
        raise UsageError("not a valid file name") from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"a configuration file must have at most {_MOST_BYTES:,} bytes")
    return text


def _parse(text: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"not TOML: {error}") from None


def _parse_config(path: str, text: bytes, ctx: click.Context, *, is_named: bool) -> Config | None:
    """Return the settings of a command; None if the file has none for it or, if --config names the
    file, for any command."""
    root: dict[str, Any] | None = _parse(text)
    for name in _prefix(path):
        root = _table_in(root or {}, name)
    if root is None:
        return None
    names = _names_of(ctx)
    choices = [*names_beside(levels_of(ctx)[0]), FILTERS, ENGINES, SPARK, INDEXES]
    is_known = not root.keys().isdisjoint(choices)
    # Whether the file, or this part of it, is for sbbf alone.
    is_own = not is_named or os.path.basename(path) in (_OWN_NAME, _PROJECT)
    if is_own or not is_known:
        ensure_among(root, choices, _place(path, []))
    spark = _flatten(_table_in(root, SPARK) or {}, SPARK)
    indexes = _indexes_of(_table_in(root, INDEXES) or {}, path)
    filters = root.get(FILTERS) if names[0] in _TAKE_FILTERS else None
    own = {}
    if ENGINES in root and any(f"--{ENGINES}" in option.opts for option in ctx.command.params):
        own[ENGINES] = root[ENGINES]
    table = _find_table(root, path, ctx)
    if table is None:
        has_settings = bool(own or spark or indexes or filters is not None)
        if not has_settings and not (is_named and is_known):
            return None
        table = {}
    place = _place(path, names)
    return Config(path, place, own | table, filters=filters, spark=spark, indexes=indexes)


def _find_table(root: dict[str, Any], path: str, ctx: click.Context) -> dict[str, Any] | None:
    """Return the table of a command in those of its groups; None if there is none. Raises
    UsageError if a group has no command of the name of a table."""
    table: dict[str, Any] | None = root
    names = _names_of(ctx)
    for depth, level in enumerate(levels_of(ctx)):
        if table is None:
            return None
        if depth > 0:
            ensure_among(table, names_beside(level), _place(path, names[:depth]))
        table = _table_in(table, names[depth])
    return table


def _table_in(table: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return the table of this name in another one; None if there is none. Raises UsageError if it
    is something else."""
    inner = table.get(name)
    if inner is None or isinstance(inner, dict):
        return inner
    raise UsageError(f"{name} must be a table, not {inner!r}")


def _indexes_of(table: Mapping[str, Any], path: str) -> dict[str, str]:
    """Return the indexes in a table by the lakes that they are of; names are relative to the folder
    of the file. Raises UsageError."""
    folder = os.path.dirname(os.path.abspath(path))
    indexes = {}
    for lake, index in table.items():
        if not isinstance(index, str):
            raise UsageError(f"the index of {lake} must be text, not {index!r}")
        indexes[full_name(lake, folder)] = full_name(index, folder)
    return indexes


def full_name(name: str, folder: str = "") -> str:
    """Return the name of files, relative to a folder, that means the same in every working folder;
    a URL, and the name of a table, as it is."""
    if is_url(name) or is_table_name(name):
        return name.rstrip("/")
    return os.path.abspath(os.path.join(folder, local_path(name)))


def _flatten(value: object, name: str) -> dict[str, str]:
    """Return the settings in a table by their full names, as text. Raises UsageError."""
    if isinstance(value, dict):
        settings = {}
        for key, inner in value.items():
            settings.update(_flatten(inner, f"{name}.{key}"))
        return settings
    if isinstance(value, bool):
        return {name: str(value).lower()}
    if not isinstance(value, str | int | float):
        raise UsageError(f"{name} must be text, a number, true or false")
    return {name: str(value)}


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
    """Return which other user than root may write to a file or its folder; None if none may."""
    from sbbf_tool.storage.whole import find_writer

    writer = find_writer(path)
    if writer is not None:
        return f"{writer} can write to it"
    folders = [os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))]
    for folder in dict.fromkeys(folders):
        writer = find_writer(folder)
        if writer is not None:
            return f"{writer} can write to its folder {folder}"
    return None


def levels_of(ctx: click.Context) -> list[click.Context]:
    """Return the contexts of a command and of its groups, without the root."""
    if ctx.parent is None:
        return []
    return [*levels_of(ctx.parent), ctx]


def _names_of(ctx: click.Context) -> list[str]:
    """Return the names of a command from the root."""
    return [level.info_name or "" for level in levels_of(ctx)]


def names_beside(ctx: click.Context) -> list[str]:
    """Return the names of the commands in the group of a command."""
    assert ctx.parent is not None
    group = ctx.parent.command
    assert isinstance(group, click.Group)
    return group.list_commands(ctx.parent)
