"""The streams of the command line: whether they are terminals, how wide, how much is printed, and
standard output, one line at a time.

The options `--all`, `--quiet` and `--verbose` of every command set how much is printed in one run.
The output may fail: its reader may have exited, or the disk may be full. The command then
continues, and its exit code is still correct. Everything printed is escaped here, by a page or by a
format.
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
from click.core import ParameterSource

from sbbf_tool.cli.options import OUTPUT, Option
from sbbf_tool.cli.spelling import name_options
from sbbf_tool.cli.tables import Plain
from sbbf_tool.display import escape, redact_text, to_json
from sbbf_tool.log import show_log
from sbbf_tool.numbers import format_count


class Terminal:
    """What one run may print, and how."""

    quiet: bool = False
    """Whether only errors are printed."""
    verbose: bool = False
    shows_all: bool = False
    """Whether nothing is left out: there are lines about all files, and tables keep all rows and
    columns, however narrow the terminal."""

    def has_color(self, stream: TextIO) -> bool:
        """Return whether output to this stream is coloured: as NO_COLOR or FORCE_COLOR states, else
        if it is a terminal."""
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return is_terminal(stream) and os.environ.get("TERM") != "dumb"

    def width(self, stream: TextIO) -> int | None:
        """Return the width of the stream in cells; None, as for a pipe or `--all`, for any."""
        if self.shows_all or not is_terminal(stream):
            return None
        return max(_columns_of(stream), MIN_WIDTH)

    def shows_progress(self) -> bool:
        """Return whether progress is drawn on standard error or, where that is no terminal, with
        --verbose printed now and then."""
        if self.quiet:
            return False
        if is_terminal(sys.stderr):
            return os.environ.get("TERM") != "dumb"
        return self.verbose


MOST_FILES = 20
"""Number of files about which lines are printed, unless all are requested; and number of errors."""
MIN_WIDTH = 20
"""Terminals that claim to be narrower get lines of this width."""
_USUAL_WIDTH = 80
"""Width of a terminal that does not state one."""


def _columns_of(stream: TextIO) -> int:
    """Return the columns of a terminal: those that COLUMNS states, else its own."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):  # the stream has no descriptor
        return _USUAL_WIDTH


_current: ContextVar[Terminal | None] = ContextVar("terminal", default=None)


def terminal() -> Terminal:
    """Return the settings of this run."""
    return _current.get() or start_run()


def start_run() -> Terminal:
    """Forget the settings of an earlier run in this process, and return those of a new one."""
    settings = Terminal()
    _current.set(settings)
    return settings


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether the stream is a terminal; a closed or missing one is not."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


_OPPOSITES = {"quiet": "verbose", "verbose": "quiet"}
_PREFIX = "terminal_"
"""Beginning of the names of parameters that set an attribute of the terminal."""


def terminal_options() -> list[Option]:
    """Build the options that every command has, and that change only what is printed."""

    def remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        name = str(param.name).removeprefix(_PREFIX)
        if not value or _is_overridden(ctx, name):
            return
        if name in _OPPOSITES:
            setattr(terminal(), _OPPOSITES[name], False)
        setattr(terminal(), name, value)
        if name == "verbose" and not ctx.resilient_parsing:
            # Until the command line ends, the log of the package is printed too.
            log = show_log(lambda message: complain(f"sbbf: {message}", kind="note"))
            ctx.find_root().with_resource(log)

    def option(names: list[str], text: str) -> Option:
        return Option(
            names, topic=OUTPUT, is_flag=True, expose_value=False, callback=remember, help=text
        )

    return [
        option([f"{_PREFIX}quiet", "-q", "--quiet"], "Print nothing but errors."),
        option(
            [f"{_PREFIX}verbose", "-v", "--verbose"],
            "Print what is being done, and where an error came from, to standard error.",
        ),
        option(
            [f"{_PREFIX}shows_all", "--all"],
            "Leave nothing out: print lines about all files, and whole tables and names on any "
            "terminal.",
        ),
    ]


def _is_overridden(ctx: click.Context, name: str) -> bool:
    """Return whether the command line has the opposite of an option that only a setting states.
    Raises UsageError for opposites that are stated in the same way."""
    opposite = _OPPOSITES.get(name)
    if opposite is None or not getattr(terminal(), opposite):
        return False
    source = ctx.get_parameter_source(_PREFIX + name)
    opposite_source = ctx.get_parameter_source(_PREFIX + opposite)
    is_stated = source is ParameterSource.COMMANDLINE
    is_opposite_stated = opposite_source is ParameterSource.COMMANDLINE
    if is_stated == is_opposite_stated:
        raise click.UsageError("give one of --quiet and --verbose", ctx)
    return is_opposite_stated


BROKEN_PIPE = 141
"""The exit code that a shell reports for a program that a closed pipe ended."""


_ERASE = "\r\x1b[K"


class StatusLine:
    """A line on standard error that is erased before anything else is printed, on either stream,
    and drawn again later.

    Several threads may use it. `print_line` also works if the stream is no terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = RLock()
        self._owner = os.getpid()
        self._is_used = False
        self._is_drawn = False
        self._is_line_complete = True

    def draw(self, text: str) -> None:
        """Replace the line, unless other output has begun a line and not ended it."""
        with self._lock:
            if self._is_line_complete:
                self._is_used = True
                self._is_drawn = True
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
    def hidden(self, text: str) -> Iterator[None]:
        """Erase the line, and draw nothing while the block prints `text`."""
        if os.getpid() != self._owner:
            # A forked process cannot know whether its parent has drawn the line, or whether a
            # thread of the parent holds the lock.
            if self._is_used and text:
                self._send(_ERASE)
            yield
            return
        with self._lock:
            self.erase()
            yield
            self._is_line_complete = not text or text.endswith("\n")

    def _send(self, text: str) -> None:
        # Python's buffers have locks that a process would inherit if it were forked while another
        # thread writes.
        try:
            data = text.encode(self._stream.encoding or "utf-8", "backslashreplace")
            descriptor = self._stream.fileno()
        except (OSError, ValueError):
            self._stream.write(text)
            return
        with suppress(OSError):
            os.write(descriptor, data)


class PatientOutput:
    """A replacement for `sys.stdout` that keeps its first error in `error`, and discards all later
    output.

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
    """Inside the block, print the first errors and warnings only, unless all are requested; at its
    end, count the others."""
    counts = Counter[str]()
    token = _complaints.set(counts)
    try:
        yield
    finally:
        _complaints.reset(token)
        for kind, count in counts.items():
            if count > MOST_FILES and (kind == "error" or not terminal().quiet):
                rest = format_count(count - MOST_FILES, f"more {kind}")
                complain(f"sbbf: and {rest}; --all shows them")


def complain(line: str, *, kind: str = "error") -> None:
    """Print one line on standard error, escaped, with the options of its hints, and without the
    passwords and signatures in URLs; a terminal gets it wrapped at words.

    Inside `limit_complaints`, a line of the `kind` error or warning may be omitted.
    """
    counts = _complaints.get()
    is_limited = kind in ("error", "warning") and not terminal().shows_all
    if counts is not None and is_limited:
        counts[kind] += 1
        if counts[kind] > MOST_FILES:
            return
    text = escape(redact_text(name_options(line)))
    for part in writer_for(sys.stderr).wrap(text, is_error=kind == "error"):
        print(part, file=sys.stderr, flush=True)


def writer_for(stream: TextIO) -> Plain:
    """Return what lays out lines and tables for a stream: a screen, if it has width or colours."""
    width = terminal().width(stream)
    has_color = terminal().has_color(stream)
    if width is None and not has_color:
        return Plain()
    from sbbf_tool.cli.screen import Screen

    return Screen(width, has_color=has_color)


def encodable_json(document: Any, encoding: str, *, indent: int | None = None) -> str:
    """Convert a document to JSON. A parser restores every string exactly; characters that the
    encoding lacks are escaped too."""
    text = to_json(document, indent=indent)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = to_json(document, indent=indent, ascii_only=True)
    return text


def say_traceback(error: BaseException) -> None:
    """Print the traceback of an error on standard error."""
    import traceback

    text = "".join(traceback.format_exception(error))
    for line in text.rstrip("\n").split("\n"):
        complain(line)


@contextmanager
def patient_output() -> Iterator[PatientOutput]:
    """Replace `sys.stdout` and `sys.stderr` with `PatientOutput` inside the block; yield the
    replacement of `sys.stdout`.

    Output to a missing stream is discarded. Errors of the streams never change the exit code.
    """
    output_before = sys.stdout
    errors_before = sys.stderr
    error_stream = _or_nowhere(errors_before)
    status_line = StatusLine(error_stream)
    patient = PatientOutput(_or_nowhere(output_before), status_line)
    sys.stdout = cast(TextIO, patient)
    sys.stderr = cast(TextIO, PatientOutput(error_stream, status_line))
    try:
        yield patient
    finally:
        errors = sys.stderr
        sys.stdout = output_before
        sys.stderr = errors_before
        errors.flush()


def _or_nowhere(stream: TextIO | None) -> TextIO:
    return stream if stream is not None else open(os.devnull, "w")


def stop_if_unread(*, at_end: bool = True) -> None:
    """End a read-only command with exit code 141 if its output is closed. Commands that write files
    continue instead.

    Unless `at_end` is set, output that is still in a buffer stays there.
    """
    if at_end:
        sys.stdout.flush()
    if isinstance(sys.stdout, PatientOutput) and sys.stdout.has_broken_pipe:
        raise click.exceptions.Exit(BROKEN_PIPE)
