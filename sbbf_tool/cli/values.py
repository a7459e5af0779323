"""Values that stand in a file, one a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain

import click

# How the byte-order marks of UTF-16 come out of UTF-8 with `surrogateescape`.
_UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")


def lines_of(name: str) -> Iterator[str]:
    """The lines of a file, or of standard input for `-`, without those that are empty; read as they are asked for."""
    if name == "-" and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    try:
        with click.open_file(name, encoding="utf-8", errors="surrogateescape") as stream:
            lines = iter(stream)
            first = next(lines, "").removeprefix("\ufeff")
            if first.startswith(_UTF_16):
                raise click.UsageError(f"values file {name}: it is UTF-16; save it as UTF-8")
            yield from filter(None, (line.rstrip("\r\n") for line in chain((first,), lines)))
    except OSError as error:
        raise click.UsageError(f"values file {name}: {(error.strerror or 'unreadable').lower()}") from None
