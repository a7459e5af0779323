"""Values that stand in a file, one a line."""

from __future__ import annotations

from collections.abc import Iterator

import click


def lines_of(name: str) -> Iterator[str]:
    """The lines of a file, or of standard input for `-`, without those that are empty; read as they are asked for."""
    try:
        with click.open_file(name, encoding="utf-8", errors="surrogateescape") as stream:
            yield from filter(None, (line.rstrip("\r\n") for line in stream))
    except OSError as error:
        raise click.UsageError(f"values file {name}: {(error.strerror or 'unreadable').lower()}") from None
