"""The option that bounds what a page of a file may state that it decompresses to."""

from __future__ import annotations

import click

from sbbf_tool.cli.sizes import BYTES

page_limit_option = click.option(
    "--max-page-bytes",
    type=BYTES,
    help="Largest page to decompress, such as 1GiB.  [default: 256MiB or 1,000 times its compressed size, within "
    "a quarter of the memory, shared by the jobs]",
)
"""Hands `max_page_bytes`, as operations take it, to the command."""
