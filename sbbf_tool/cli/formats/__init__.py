"""The formats in which `sbbf check` tells what it found, one module each, imported when it is asked for.

Some are written file by file as they are checked, some are one document over all files and so are written at the end.
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
        """One more file was checked, or could not be."""

    def end(self) -> None:
        """There are no more."""


@contextmanager
def opened(name: str) -> Iterator[Format]:
    """Yield the format of this name. It writes its end also where a file's error ends the command."""
    chosen: Format = import_module(f"sbbf_tool.cli.formats.{name}").Format()
    try:
        yield chosen
    except SbbfError:
        chosen.end()
        raise
    chosen.end()
