"""Commands and options of earlier versions, each with its replacement, which the error for the old name shows."""

from __future__ import annotations

import click

COMMANDS = {
    "lake inspect": "use sbbf inspect PATH...",
    "lake probe": "use sbbf probe PATH... -c COLUMN --value VALUE",
    "lake advise": "use sbbf advise PATH...",
    "lake add-filter": "use sbbf add-filter PATH... --in-place",
    "lake verify": "use sbbf verify PATH...",
    "lake check": "use sbbf check PATH...",
    "lake watch": "use sbbf add-filter PATH... --in-place, run on a schedule; files that have their filters are skipped",
    "lake": "use sbbf COMMAND PATH...; every command takes many files, and --master or --remote runs it on Spark",
}
"""Replacements, by the arguments after `sbbf`."""

OPTIONS = {
    ("add-filter", "--dialect"): "sbbf reads filters of drafts, and does not write them",
    ("add-filter", "--engine"): "use --runner local or --runner spark",
    ("inspect", "--engine"): "use --runner local or --runner spark",
    ("probe", "--engine"): "use --runner local or --runner spark",
    ("verify", "--engine"): "use --runner local or --runner spark",
    ("check", "--engine"): "use --runner local or --runner spark",
    ("advise", "--reader"): "use --engine NAME",
}
"""Replacements, by command and option."""


def refuse_command(arguments: list[str]) -> None:
    """Raise click.UsageError if these arguments begin with a command of an earlier version."""
    for words, spelling in COMMANDS.items():
        if arguments[: words.count(" ") + 1] == words.split():
            runner = "; use --runner for --engine" if any(word.partition("=")[0] == "--engine" for word in arguments) else ""
            raise click.UsageError(f"sbbf {words} was removed: {spelling}{runner}")


def spelling_of(command: str | None, option: str) -> str | None:
    """Return what replaces an option of an earlier version; None if there was no such option."""
    return OPTIONS.get((command or "", option))
