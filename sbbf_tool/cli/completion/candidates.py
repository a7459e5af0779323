"""What can follow the words of a command line: commands, options, and values of options and arguments."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import click

from sbbf_tool.cli.group import CommandsByName
from sbbf_tool.cli.options import COLUMN, DIALECT, ENGINE, FILE, GROUP_OR_RULE, SEVERITY, TYPE, about, name_of

if TYPE_CHECKING:
    from sbbf_tool.file.table_file import TableFile

_MOST_ENTRIES = 2000
"""Entries of folders to look at for a Parquet file."""


class Candidates(NamedTuple):
    words: list[tuple[str, str]]
    """Words with their help."""
    are_files: bool = False
    """Whether the shell completes a path."""
    prefix: str = ""
    """What each word follows without a space, such as `--format=`."""


_FILES = Candidates([], are_files=True)


class _Arguments(NamedTuple):
    """The words after a command, sorted."""

    values: dict[str, list[str]]
    """Values of options, by the name of the option."""
    operands: list[str]
    waiting: click.Option | None
    """The option whose value is the next word."""
    ends_options: bool
    """Whether `--` came before."""


def complete(program: click.Group, words: list[str], current: str) -> Candidates:
    """Return what can be at `current`, which is the beginning of a word, after `sbbf` and these words."""
    command: click.Command = program
    context = click.Context(program, info_name="sbbf", resilient_parsing=True)
    rest = list(words)
    while isinstance(command, CommandsByName):
        names = [at for at, word in enumerate(rest) if not word.startswith("-")]
        if not names:
            return _options(command, context, current) if current.startswith("-") else _commands(command, current)
        name, rest = rest[names[0]], rest[names[0] + 1 :]
        below = command.get_command(context, name)
        if below is None:
            return Candidates([])
        command, context = below, click.Context(below, parent=context, info_name=name, resilient_parsing=True)
    arguments = _sort(command, rest)
    if arguments.waiting is not None:
        return _value_of(arguments.waiting, arguments, current)
    if current.startswith("-") and not arguments.ends_options:
        name, sign, value = current.partition("=")
        if sign and name.startswith("--"):
            option = _options_by_name(command).get(name)
            candidates = _value_of(option, arguments, value) if option is not None else Candidates([])
            return candidates._replace(prefix=name + sign)
        return _options(command, context, current)
    return _operand(command, arguments, current)


def _options_by_name(command: click.Command) -> dict[str, click.Option]:
    return {name: option for option in command.params if isinstance(option, click.Option) for name in option.opts}


def _sort(command: click.Command, words: list[str]) -> _Arguments:
    options = _options_by_name(command)
    values: dict[str, list[str]] = {}
    operands: list[str] = []
    waiting: click.Option | None = None
    for at, word in enumerate(words):
        if waiting is not None:
            values.setdefault(name_of(waiting), []).append(word)
            waiting = None
            continue
        if word == "--":
            return _Arguments(values, operands + words[at + 1 :], None, True)
        name, sign, value = word.partition("=") if word.startswith("--") else (word[:2], "" if len(word) <= 2 else "=", word[2:])
        option = options.get(name)
        if option is None:
            if not word.startswith("-"):
                operands.append(word)
        elif sign:
            values.setdefault(name_of(option), []).append(value)
        elif option.is_flag or option.count:
            values.setdefault(name_of(option), [])
        else:
            waiting = option
    return _Arguments(values, operands, waiting, False)


def _commands(group: CommandsByName, current: str) -> Candidates:
    return _matching(((name, group.entries[name].summary) for names in group.sections.values() for name in names), current)


def _options(command: click.Command, context: click.Context, current: str) -> Candidates:
    options = (option for option in command.get_params(context) if isinstance(option, click.Option) and not option.hidden)
    names = ((name, option.help or "") for option in options for name in (*option.opts, *option.secondary_opts))
    return Candidates([(name, _first_sentence(text)) for name, text in names if name.startswith(current)])


def _first_sentence(text: str) -> str:
    return text.partition("  [")[0].partition(". ")[0].removesuffix(".")


def _value_of(option: click.Option, arguments: _Arguments, current: str) -> Candidates:
    if isinstance(option.type, click.Choice):
        return _matching(((str(choice), "") for choice in option.type.choices), current)
    names = about(option).names
    if names == FILE:
        return _FILES
    if names == COLUMN:
        return _matching(_columns(arguments.operands), current)
    if names == TYPE:
        # The names of types are in capitals; their identifiers need no quotes.
        return _matching(_types(is_id=not current[:1].isupper()), current)
    return _matching(_NAMES[names](), current) if names in _NAMES else Candidates([])


def _operand(command: click.Command, arguments: _Arguments, current: str) -> Candidates:
    parameters = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    if not parameters:
        return Candidates([])
    at = len(arguments.operands)
    parameter = parameters[min(at, len(parameters) - 1)]
    if at >= len(parameters) and parameter.nargs == 1:
        return Candidates([])
    if isinstance(parameter.type, click.Choice):
        return _matching(((str(choice), "") for choice in parameter.type.choices), current)
    if parameter.name == "rule":
        return _matching(_rules(), current)
    if parameter.name == "column":
        return Candidates([])
    metavar = parameter.metavar or ""
    if at > 0 and "COLUMN" in metavar and "--column" not in arguments.values:
        columns = _matching(_columns(arguments.operands), current)
        # PATH... [COLUMN VALUE] may go on with another PATH.
        takes_more_paths = metavar.startswith("PATH...")
        return columns if columns.words or not takes_more_paths else _FILES
    return _FILES


def _matching(words: Iterable[tuple[str, str]], current: str) -> Candidates:
    return Candidates([(word, text) for word, text in words if word.startswith(current)])


def _columns(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns, with their types, of the first of these files that can be read. URLs are not read."""
    from sbbf_tool.errors import SbbfError
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.storage.places import is_url

    for name in names:
        try:
            path = None if is_url(name) else _table_file(os.path.expanduser(name)) or _parquet_file(os.path.expanduser(name))
            if path is None:
                continue
            with ParquetFile.open(path) as file:
                yield from ((column.name, column.type_name) for column in file.footer.columns)
            return
        except SbbfError:
            continue


def _table_file(path: str) -> TableFile | None:
    """Return the first live file of the table in this folder; None for other folders and for files."""
    from sbbf_tool.file.table_file import TableFile
    from sbbf_tool.tables.locate import find_table

    table = find_table(path) if os.path.isdir(path) else None
    live = next(iter(table.live_files()), None) if table is not None else None
    return TableFile(live.path, live.columns or table.columns) if table is not None and live is not None else None


def _parquet_file(path: str) -> str | None:
    """Return the path if it is a regular file, or the first Parquet file of a folder; None otherwise, and if the folder is large."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(mode):
        return path
    files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in ("", *sorted(names)))
    return next((file for file in islice(files, _MOST_ENTRIES) if file.endswith(".parquet") and os.path.isfile(file)), None)


def _rules() -> Iterator[tuple[str, str]]:
    from sbbf_tool.rules.catalog import CATALOGS

    return ((rule.name, rule.message) for rules in CATALOGS.values() for rule in rules)


def _rules_and_groups() -> Iterator[tuple[str, str]]:
    from sbbf_tool.rules.catalog import GROUPS

    yield from ((group, "all rules of this group") for group in GROUPS)
    yield from _rules()


def _engines() -> Iterator[tuple[str, str]]:
    from sbbf_tool.query_engines.verdicts import load_table

    return ((engine.id, engine.name) for engine in load_table().engines)


def _dialects() -> Iterator[tuple[str, str]]:
    from sbbf_tool.bloom.dialects import DIALECTS

    return ((dialect.name, dialect.writers) for dialect in DIALECTS)


def _severities() -> Iterator[tuple[str, str]]:
    from sbbf_tool.reports.findings import SEVERITIES

    return ((severity, "") for severity in SEVERITIES)


def _types(*, is_id: bool) -> Iterator[tuple[str, str]]:
    from sbbf_tool.query_engines.verdicts import load_table

    return ((family.id, family.name) if is_id else (family.name, family.id) for family in load_table().families)


_NAMES: dict[str | None, Callable[[], Iterator[tuple[str, str]]]] = {
    DIALECT: _dialects,
    ENGINE: _engines,
    GROUP_OR_RULE: _rules_and_groups,
    SEVERITY: _severities,
}
