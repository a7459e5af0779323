"""The option that limits the uncompressed size that a page of a file may state."""

from __future__ import annotations

import click

from sbbf_tool.cli.sizes import SIZE

page_limit_option = click.option(
    "--max-page-bytes",
    type=SIZE,
    help="The largest uncompressed page to read, such as 1GiB.  [default: see SECURITY.md]",
)
"""Passes `max_page_bytes` to the command, as verbs take it."""
