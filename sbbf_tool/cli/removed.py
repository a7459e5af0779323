"""Commands and options of earlier versions, each with its replacement, which the error for the old name shows."""

from __future__ import annotations

import click

COMMANDS = {
    "lake inspect": "sbbf inspect PATH...",
    "lake probe": "sbbf probe PATH... -c COLUMN --value VALUE",
    "lake advise": "sbbf advise PATH...",
    "lake add-filter": "sbbf add-filter PATH... --in-place",
    "lake verify": "sbbf verify PATH...",
    "lake check": "sbbf check PATH...",
    "lake watch": "sbbf add-filter PATH... --in-place, run on a schedule; files that have their filters are skipped",
    "lake": "sbbf COMMAND PATH...; every command takes many files, and --master or --remote runs it on Spark",
}
"""Replacements, by the arguments after `sbbf`."""

OPTIONS = {
    ("add-filter", "--dialect"): "sbbf reads filters of drafts, and does not write them",
    ("add-filter", "--engine"): "--runner local or --runner spark",
    ("inspect", "--engine"): "--runner local or --runner spark",
    ("probe", "--engine"): "--runner local or --runner spark",
    ("verify", "--engine"): "--runner local or --runner spark",
    ("check", "--engine"): "--runner local or --runner spark",
    ("advise", "--reader"): "--engine NAME",
    ("inspect", "--bare"): "--standalone",
    ("probe", "--bare"): "--standalone",
    ("verify", "--bare"): "--standalone",
}
"""Replacements, by command and option."""


def refuse_command(arguments: list[str]) -> None:
    """Raise click.UsageError if these arguments begin with a command of an earlier version."""
    for words, spelling in COMMANDS.items():
        if arguments[: words.count(" ") + 1] == words.split():
            raise click.UsageError(f"sbbf {words} was removed: {spelling}")


def spelling_of(command: str | None, option: str) -> str | None:
    """Return what replaces an option of an earlier version; None if there was no such option."""
    return OPTIONS.get((command or "", option))
