"""`sbbf conformance`: commands for the conformance corpus, one module per command."""

from __future__ import annotations

import click

from sbbf_tool.cli import CommandsByName

COMMANDS = {
    "make": "sbbf_tool.cli.conformance.make",
    "run": "sbbf_tool.cli.conformance.run",
}
"""Module of each command, in the order of `--help`."""


@click.group(cls=CommandsByName, modules=COMMANDS, short_help="Test any reader or writer of filters with a corpus of files.")
def command() -> None:
    """Make a corpus of files with Bloom filters, and test readers and writers of any language with it.

    The corpus has every type, sizes at their limits, encrypted, old and damaged filters, and the answer that the format requires for
    each value that is looked up.
    """
