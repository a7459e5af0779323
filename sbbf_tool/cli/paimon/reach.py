"""How far the commands of `sbbf paimon` follow what a table's metadata names."""

from __future__ import annotations

import click

outside_option = click.option(
    "--allow-outside",
    is_flag=True,
    help="Read files outside the table's folder that its metadata names; else they are left out.",
)
