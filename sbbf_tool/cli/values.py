"""Values in a file, one per line, and file names in a list."""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import IO

import click

from sbbf_tool.cli.output import complain

MAX_VALUES = 1_000_000
"""Maximum number of values from a file or a pipe, because all are held in memory and a pipe may be endless."""

VALUE_MARK = "\0"
"""Marks an argument as a value that click must not parse as an option; no argument contains it."""

_MOST_LINE_BYTES = 64 << 20
_MOST_NAME_BYTES, _BLOCK_BYTES = 1 << 20, 1 << 16
_OUTER_BLANK = re.compile(rb"(?m)^[ \t]|[ \t]\r?$")
_NO_TEXT = {
    codecs.BOM_UTF16_LE: "UTF-16; save it as UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16; save it as UTF-8",
    b"\x1f\x8b": "gzip; decompress it",
    b"\x28\xb5\x2f\xfd": "zstd; decompress it",
    b"PK\3\4": "a ZIP archive; unpack it",
    b"BZh": "bzip2; decompress it",
    b"\xfd7zXZ\0": "xz; decompress it",
    b"\x04\x22\x4d\x18": "LZ4; decompress it",
    b"\xff\x06\0\0sNaPpY": "Snappy; decompress it",
    b"PAR1": "Parquet; write its values as text",
    b"ORC": "ORC; write its values as text",
    b"Obj\1": "Avro; write its values as text",
}
"""What a file is that begins with these bytes, and what to do."""


def unmark(argument: str) -> str:
    """Return an argument without its mark."""
    return argument.removeprefix(VALUE_MARK)


def collect_values(arguments: tuple[str, ...], values_file: str | None, ask_null: bool) -> Sequence[str | None]:
    """Collect the values of a command line: its arguments, values from standard input or a file, and None for null."""
    if values_file is None and "-" not in arguments:
        values: Sequence[str | None] = (*([None] if ask_null else []), *map(unmark, arguments))
    else:
        from sbbf_tool.file.texts import Texts

        values = Texts.of(_read_values(arguments, values_file), nulls=int(ask_null))
    if not values and values_file is None and not arguments:
        raise click.UsageError("no value to query")
    if not values:
        complain(f"sbbf: {'standard input' if values_file in (None, '-') else values_file} has no values", kind="note")
    return values


def _read_values(arguments: tuple[str, ...], values_file: str | None) -> Iterator[list[bytes]]:
    for argument in arguments:
        yield from blocks_of("-") if argument == "-" else [[os.fsencode(unmark(argument))]]
    if values_file is not None:
        yield from blocks_of(values_file)


def blocks_of(name: str) -> Iterator[list[bytes]]:
    """Yield the non-empty lines of a file, or of standard input for `-`, in blocks, which are read as they are needed.

    A line ends with `\\n` or `\\r\\n`. The first line that ends with `\\r\\n` and the first that is not UTF-8 are reported on standard
    error, and so is the first with a blank at an end, because a stored value may differ from the value that was read.
    """
    if name == "-" and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    try:
        with click.open_file(name, "rb") as stream:
            doubts, count = _Doubts(name), 0
            for first, lines in _number_blocks(name, stream):
                if first == 1:
                    _ensure_text(name, lines)
                    lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
                lines = [line for line in doubts.check(first, lines) if line]
                count += len(lines)
                if count > MAX_VALUES:
                    source = "standard input" if name == "-" else name
                    raise click.UsageError(f"more than {MAX_VALUES:,} values in {source}: query them in several runs")
                yield lines
    except OSError as error:
        raise click.UsageError(f"values file {name}: {(error.strerror or 'unreadable').lower()}") from None


def _ensure_text(name: str, lines: list[bytes]) -> None:
    """Raise click.UsageError if the first bytes of a file are not those of text."""
    head = b"\n".join(lines[:2])
    kind = next((kind for magic, kind in _NO_TEXT.items() if head.startswith(magic)), None)
    if kind is None and b"\0" in head:
        even, odd = head[0::2], head[1::2]
        is_utf_16 = max(even.count(0), odd.count(0)) * 4 >= len(head) and min(even.count(0), odd.count(0)) * 8 < len(head)
        kind = "UTF-16; save it as UTF-8" if is_utf_16 else "separated by NUL bytes, or binary; write one value per line"
    if kind is not None:
        raise click.UsageError(f"{'standard input' if name == '-' else f'values file {name}'}: the file is {kind}")


def _number_blocks(name: str, stream: IO[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines of each block without their line feeds, and the number of the first. Raises click.UsageError for too long a line."""
    first, parts = 1, [b""]
    while block := stream.read(_BLOCK_BYTES):
        head, line_feed, tail = block.rpartition(b"\n")
        parts.append(head if line_feed else tail)
        size = sum(map(len, parts))
        if not line_feed and size <= _MOST_LINE_BYTES:
            continue
        lines = b"".join(parts).split(b"\n")
        if size > _MOST_LINE_BYTES and (number := next((at for at, line in enumerate(lines) if len(line) > _MOST_LINE_BYTES), -1)) >= 0:
            raise click.UsageError(f"{_place(name, first + number)} has more than {_MOST_LINE_BYTES:,} bytes")
        yield first, lines
        first += len(lines)
        parts = [tail]
    if last := b"".join(parts):
        yield first, [last]


class _Doubts:
    """Warnings of values that may not be those that are meant: of the first line for each reason."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._carriage_returns = self._blanks = self._other_bytes = False

    def check(self, first: int, lines: list[bytes]) -> list[bytes]:
        """Return the lines, of which the first has this number, without the carriage returns at their ends."""
        text = b"\n".join(lines)
        if b"\r\n" in text or text.endswith(b"\r"):
            if not self._carriage_returns:
                self._carriage_returns = True
                number = first + next(at for at, line in enumerate(lines) if line.endswith(b"\r"))
                self._warn(number, "ends with \\r\\n: the \\r counts as part of the line end, not of the value")
            lines = [line.removesuffix(b"\r") for line in lines]
            text = b"\n".join(lines)
        if (b"\r" in text or b"\0" in text) and (at := _find_control(lines)) is not None:
            raise click.UsageError(f"{_place(self._name, first + at)} contains a CR or NUL byte: end each value with a line feed alone")
        if not self._blanks and (b" " in text or b"\t" in text) and _OUTER_BLANK.search(text):
            self._blanks = True
            number = first + next(at for at, line in enumerate(lines) if line.strip(b" \t") != line)
            self._warn(number, "begins or ends with a blank, which counts as part of the value")
        if not self._other_bytes and not _is_utf_8(text):
            self._other_bytes = True
            number = first + next(at for at, line in enumerate(lines) if not _is_utf_8(line))
            self._warn(number, "is not UTF-8: its bytes are queried as they are; if it is text, save it as UTF-8")
        return lines

    def _warn(self, number: int, reason: str) -> None:
        # `--quiet` does not hide this, since the answer may be wrong.
        complain(f"sbbf: warning: {_place(self._name, number)} {reason}", kind="warning")


def _find_control(lines: list[bytes]) -> int | None:
    return next((at for at, line in enumerate(lines) if b"\r" in line or b"\0" in line), None)


def _is_utf_8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def names_of(source: str) -> Iterator[str]:
    """Yield the names in a file, or on standard input for `-`: one per line or, in a list with NUL bytes, each up to a NUL.

    Names are read as they are needed; empty ones are skipped. Bytes that are not UTF-8 become surrogates, as in file names. Raises
    click.UsageError if the list is empty, because the program that wrote it then failed or found nothing.
    """
    name = None
    for name in _names_of(source):
        yield name
    if name is None:
        raise click.UsageError(f"list of files {source}: the list is empty")


def _names_of(source: str) -> Iterator[str]:
    if source == "-" and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    try:
        with click.open_file(source, "rb") as stream:
            block = stream.read(_BLOCK_BYTES)
            end = b"\0" if b"\0" in block else b"\n"
            remainder = b""
            block = block.removeprefix(codecs.BOM_UTF8) if end == b"\n" else block  # names that end with NUL are exact
            while block:
                if len(block) == _BLOCK_BYTES and not block.strip(end):
                    raise click.UsageError(f"list of files {source}: {_BLOCK_BYTES:,} bytes have no name")
                *names, remainder = (remainder + block).split(end)
                if len(remainder) > _MOST_NAME_BYTES:
                    raise click.UsageError(f"list of files {source}: a name has more than {_MOST_NAME_BYTES:,} bytes")
                yield from _check_names(names, end, source)
                block = stream.read(_BLOCK_BYTES)
            yield from _check_names([remainder], end, source)
    except OSError as error:
        raise click.UsageError(f"list of files {source}: {(error.strerror or 'unreadable').lower()}") from None


def _check_names(names: list[bytes], end: bytes, source: str) -> Iterator[str]:
    for name in names:
        name = name.removesuffix(b"\r") if end == b"\n" else name
        if b"\0" in name:
            raise click.UsageError(f"list of files {source}: the first names end with line feeds, a later one with a NUL byte")
        if name:
            yield os.fsdecode(name)


def _place(name: str, line: int) -> str:
    return f"{'standard input' if name == '-' else f'values file {name}'}: line {line}"
