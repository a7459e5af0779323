"""The command of a reader or writer: split once, run without a shell, within a time limit, its
output bounded."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import BinaryIO

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen

MOST_OUTPUT = 16 << 20
"""Bytes of standard output that are read; a command that prints more is ended."""
_INTERVAL = 0.1
"""Seconds between two looks at what was printed."""
_MOST_ERRORS = 4096
_MOST_LINE = 300
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Completion(Frozen):
    """How a command ended."""

    exit_code: int | None
    """None if it was ended because it exceeded the time limit or printed too much; negative if a
    signal ended it."""
    output: bytes
    errors: str
    """The last line of standard error."""

    @property
    def failure(self) -> str:
        """Describe an end that is no answer."""
        if self.exit_code is None:
            if len(self.output) < MOST_OUTPUT:
                return "the time limit was exceeded"
            return f"it printed more than {MOST_OUTPUT >> 20} MiB"
        ending = f"exit code {self.exit_code}"
        if self.exit_code < 0:
            ending = f"signal {-self.exit_code}"
        if self.errors:
            ending += f": {self.errors}"
        return f"ended with {ending}"


class CommandLine(Frozen):
    """A command with placeholders in braces."""

    text: str
    words: tuple[str, ...]
    timeout: float

    @classmethod
    def parse(
        cls, text: str, timeout: float, required: Collection[str], optional: Collection[str] = ()
    ) -> CommandLine:
        """Split a command as a shell would, once. Raises UsageError unless it has the `required`
        placeholders and no unknown ones."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise UsageError(
                f"the command {text!r} cannot be split into words ({str(error).lower()})"
            ) from None
        names = set(_PLACEHOLDER.findall(" ".join(words)))
        hint = "the placeholders are " + ", ".join(f"{{{name}}}" for name in (*required, *optional))
        for name in required:
            if name not in names:
                raise UsageError(f"the command {text!r} lacks {{{name}}}", hint=hint)
        unknown = sorted(names - {*required, *optional})
        if unknown:
            raise UsageError(
                f"the command {text!r} has the unknown placeholder {{{unknown[0]}}}", hint=hint
            )
        return cls(text, words, timeout)

    def has(self, name: str) -> bool:
        return any(name in _PLACEHOLDER.findall(word) for word in self.words)

    def run(self, values: Mapping[str, str]) -> Completion:
        """Run the command with these values of its placeholders. Raises UsageError if there is no
        such program."""
        words = [_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in self.words]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                reason = (getattr(error, "strerror", None) or str(error)).lower()
                raise UsageError(f"the command {words[0]!r} cannot be run: {reason}") from error
            try:
                exit_code = self._wait(process, (output, errors))
            finally:
                _end_group(process)
            return Completion(exit_code, _read(output, 0, MOST_OUTPUT), _last_line(errors))

    def _wait(self, process: subprocess.Popen[bytes], files: Collection[BinaryIO]) -> int | None:
        """Wait for the process, and return its exit code; None if it exceeded the time limit or
        printed too much."""
        end = time.monotonic() + self.timeout
        while True:
            seconds = end - time.monotonic()
            sizes = [os.fstat(file.fileno()).st_size for file in files]
            if seconds <= 0 or max(sizes) > MOST_OUTPUT:
                return None
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(seconds, _INTERVAL))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what the command started, which may outlive it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(file: BinaryIO, start: int, most: int) -> bytes:
    file.seek(start)
    return file.read(most)


def _last_line(file: BinaryIO) -> str:
    size = file.seek(0, os.SEEK_END)
    end = _read(file, max(0, size - _MOST_ERRORS), _MOST_ERRORS)
    for line in reversed(end.decode(errors="replace").split("\n")):
        if line.strip():
            return line.strip()[:_MOST_LINE]
    return ""
