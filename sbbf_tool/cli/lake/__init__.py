"""`sbbf lake`: the same commands over millions of files, by processes of this machine or by Spark."""

from __future__ import annotations

import click

from sbbf_tool.cli import CommandsByName

COMMANDS = {
    "inspect": "sbbf_tool.cli.lake.inspect",
    "probe": "sbbf_tool.cli.lake.probe",
    "advise": "sbbf_tool.cli.lake.advise",
    "add-filter": "sbbf_tool.cli.lake.add_filter",
    "verify": "sbbf_tool.cli.lake.verify",
    "check": "sbbf_tool.cli.lake.check",
}


@click.group(cls=CommandsByName, modules=COMMANDS, short_help="Do it to many files: on this machine, or by Spark.")
def command() -> None:
    """Work on a lake: every file below the PATHs, or those of some partitions.

    A file that is broken, encrypted or managed by a table is told of by itself and stops no other. The exit code is the highest of all
    files.
    """
