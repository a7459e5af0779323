"""Standard output: lines that stay lines, and an output that may fail: a reader that has gone, a disk that is full. The work goes on, and
its exit code stays true. All that is printed is escaped here (`say`, `say_json`), is a cell of a table, or is written by a format.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

import click

from sbbf_tool.display import escape, redact_text, to_json

BROKEN_PIPE = 141
"""What a shell reports of a program that died of a closed pipe."""


class PatientOutput:
    """Stands for `sys.stdout`; keeps the first error of it in `error`, and throws away what comes after that."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if self.error is None:
            try:
                return self._stream.write(text)
            except OSError as error:
                self._fail(error)
        return len(text)

    def flush(self) -> None:
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._fail(error)

    @property
    def has_broken_pipe(self) -> bool:
        return isinstance(self.error, BrokenPipeError)

    def _fail(self, error: OSError) -> None:
        self.error = error
        # What is left in Python's buffer would fail once more when it is flushed at exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


def say(line: str, *, err: bool = False) -> None:
    """Print one line, whatever a file's bytes or names put into it; of URLs in messages (`err`) no password or signature."""
    click.echo(escape(redact_text(line) if err else line), err=err)


def say_json(document: Any, *, indent: int | None = None) -> None:
    """Print a JSON document. A parser gets every text back exactly; characters that the output's encoding lacks are escaped too."""
    text = to_json(document, indent=indent)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = to_json(document, indent=indent, ascii_only=True)
    click.echo(text)


def say_traceback(error: BaseException) -> None:
    """Print where an error came from, on standard error."""
    import traceback

    for line in "".join(traceback.format_exception(error)).rstrip("\n").split("\n"):
        say(line, err=True)


@contextmanager
def patient_output() -> Iterator[PatientOutput]:
    """`sys.stdout` and `sys.stderr` are patient while the block runs; answers with the first.

    Output to a missing stream is discarded. Errors of the streams never change the exit code.
    """
    before = sys.stdout, sys.stderr
    patient = PatientOutput(_or_nowhere(sys.stdout))
    sys.stdout, sys.stderr = cast(TextIO, patient), cast(TextIO, PatientOutput(_or_nowhere(sys.stderr)))
    try:
        yield patient
    finally:
        errors = sys.stderr
        sys.stdout, sys.stderr = before
        errors.flush()


def _or_nowhere(stream: TextIO | None) -> TextIO:
    return stream if stream is not None else open(os.devnull, "w")


def stop_if_unread(*, at_end: bool = True) -> None:
    """End a command that only reads with 141 where its output is closed. Commands that write files continue.

    Not `at_end`, what was printed may still wait in a buffer, and is left there.
    """
    if at_end:
        sys.stdout.flush()
    if isinstance(sys.stdout, PatientOutput) and sys.stdout.has_broken_pipe:
        raise click.exceptions.Exit(BROKEN_PIPE)
