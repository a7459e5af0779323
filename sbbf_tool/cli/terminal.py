"""How the command line uses its streams: their width, whether they show colours and progress, and how much is printed.

The options `--all`, `--quiet` and `--verbose` of every command set these for one run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TextIO

import click
from click.core import ParameterSource


class Terminal:
    """What one run may print, and how."""

    quiet: bool = False
    """Whether only errors are printed."""
    verbose: bool = False
    shows_all: bool = False
    """Whether nothing is left out: there are lines about all files, and tables keep all rows and columns, however narrow the terminal."""

    def has_color(self, stream: TextIO) -> bool:
        """Return whether output to this stream is coloured: as NO_COLOR or FORCE_COLOR states, else if it is a terminal."""
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return is_terminal(stream) and os.environ.get("TERM") != "dumb"

    def width(self, stream: TextIO) -> int | None:
        """Return the width of the stream in cells; None if lines may have any length, as in a pipe or with `--all`."""
        if self.shows_all or not is_terminal(stream):
            return None
        return max(_columns_of(stream), MIN_WIDTH)

    def shows_progress(self) -> bool:
        """Return whether progress is drawn on standard error or, where that is no terminal, with --verbose printed now and then."""
        return not self.quiet and (os.environ.get("TERM") != "dumb" if is_terminal(sys.stderr) else self.verbose)


MOST_FILES = 20
"""Number of files about which lines are printed, unless all are requested; and number of errors."""
MIN_WIDTH = 20
"""Terminals that claim to be narrower get lines of this width."""
_USUAL_WIDTH = 80
"""Width of a terminal that does not state one."""


def _columns_of(stream: TextIO) -> int:
    """Return the columns of a terminal: those that COLUMNS states, else its own."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):  # the stream has no descriptor
        return _USUAL_WIDTH


_current: ContextVar[Terminal | None] = ContextVar("terminal", default=None)


def terminal() -> Terminal:
    """Return the settings of this run."""
    return _current.get() or start_run()


def start_run() -> Terminal:
    """Forget the settings of an earlier run in this process, and return those of a new one."""
    _current.set(settings := Terminal())
    return settings


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether the stream is a terminal; a closed or missing one is not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


_OPPOSITES = {"quiet": "verbose", "verbose": "quiet"}


def terminal_options(show_log: Callable[[click.Context], None]) -> list[click.Option]:
    """Build the options that every command has, and that change only what is printed; `show_log` is called for `--verbose`."""

    def remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        name = str(param.name).removeprefix("terminal_")
        opposite = _OPPOSITES.get(name, "")
        if not value:
            return
        if opposite and getattr(terminal(), opposite):
            stated = [ctx.get_parameter_source(f"terminal_{each}") is ParameterSource.COMMANDLINE for each in (name, opposite)]
            if stated[0] == stated[1]:
                raise click.UsageError("give one of --quiet and --verbose", ctx)
            if stated[1]:  # the command line overrides settings
                return
            setattr(terminal(), opposite, False)
        setattr(terminal(), name, value)
        if name == "verbose" and not ctx.resilient_parsing:
            show_log(ctx)

    options = {
        ("quiet", "-q", "--quiet"): "Print nothing but errors.",
        ("verbose", "-v", "--verbose"): "Print what is being done, and where an error came from, to standard error.",
        ("shows_all", "--all"): "Leave nothing out: print lines about all files, and whole tables and names on any terminal.",
    }
    return [
        click.Option([f"terminal_{name}", *names], is_flag=True, expose_value=False, callback=remember, help=text)
        for (name, *names), text in options.items()
    ]
