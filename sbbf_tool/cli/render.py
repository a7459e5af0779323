"""Output of reports: rich tables on a terminal, aligned text in a pipe, JSON with --json. Nothing is truncated to a width."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.output import say, say_json
from sbbf_tool.cli.spelling import command_of, spell
from sbbf_tool.display import escape
from sbbf_tool.errors import UnreadableError
from sbbf_tool.hints import Fix

SCHEMA_VERSION = 0
"""Version of all documents. It stays 0 until release 0.1.0, which fixes their fields."""

if TYPE_CHECKING:
    from sbbf_tool.editing.build import Progress


def show_json(schema: str, report: Any) -> None:
    """Print one document on one line: a report, or its fields, with the name and version of their schema.

    Bytes of a file name that are not UTF-8 are escaped in a form that `json.loads` and `os.fsencode` restore.
    """
    say_json(document(schema, report))


def document(schema: str, report: Any) -> dict[str, Any]:
    """Return the document of a report, or of its fields."""
    return {"schema": f"sbbf.{schema}", "version": SCHEMA_VERSION, **_plain(report)}


def _plain(value: Any) -> Any:
    """Return a report as dicts and lists, with its hints as options; a fix also has its `command`."""
    if is_dataclass(value):
        document = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {**document, "command": command_of(value)} if isinstance(value, Fix) else document
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, str):
        return spell(value)
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def warn(message: str) -> None:
    say(f"sbbf: warning: {spell(message)}", err=True)


def say_unreadable(problems: Sequence[tuple[str, str | None, str]]) -> int:
    """Print what could not be read (file, column or None, and reason) to standard error; return the exit code, 0 without problems."""
    for file, column, problem in problems:
        place = f"column {column}" if column is not None else None
        say(f"sbbf: {UnreadableError(spell(problem), file=file, place=place)}", err=True)
    return UnreadableError.exit_code if problems else 0


def show_table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print a table; `right` lists the columns of numbers, which are right-aligned. Empty columns are omitted."""
    visible = [at for at in range(len(headers)) if any(row[at] for row in rows)] or list(range(len(headers)))
    names = [headers[at] for at in visible]
    cells = [[escape(spell(row[at])) for at in visible] for row in rows]
    numbers = [at in right for at in visible]
    if sys.stdout.isatty():
        _show_rich(names, cells, numbers)
        return
    widths = [max(len(line[at]) for line in [names, *cells]) for at in range(len(names))]
    for line in [names, *cells]:
        padded = (
            cell.rjust(width) if is_number else cell.ljust(width) for cell, width, is_number in zip(line, widths, numbers, strict=True)
        )
        click.echo("  ".join(padded).rstrip())


def _show_rich(names: list[str], cells: list[list[str]], numbers: list[bool]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, is_number in zip(names, numbers, strict=True):
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for line in cells:
        table.add_row(*(Text(cell) for cell in line))
    Console(highlight=False).print(table)


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """Yield a progress bar on stderr if it is a terminal, otherwise None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("opening", total=None)
        yield lambda step, done, total: bar.update(task, description=escape(step), completed=done, total=total)


def say_not_cross_checked(count: int) -> None:
    """Print the number of column chunks that pyarrow should also have decoded but cannot; print nothing if it is 0."""
    if count:
        say(f"{format_count(count, 'column chunk')} not cross-checked: pyarrow cannot decode {'it' if count == 1 else 'them'}")


def value(text: str) -> str:
    """Return a queried value as a table shows it; an empty string is shown in quotes."""
    return text or "''"


def size(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def format_count(count: int, noun: str) -> str:
    """Format a count, such as `1 data file` or `2 data files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def row_groups(numbers: Sequence[int]) -> str:
    """Format numbers, such as `row groups 0-3, 7`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    text = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in spans)
    return f"row groups {text}" if len(numbers) > 1 else f"row group {text}"


def percent(ratio: float | None) -> str:
    """Format a ratio as a percentage with three significant digits."""
    return "" if ratio is None else f"{ratio * 100:.3g} %"


def estimate(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
