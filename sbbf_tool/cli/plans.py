"""The plan that `--plan` names, as the commands that apply it take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbbf_tool.cli import render

if TYPE_CHECKING:
    from sbbf_tool.editing.plan_file import Plan


def plan_in(path: str) -> Plan:
    """Read a plan, and warn if other users can change it, because its files are used like PATHs of the command line. Raises UsageError."""
    from sbbf_tool.editing.plan_file import exposure_of, read_plan

    if (exposure := exposure_of(path)) is not None:
        render.warn(exposure)
    return read_plan(path)
