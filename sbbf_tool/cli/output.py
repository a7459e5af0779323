"""Standard output, one line at a time. The output may fail: its reader may have exited, or the disk may be full. The command then
continues, and its exit code is still correct. Everything printed is escaped here, by a page or by a format.
"""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from threading import RLock
from typing import Any, TextIO, cast

import click

from sbbf_tool.cli.spelling import name_options
from sbbf_tool.cli.tables import Plain
from sbbf_tool.cli.terminal import MOST_FILES, is_terminal, terminal
from sbbf_tool.display import escape, redact_text, to_json
from sbbf_tool.numbers import format_count

BROKEN_PIPE = 141
"""The exit code that a shell reports for a program that a closed pipe ended."""


_ERASE = "\r\x1b[K"


class StatusLine:
    """A line on standard error that is erased before anything else is printed, on either stream, and drawn again later.

    Several threads may use it. `print_line` also works if the stream is no terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = RLock()
        self._owner = os.getpid()
        self._is_used = self._is_drawn = False
        self._is_line_complete = True

    def draw(self, text: str) -> None:
        """Replace the line, unless other output has begun a line and not ended it."""
        with self._lock:
            if self._is_line_complete:
                self._is_used = self._is_drawn = True
                self._send(_ERASE + text)

    def erase(self) -> None:
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                self._send(_ERASE)

    def print_line(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            self._send(f"{text}\n")

    @contextmanager
    def hidden(self, text: str = "") -> Iterator[None]:
        """Erase the line, and draw nothing while the block prints `text`."""
        if os.getpid() != self._owner:
            # A forked process cannot know whether its parent has drawn the line, or whether a thread of the parent holds the lock.
            if self._is_used and text:
                self._send(_ERASE)
            yield
            return
        with self._lock:
            self.erase()
            yield
            self._is_line_complete = not text or text.endswith("\n")

    def _send(self, text: str) -> None:
        # Python's buffers have locks that a process would inherit if it were forked while another thread writes.
        try:
            data = text.encode(self._stream.encoding or "utf-8", "backslashreplace")
            descriptor = self._stream.fileno()
        except (OSError, ValueError):
            self._stream.write(text)
            return
        with suppress(OSError):
            os.write(descriptor, data)


class PatientOutput:
    """A replacement for `sys.stdout` that keeps its first error in `error`, and discards all later output.

    On a terminal, the status line is hidden while something is written.
    """

    def __init__(self, stream: TextIO, status_line: StatusLine) -> None:
        self._stream = stream
        self.error: OSError | None = None
        self.status_line = status_line
        self._hidden = status_line.hidden if is_terminal(stream) else lambda text: nullcontext()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._patience(), self._hidden(text):
            if self.error is None:
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._patience():
            if self.error is None:
                self._stream.flush()

    def write_bytes(self, data: Any) -> int:
        """Write bytes after the text so far."""
        self.flush()
        with self._patience():
            if self.error is None:
                self._stream.buffer.write(data)
        return memoryview(data).nbytes

    @property
    def has_broken_pipe(self) -> bool:
        return isinstance(self.error, BrokenPipeError)

    @contextmanager
    def _patience(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = error
            # Data left in Python's buffer would fail again when it is flushed at exit.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class PatientBinary(io.RawIOBase):
    """The bytes of standard output, which may fail as its text may."""

    def __init__(self, output: PatientOutput) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._output.write_bytes(data)


_complaints: ContextVar[Counter[str] | None] = ContextVar("complaints", default=None)
"""How many errors and warnings there were in this command."""


@contextmanager
def limit_complaints() -> Iterator[None]:
    """Inside the block, print the first errors and warnings only, unless all are requested; at its end, count the others."""
    counts = Counter[str]()
    token = _complaints.set(counts)
    try:
        yield
    finally:
        _complaints.reset(token)
        for kind, count in counts.items():
            if count > MOST_FILES and (kind == "error" or not terminal().quiet):
                complain(f"sbbf: and {format_count(count - MOST_FILES, f'more {kind}')}; --all shows them")


def complain(line: str, *, kind: str = "error") -> None:
    """Print one line on standard error, escaped, with the options of its hints, and without the passwords and signatures in URLs; a
    terminal gets it wrapped at words.

    Inside `limit_complaints`, a line of the `kind` error or warning may be omitted.
    """
    if (counts := _complaints.get()) is not None and kind in ("error", "warning") and not terminal().shows_all:
        counts[kind] += 1
        if counts[kind] > MOST_FILES:
            return
    for part in writer_for(sys.stderr).wrap(escape(redact_text(name_options(line))), is_error=kind == "error"):
        print(part, file=sys.stderr, flush=True)


def writer_for(stream: TextIO) -> Plain:
    """Return what lays out lines and tables for a stream: a screen, if it has a width or colours."""
    width, has_color = terminal().width(stream), terminal().has_color(stream)
    if width is None and not has_color:
        return Plain()
    from sbbf_tool.cli.screen import Screen

    return Screen(width, has_color=has_color)


def encodable_json(document: Any, encoding: str, *, indent: int | None = None) -> str:
    """Convert a document to JSON. A parser restores every string exactly; characters that the encoding lacks are escaped too."""
    text = to_json(document, indent=indent)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = to_json(document, indent=indent, ascii_only=True)
    return text


def say_traceback(error: BaseException) -> None:
    """Print the traceback of an error on standard error."""
    import traceback

    for line in "".join(traceback.format_exception(error)).rstrip("\n").split("\n"):
        complain(line)


@contextmanager
def patient_output() -> Iterator[PatientOutput]:
    """Replace `sys.stdout` and `sys.stderr` with `PatientOutput` inside the block; yield the replacement of `sys.stdout`.

    Output to a missing stream is discarded. Errors of the streams never change the exit code.
    """
    before = sys.stdout, sys.stderr
    errors_before = _or_nowhere(sys.stderr)
    status_line = StatusLine(errors_before)
    patient = PatientOutput(_or_nowhere(sys.stdout), status_line)
    sys.stdout, sys.stderr = cast(TextIO, patient), cast(TextIO, PatientOutput(errors_before, status_line))
    try:
        yield patient
    finally:
        errors = sys.stderr
        sys.stdout, sys.stderr = before
        errors.flush()


def _or_nowhere(stream: TextIO | None) -> TextIO:
    return stream if stream is not None else open(os.devnull, "w")


def stop_if_unread(*, at_end: bool = True) -> None:
    """End a read-only command with exit code 141 if its output is closed. Commands that write files continue instead.

    Unless `at_end` is set, output that is still in a buffer stays there.
    """
    if at_end:
        sys.stdout.flush()
    if isinstance(sys.stdout, PatientOutput) and sys.stdout.has_broken_pipe:
        raise click.exceptions.Exit(BROKEN_PIPE)
