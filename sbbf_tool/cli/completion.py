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

from sbbf_tool.errors import SbbfError

_MOST_ENTRIES = 2000
"""Entries of folders to look at for a Parquet file."""
_NEEDS_NO_QUOTES = re.compile(r"[\w./%+][\w./%+-]*")
"""Other names are not completed: shells would insert them without quotes, and a file may come from
a stranger."""


def complete_value(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return what a value of an option, or an argument, may be: a path if nothing is known."""
    # `args` has them where click stops at an option without its value.
    paths = ctx.params.get("arguments") or ctx.args
    is_column_possible = parameter.name == "arguments" and not ctx.params.get("column")
    if paths and is_column_possible and "COLUMN" in (parameter.metavar or ""):
        items = _matching(_columns(paths), incomplete)
        if items:
            return items
    kind = _kind_of(parameter)
    if kind == "FILE":
        return [CompletionItem(incomplete, type="file")]
    names: Iterable[tuple[str, str]] = ()
    if kind in ("COLUMN", "COL"):
        names = _columns(paths)
    elif kind == "RULE":
        names = _rules()
    elif kind == "TYPE":
        names = _types()
    return _matching(names, incomplete)


def _kind_of(parameter: click.Parameter) -> str:
    """Return what a value of a parameter names, by the word for it in the help."""
    word = (parameter.metavar or "").strip("[]").partition("[")[0]
    if isinstance(parameter, click.Option):
        is_path = word == "OUT" or isinstance(parameter.type, click.Path)
        return "FILE" if is_path else word
    if parameter.name in ("column", "values", "name"):
        return ""
    return word if word == "RULE" else "FILE"


def _matching(names: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=text)
        for name, text in names
        if name.startswith(incomplete) and _NEEDS_NO_QUOTES.fullmatch(name)
    ]


def _columns(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns, with types, of the first readable file. URLs are not read."""
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.storage.places import is_url

    for path in paths:
        try:
            name = None if is_url(path) else _parquet_file(os.path.expanduser(path))
            if name is not None:
                with ParquetFile.open(name) as file:
                    for column in file.footer.columns:
                        yield column.name, column.type_name
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
    for entry in islice(_walk(path), _MOST_ENTRIES):
        if entry.endswith(".parquet") and os.path.isfile(entry):
            return entry
    return None


def _walk(path: str) -> Iterator[str]:
    """Yield the path of each folder below a path, followed by those of its files."""
    for folder, _, names in os.walk(path):
        yield os.path.join(folder, "")
        for name in sorted(names):
            yield os.path.join(folder, name)


def _rules() -> Iterator[tuple[str, str]]:
    from sbbf_tool.rules.catalog import GROUPS, all_rules

    for group in GROUPS:
        yield group, "all rules of this group"
    for rule in all_rules():
        yield rule.name, rule.message


def _types() -> Iterator[tuple[str, str]]:
    from sbbf_tool.query_engines.verdicts import load_table

    return ((family.id, family.name) for family in load_table().families)
