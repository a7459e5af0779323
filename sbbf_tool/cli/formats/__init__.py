"""The output formats of `sbbf check`, one module each, imported on demand.

Some formats print each file as soon as it is checked; the others print one document about all files at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from sbbf_tool.errors import SbbfError

if TYPE_CHECKING:
    from sbbf_tool.reports.findings import CheckReport

NAMES = ("text", "json", "junit", "sarif", "github")


class Format(Protocol):
    def add(self, report: CheckReport) -> None:
        """Add the report of one file."""

    def end(self) -> None:
        """Finish the output after the last file."""


@contextmanager
def open_format(name: str) -> Iterator[Format]:
    """Yield the format with this name. Its output is finished even if an error in a file ends the command."""
    chosen: Format = import_module(f"sbbf_tool.cli.formats.{name}").Format()
    try:
        yield chosen
    except SbbfError:
        chosen.end()
        raise
    chosen.end()
