"""Only the names of files that may hold a value, for other programs: each ends with a line break, or with a NUL byte."""

from __future__ import annotations

import os
from typing import Any

from sbbf_tool.cli.formats import NAMES, Item, View
from sbbf_tool.cli.formats.target import OutputTarget
from sbbf_tool.cli.output import complain
from sbbf_tool.display import escape


class Names:
    """The names, and on standard error what they do not show."""

    def __init__(self, name: str, view: View[Any], target: OutputTarget) -> None:
        self._view, self._target, self._end_of_name = view, target, b"\n" if name == NAMES else b"\0"

    def add(self, item: Item) -> None:
        if item.report is None or item.report.is_absent:
            return
        name = os.fsencode(item.report.file)
        if self._end_of_name == b"\n" and (b"\n" in name or b"\r" in name):
            complain(f"sbbf: {item.report.file}: its name has a line break: use --format names0")
            self._view.total["unprintable"] += 1
        elif self._target.is_terminal:
            self._target.write(f"{escape(item.report.file)}\n")
        else:
            self._target.binary().write(name + self._end_of_name)

    def end(self, summary: dict[str, Any] | None, files: str) -> None:
        for line in self._view.notes():
            complain(f"sbbf: {line}", kind="note")
