"""The option that bounds what a page of a file may state that it decompresses to."""

from __future__ import annotations

import click

from sbbf_tool.cli.sizes import BYTES

page_limit_option = click.option(
    "--max-page-bytes",
    type=BYTES,
    help="The largest uncompressed page to read, such as 1GiB.  [default: see SECURITY.md]",
)
"""Hands `max_page_bytes`, as operations take it, to the command."""
