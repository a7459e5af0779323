"""The words and documents that the commands print: counts with their nouns, places, warnings, and
reports as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sbbf_tool.cli.output import complain, terminal
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.errors import UnreadableError
from sbbf_tool.hints import Fix
from sbbf_tool.reports.plain import to_plain

Key = TypeVar("Key")
Item = TypeVar("Item")

SCHEMA_VERSION = 0
"""Version of all documents. It stays 0 until release 0.1.0, which fixes their fields."""


def document(schema: str, report: Any) -> dict[str, Any]:
    """Return the document of a report, or of its fields, with the name and version of its schema.

    Bytes of a file name that are not UTF-8 are escaped in a form that `json.loads` and
    `os.fsencode` restore.
    """
    return {"schema": f"sbbf.{schema}", "version": SCHEMA_VERSION, **to_plain(report, _CONVERT)}


class LongList:
    """A list of a document that has too many items to be kept: its items are made as they are
    written."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return (to_plain(item, _CONVERT) for item in self._items)


_CONVERT: Mapping[type, Callable[[Any], Any]] = {
    str: str,
    Sequence: LongList,
    Fix: lambda fix: {**to_plain(fix, {str: str}), "command": command_of(fix)},
}
"""How values are written in documents: a fix also has its command."""


def group(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return the items of each key, in their order."""
    groups: dict[Key, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


def warn(message: str) -> None:
    """Print a warning on standard error, unless `--quiet` is given."""
    if not terminal().quiet:
        complain(f"sbbf: warning: {message}", kind="warning")


def warn_of_writers(path: str, what: str, choice: str) -> None:
    """Warn if other users can change a file that decides what a command does."""
    from sbbf_tool.storage.whole import find_writer

    writer = find_writer(path)
    if writer is not None:
        warn(f"{path}: the {what} can be changed by {writer}, who can thus choose {choice}")


def note(line: str) -> None:
    """Print a line about the work on standard error, unless `--quiet` is given."""
    if not terminal().quiet:
        complain(line, kind="note")


def say_unreadable(problems: Sequence[tuple[str, str | None, str]]) -> int:
    """Print what could not be read (file, column or None, and reason) to standard error; return the
    exit code, 0 without problems."""
    for file, column, problem in problems:
        place = None if column is None else f"column {column}"
        complain(f"sbbf: {UnreadableError(problem, file=file, place=place)}")
    return UnreadableError.exit_code if problems else 0


def value(text: str) -> str:
    """Return a queried value as a table shows it; an empty string is shown in quotes."""
    return text or "''"
