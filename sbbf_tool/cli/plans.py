"""Files that a command trusts: the plan that `--plan` names, and a warning if other users can change such a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbbf_tool.cli import render

if TYPE_CHECKING:
    from sbbf_tool.editing.plan_file import Plan


def plan_in(path: str) -> Plan:
    """Read a plan, and warn if other users can change it, because its files are used like PATHs of the command line. Raises UsageError."""
    from sbbf_tool.editing.plan_file import read_plan

    warn_of_exposure(path, "plan", "who can thus choose the files and columns")
    return read_plan(path)


def warn_of_exposure(path: str, noun: str, effect: str) -> None:
    """Warn if other users can change a file that is trusted: a `noun`, with what they could do."""
    from sbbf_tool.storage.exposure import find_writer

    if (writer := find_writer(path)) is not None:
        render.warn(f"{path}: the {noun} can be changed by {writer}, {effect}")
