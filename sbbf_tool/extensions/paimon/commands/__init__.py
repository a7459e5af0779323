"""`sbbf paimon`: commands for the file indexes of Apache Paimon tables."""

from __future__ import annotations

import click

from sbbf_tool.cli.command import CommandEntry, CommandsByName

COMMANDS = {
    "inspect": CommandEntry(
        f"{__name__}.read:inspect",
        "Show the indexes of data files, with their estimated false-positive rates.",
    ),
    "probe": CommandEntry(
        f"{__name__}.read:probe", "Find the data files of a table that may hold a value."
    ),
    "build": CommandEntry(f"{__name__}.change:build", "Build an index file for a data file."),
    "verify": CommandEntry(f"{__name__}.judge:verify", "Verify indexes against the data."),
    "check": CommandEntry(
        f"{__name__}.judge:check", "Check the indexes of a table against rules, as a gate for CI."
    ),
    "add-index": CommandEntry(
        f"{__name__}.change:add_index",
        "Add indexes to the data files of a table that have none for a column.",
    ),
    "remove-index": CommandEntry(
        f"{__name__}.change:remove_index", "Remove indexes from the data files of a table."
    ),
}
"""In the order of `--help`."""


@click.group(cls=CommandsByName, commands=COMMANDS)
def command() -> None:
    """Inspect, query, verify, check, add and remove Bloom filters in the file indexes of Apache
    Paimon tables.

    \b
    $ sbbf paimon inspect orders
    $ sbbf paimon add-index orders -c customer

    A file index is stored in `DATAFILE.index` beside a data file or, if it is small, in the
    manifest of the table. Its filters are not those of Parquet, but an index type of Paimon for
    data files in Parquet, ORC and Avro.
    """
