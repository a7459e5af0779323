"""`sbbf conformance`: commands for the conformance corpus, one module per command."""

from __future__ import annotations

import click

from sbbf_tool.cli.command import CommandEntry, CommandsByName

COMMANDS = {
    "make": CommandEntry(f"{__name__}.make", "Write the corpus to a folder."),
    "run": CommandEntry(f"{__name__}.run", "Test a reader or writer with the corpus."),
}
"""In the order of `--help`."""


@click.group(cls=CommandsByName, commands=COMMANDS)
def command() -> None:
    """Make a corpus of files with Bloom filters, and test readers and writers of any language with
    it.

    \b
    $ sbbf conformance make corpus

    The corpus has every type, sizes at their limits, encrypted, old and damaged filters, and the
    answer that the format requires for each value that is looked up.
    """
