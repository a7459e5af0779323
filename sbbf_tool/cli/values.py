"""Values in a file, one per line, and file names in a list."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from functools import partial

import click

from sbbf_tool.cli.output import complain

_MOST_LINE_BYTES = 64 << 20
_MOST_NAME_BYTES, _BLOCK_BYTES = 1 << 20, 1 << 16
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def lines_of(name: str) -> Iterator[str]:
    """Yield the non-empty lines of a file, or of standard input for `-`; lines are read as they are needed.

    A line ends with `\\n` or `\\r\\n`. Bytes that are not UTF-8 become surrogates, as in file names. The first line that ends with `\\r\\n`
    and the first that is not UTF-8 are reported on standard error, because a stored value may differ from the value that was read.
    """
    if name == "-" and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    try:
        with click.open_file(name, "rb") as stream:
            carriage_returns = other_bytes = False
            for number, line in enumerate(iter(partial(stream.readline, _MOST_LINE_BYTES + 1), b""), 1):
                if len(line) > _MOST_LINE_BYTES:
                    raise click.UsageError(f"{_place(name, number)} has more than {_MOST_LINE_BYTES:,} bytes")
                if number == 1:
                    if line.startswith(_UTF_16):
                        raise click.UsageError(f"values file {name}: the file is UTF-16; save it as UTF-8")
                    line = line.removeprefix(codecs.BOM_UTF8)
                line = line.removesuffix(b"\n")
                if line.endswith(b"\r"):
                    line = line.removesuffix(b"\r")
                    if not carriage_returns:
                        carriage_returns = True
                        _doubt(name, number, "ends with \\r\\n: the \\r counts as part of the line end, not of the value")
                text = line.decode("utf-8", "surrogateescape")
                if not other_bytes and not text.isascii() and any("\udc80" <= character <= "\udcff" for character in text):
                    other_bytes = True
                    _doubt(name, number, "is not UTF-8: its bytes are queried as they are; if it is text, save it as UTF-8")
                if text:
                    yield text
    except OSError as error:
        raise click.UsageError(f"values file {name}: {(error.strerror or 'unreadable').lower()}") from None


def names_of(source: str, end: bytes) -> Iterator[str]:
    """Yield the names in a file, or on standard input for `-`; each ends with `end`, a line feed or a NUL. Empty names are skipped.

    Names are read as they are needed. Bytes that are not UTF-8 become surrogates, as in file names. Raises click.UsageError if the list is
    empty, because the program that wrote it then failed or found nothing.
    """
    name = None
    for name in _names_of(source, end):
        yield name
    if name is None:
        raise click.UsageError(f"list of files {source}: the list is empty")


def _names_of(source: str, end: bytes) -> Iterator[str]:
    if source == "-" and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    try:
        with click.open_file(source, "rb") as stream:
            remainder = b""
            for block in iter(partial(stream.read, _BLOCK_BYTES), b""):
                *names, remainder = (remainder + block).split(end)
                if len(remainder) > _MOST_NAME_BYTES:
                    raise click.UsageError(f"list of files {source}: a name has more than {_MOST_NAME_BYTES:,} bytes")
                yield from _check_names(names, end)
            yield from _check_names([remainder], end)
    except OSError as error:
        raise click.UsageError(f"list of files {source}: {(error.strerror or 'unreadable').lower()}") from None


def _check_names(names: list[bytes], end: bytes) -> Iterator[str]:
    for name in names:
        name = name.removesuffix(b"\r") if end == b"\n" else name
        if b"\0" in name:
            raise click.UsageError("list of files: a name contains a NUL byte; read the list with --files0-from")
        if name:
            yield os.fsdecode(name)


def _place(name: str, line: int) -> str:
    return f"{'standard input' if name == '-' else f'values file {name}'}: line {line}"


def _doubt(name: str, number: int, reason: str) -> None:
    """Warn that a value may not be the one that is meant. `--quiet` does not hide this, since the answer may then be wrong."""
    complain(f"sbbf: warning: {_place(name, number)} {reason}", kind="warning")
