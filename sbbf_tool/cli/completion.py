"""What a shell completes beside commands, options and choices: columns of the file that is on the
line, rules, types and files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import click
from click.shell_completion import CompletionItem

from sbbf_tool.cli.options import COLUMN, FILE, GROUP_OR_RULE, TYPE, about

_MOST_ENTRIES = 2000
"""Entries of folders to look at for a Parquet file."""
_NEEDS_NO_QUOTES = re.compile(r"[\w./%+][\w./%+-]*")
"""Other names are not completed: shells would insert them without quotes, and a file may come from
a stranger."""


def complete_value(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return what a value of an option, or an argument, may be; a path where nothing else is
    known."""
    paths = (
        ctx.params.get("arguments") or ctx.args
    )  # where click stops at an option without its value
    kind = about(parameter).names if isinstance(parameter, click.Option) else FILE
    if parameter.name == "rule":
        kind = GROUP_OR_RULE
    elif parameter.name in ("column", "values", "name"):
        kind = COLUMN if isinstance(parameter, click.Option) else None
    elif (
        parameter.name == "arguments"
        and paths
        and "COLUMN" in (parameter.metavar or "")
        and not ctx.params.get("column")
    ):
        items = _matching(_columns(paths), incomplete)
        if items:
            return items
    if kind == FILE:
        return [CompletionItem(incomplete, type="file")]
    names = (
        _columns(paths)
        if kind == COLUMN
        else _rules()
        if kind == GROUP_OR_RULE
        else _types()
        if kind == TYPE
        else ()
    )
    return _matching(names, incomplete)


def _matching(names: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=text)
        for name, text in names
        if name.startswith(incomplete) and _NEEDS_NO_QUOTES.fullmatch(name)
    ]


def _columns(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns, with their types, of the first of these files that can be read. URLs are
    not read."""
    from sbbf_tool.errors import SbbfError
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.storage.places import is_url

    for path in paths:
        try:
            name = None if is_url(path) else _parquet_file(os.path.expanduser(path))
            if name is not None:
                with ParquetFile.open(name) as file:
                    yield from ((column.name, column.type_name) for column in file.footer.columns)
                return
        except SbbfError:
            continue


def _parquet_file(path: str) -> str | None:
    """Return the path if it is a regular file, or the first Parquet file of a folder; None
    otherwise, and if the folder is large."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(mode):
        return path
    files = (
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in ("", *sorted(names))
    )
    return next(
        (
            file
            for file in islice(files, _MOST_ENTRIES)
            if file.endswith(".parquet") and os.path.isfile(file)
        ),
        None,
    )


def _rules() -> Iterator[tuple[str, str]]:
    from sbbf_tool.rules.catalog import GROUPS, all_rules

    yield from ((group, "all rules of this group") for group in GROUPS)
    yield from ((rule.name, rule.message) for rule in all_rules())


def _types() -> Iterator[tuple[str, str]]:
    from sbbf_tool.query_engines.verdicts import load_table

    return ((family.id, family.name) for family in load_table().families)
