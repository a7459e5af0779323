"""`sbbf paimon`: the file indexes of Apache Paimon tables, a command each."""

from __future__ import annotations

import click

from sbbf_tool.cli import CommandsByName

COMMANDS = {
    "inspect": "sbbf_tool.cli.paimon.inspect",
    "probe": "sbbf_tool.cli.paimon.probe",
    "build": "sbbf_tool.cli.paimon.build",
    "verify": "sbbf_tool.cli.paimon.verify",
    "add-index": "sbbf_tool.cli.paimon.add_index",
}
"""In the order in which `--help` lists them."""


@click.group(cls=CommandsByName, modules=COMMANDS, short_help="Show, ask, build, prove and add Paimon's file indexes.")
def command() -> None:
    """The Bloom filters in the file indexes of Apache Paimon tables.

    A file index lies in `DATAFILE.index` beside a table's data file or, where it is small, in the table's manifest. Its filter is not
    Parquet's: an index of Paimon's own, for data files in Parquet, ORC and Avro.
    """
