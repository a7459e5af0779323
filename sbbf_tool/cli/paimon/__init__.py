"""`sbbf paimon`: commands for the file indexes of Apache Paimon tables, one module per command."""

from __future__ import annotations

import click

from sbbf_tool.cli import CommandsByName

COMMANDS = {
    "inspect": "sbbf_tool.cli.paimon.inspect",
    "probe": "sbbf_tool.cli.paimon.probe",
    "build": "sbbf_tool.cli.paimon.build",
    "verify": "sbbf_tool.cli.paimon.verify",
    "check": "sbbf_tool.cli.paimon.check",
    "add-index": "sbbf_tool.cli.paimon.add_index",
    "remove-index": "sbbf_tool.cli.paimon.remove_index",
}
"""Module of each command, in the order of `--help`."""


@click.group(cls=CommandsByName, modules=COMMANDS, short_help="Inspect, query, build, verify, check, add and remove Paimon's file indexes.")
def command() -> None:
    """Inspect, query, verify, check, add and remove Bloom filters in the file indexes of Apache Paimon tables.

    A file index is stored in `DATAFILE.index` beside a data file or, if it is small, in the manifest of the table. Its filters are not
    those of Parquet, but an index type of Paimon for data files in Parquet, ORC and Avro.
    """
