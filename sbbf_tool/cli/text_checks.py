"""Checks of text in files of values: what is no text, and what may not be the values that are
meant."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

import click

from sbbf_tool.cli.output import complain

_OUTER_BLANK = rb"(?m)^[ \t]|[ \t]$"
_CONTROL = rb"[\r\0]"
_QUOTES = b"\"'"
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
    b"PAR1": "Parquet; give its name, or write its values as text",
    b"ORC": "ORC; write its values as text",
    b"Obj\1": "Avro; write its values as text",
}
"""What a file is that begins with these bytes, and what to do."""


def ensure_text(source: str, lines: list[bytes]) -> None:
    """Raise click.UsageError if the first bytes of a file are not those of text."""
    head = b"\n".join(lines[:2])
    kind = next((kind for magic, kind in _NO_TEXT.items() if head.startswith(magic)), None)
    if kind is None and b"\0" in head:
        few, many = sorted((head[0::2].count(0), head[1::2].count(0)))
        # One character and a NUL are a list that NUL bytes separate.
        is_utf_16 = len(head) > 2 and many * 4 >= len(head) and few * 8 < len(head)
        kind = "separated by NUL bytes, or binary; write one value per line"
        if is_utf_16:
            kind = "UTF-16; save it as UTF-8"
    if kind is not None:
        raise click.UsageError(f"{source}: the file is {kind}")


class LineChecks:
    """Warnings about the lines of a file, or the values of a column, that may not be the values
    that are meant: for each reason, of the first such line."""

    def __init__(self, source: str, unit: str, column: str | None = None) -> None:
        self._source = source
        self._unit = unit
        self._column = column
        """The queried column."""
        self._reasons: set[str] = set()
        """The reasons of the warnings so far."""
        self._num_values = 0
        """Values without what may be a header."""
        self._are_quoted = True
        """Whether all these values so far are in quotes."""

    def check(self, first: int, lines: list[bytes]) -> list[bytes]:
        """Return the lines, the first with this number, without carriage returns at their ends."""
        text = b"\n".join(lines)
        # Millions of values have none of these bytes, which `in` shows faster than a pattern does.
        if b"\r" in text or b"\0" in text:
            values = [line.removesuffix(b"\r") for line in lines]
            text = b"\n".join(values)
            self._ensure_no_control(first, text)
            self._warn(
                "ends with \\r\\n: the \\r counts as part of the line end, not of the value",
                first,
                (line.endswith(b"\r") for line in lines),
            )
            lines = values
        self._check_text(first, lines, text)
        values = list(filter(None, lines))
        if first == 1:
            self._check_header(values)
            if len(values) > 1 and not _is_quoted(values[0]):
                values = values[1:]  # it may be a header, whatever its name
        self._num_values += len(values)
        self._are_quoted = self._are_quoted and all(map(_is_quoted, values))
        return lines

    def check_values(self, first: int, values: list[bytes]) -> None:
        """Check values, the first with this number, that may contain any character."""
        self._check_text(first, values, b"\n".join(values))

    def finish(self) -> None:
        """Warn if all values are in quotes, but for a first line that may be a header."""
        if self._are_quoted and self._num_values:
            self._complain("the values are in quotes, which count as part of the values")

    def _check_text(self, first: int, lines: list[bytes], text: bytes) -> None:
        if (b" " in text or b"\t" in text) and re.search(_OUTER_BLANK, text):
            self._warn(
                "begins or ends with a blank, which counts as part of the value",
                first,
                (line.strip(b" \t") != line for line in lines),
            )
        if not _is_utf_8(text):
            self._warn(
                "is not UTF-8: its bytes are queried as they are; if it is text, save it as UTF-8",
                first,
                (not _is_utf_8(line) for line in lines),
            )

    def _check_header(self, values: list[bytes]) -> None:
        """Warn if the first value is the name of the queried column."""
        if self._column is None or not values:
            return
        name = values[0].strip(_QUOTES).decode("utf-8", "replace")
        names = (self._column, self._column.rpartition(".")[2])
        if name.casefold() not in map(str.casefold, names):
            return
        hint = "remove it"
        if self._source.lower().endswith(".csv"):
            hint = f"add :{name} to the name of the file"
        self._complain(
            f"the first value is {name}, the name of the column: if it is a header, {hint}"
        )

    def _warn(self, reason: str, first: int, are_doubtful: Iterable[bool]) -> None:
        if reason in self._reasons:
            return
        for number, is_doubtful in enumerate(are_doubtful, first):
            if is_doubtful:
                self._reasons.add(reason)
                self._complain(f"{self._unit} {number:,} {reason}")
                return

    def _complain(self, text: str) -> None:
        # `--quiet` does not hide this, since the answer may be wrong.
        complain(f"sbbf: warning: {self._source}: {text}", kind="warning")

    def _ensure_no_control(self, first: int, text: bytes) -> None:
        control = re.search(_CONTROL, text)
        if control is None:
            return
        number = first + text.count(b"\n", 0, control.start())
        found = "a NUL byte"
        if control[0] == b"\r":
            found = "a carriage return (\\r) alone"
        raise click.UsageError(
            f"{self._source}: line {number:,} contains {found}: end each value with a line feed "
            "(\\n)"
        )


def _is_quoted(value: bytes) -> bool:
    return len(value) > 1 and value[:1] in _QUOTES and value[:1] == value[-1:]


def _is_utf_8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
