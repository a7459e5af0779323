"""Options that several commands of `sbbf paimon` share."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sbbf_tool.cli.options import COLUMNS, OUTSIDE_FILES, allow_option

Command = TypeVar("Command", bound=Callable[..., object])

_snapshot_option = COLUMNS.option(
    "--snapshot",
    "Read TABLE at this snapshot. It may be the folder of a branch.  [default: the latest]",
    type=int,
    metavar="N",
)
_BRANCH = re.compile(r"(.+)/branch/branch-([^/]+)/?")
"""The folder of a branch, whose metadata it has; the data files are those of the table."""


def outside_option(command: Command) -> Command:
    """Add the option that passes `allow_outside` to a command."""

    @wraps(command)
    def wrapped(*args: Any, allow: frozenset[str], **options: Any) -> object:
        return command(*args, allow_outside=OUTSIDE_FILES in allow, **options)

    return cast("Command", allow_option(OUTSIDE_FILES)(wrapped))


def table_options(command: Command) -> Command:
    """Add the options that pass `snapshot` and `allow_outside` to a command.

    A command whose table is the folder of a branch gets `branch`, too.
    """

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> object:
        name = "table" if "table" in options else "target"
        match = _BRANCH.fullmatch(options[name])
        if match:
            options[name], options["branch"] = match.groups()
        return command(*args, **options)

    return cast("Command", _snapshot_option(outside_option(wrapped)))
