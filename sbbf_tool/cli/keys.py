"""The option that names the keys of encrypted files. A key itself is never on a command line, because other users can read it there."""

from __future__ import annotations

from typing import Any

import click

from sbbf_tool.cli import render

_HELP = "JSON file with the keys of encrypted files.  [default: the file named by SBBF_KEYS_FILE, or the JSON in SBBF_KEYS]"


def _read(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    if ctx.resilient_parsing:
        return None
    from sbbf_tool.file.keys import exposure_of, read_keys

    keys = read_keys(value)
    warning = exposure_of(keys.path) if keys is not None and keys.path is not None else None
    if warning is not None:
        render.warn(warning)
    return keys


keys_option = click.option("--keys", metavar="FILE", callback=_read, help=_HELP)
"""Passes `keys` to the command, as the type that verbs take."""
