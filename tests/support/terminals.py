"""Commands of this process on a real terminal: a pty with a size of its own, and pyte's screen of
what arrives there."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyte
import pytest

from sbbf_tool.cli import run
from sbbf_tool.cli.output import Terminal

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_MORE_ROWS = 50
"""Rows of a screen for lines that the terminal would wrap."""


@dataclass(frozen=True)
class Output:
    """What a command printed on two terminals of the same width."""

    code: int
    out: str
    """Everything on standard output, with its escape codes."""
    err: str
    columns: int

    @property
    def lines(self) -> list[str]:
        """The lines of standard output without colours."""
        return _COLOUR.sub("", self.out).splitlines()

    @property
    def all_lines(self) -> list[str]:
        """The lines of both streams without colours."""
        return [*self.lines, *_COLOUR.sub("", self.err).splitlines()]

    @property
    def has_codes(self) -> bool:
        return "\x1b" in self.out + self.err


_END = b"\0"
"""What no command writes."""


class _Terminal:
    """A pty; a thread reads what is written to it, because its buffer is small."""

    def __init__(self, columns: int) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = io.TextIOWrapper(io.BufferedWriter(io.FileIO(slave, "w")), encoding="utf-8")
        self._parts: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            while not self._parts or not self._parts[-1].endswith(_END):
                self._parts.append(os.read(self._master, 1 << 16))
        except OSError:  # the other end is closed
            pass

    def end(self) -> str:
        """Close the terminal; return everything that was written to it."""
        # What is still in the buffer of a pty may be lost when its other end is closed.
        self.stream.write(_END.decode())
        self.stream.flush()
        self._reader.join()
        self.stream.close()
        os.close(self._master)
        return b"".join(self._parts).removesuffix(_END).decode().replace("\r\n", "\n")


def run_on_terminal(
    arguments: Sequence[str], columns: int, *, out_is_terminal: bool = True, **environment: str
) -> Output:
    """Run a command whose standard output and standard error are terminals of this width;
    `environment` are variables for it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
            patch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm-256color", **environment}.items():
            patch.setenv(name, value)
        with _terminals(columns) as (out, err), open(os.devnull, "w") as nowhere:
            stream = out.stream if out_is_terminal else nowhere
            # click looks up the size of the terminal in the original stream.
            for name, value in (
                ("stdout", stream),
                ("stderr", err.stream),
                ("__stdout__", stream),
                ("__stderr__", err.stream),
            ):
                patch.setattr(sys, name, value)
            patch.setattr(Terminal, "shows_progress", lambda settings: False)
            code = run(list(arguments))
    return Output(code, out.end(), err.end(), columns)


@contextmanager
def _terminals(columns: int) -> Iterator[tuple[_Terminal, _Terminal]]:
    out, err = _Terminal(columns), _Terminal(columns)
    try:
        yield out, err
    finally:
        out.stream.flush()
        err.stream.flush()


def show(text: str, columns: int, *, cells: bool = False) -> list[str]:
    """Return the lines of the screen of a terminal of this width after it has received the text.

    With `cells`, each line has one character per cell: a wide character is followed by a space.
    """
    screen = pyte.Screen(columns, text.count("\n") + _MORE_ROWS)
    screen.set_mode(pyte.modes.LNM)
    pyte.Stream(screen).feed(text)
    if cells:
        rows = [screen.buffer[at] for at in range(screen.lines)]
        lines = ["".join(row[at].data[:1] or " " for at in range(columns)).rstrip() for row in rows]
    else:
        lines = [line.rstrip() for line in screen.display]
    while lines and not lines[-1]:
        lines.pop()
    return lines
